# SPDX-License-Identifier: GPL-2.0-or-later
"""All runs of an experiment: planned in random order, done one after another or by turns, recorded as they finish."""

import contextlib
import platform
import random
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from vsprof.runner import experiment as experiments
from vsprof.runner import messages, offers, parse, results, run, turns, vocabulary
from vsprof.runner.experiment import Case, Experiment, TrafficItem
from vsprof.runner.progress import Progress
from vsprof.runner.results import Results
from vsprof.runner.run import Plan, Setting
from vsprof.runner.turns import Turn
from vsprof.terms import errors, places, schema
from vsprof.terms import messages as terms_messages
from vsprof.terms.placement import PAIR
from vsprof.terms.schema import without_fcs
from vsprof.testbeds.base import EMULATED, REAL, Testbed
from vsprof.testbeds.emulator.needs import available_memory
from vsprof.testbeds.lab import CPUS as LAB_CPUS
from vsprof.testbeds.lab import Lab
from vsprof.testbeds.native import Native

PROJECT = places.ROOT
AUTO = "auto"
OPTIONS_OF = {"inventory": "remote", "server": "remote", "accel": "lab", "clock": "lab", "tune": "native"}
"""Options of the command line that only one testbed has."""
TRIES_IN_LAB = 2
"""How often a run is tried in the lab before it counts as failed."""


@dataclass(frozen=True)
class Campaign:
    """A checked experiment: everything that can be wrong with the input has been found when one of these exists."""

    name: str
    experiment: Experiment
    cases: list[Case]
    traffics: list[TrafficItem]
    setting: Setting
    testbed: str
    """By name; ``auto`` only while the input is checked."""
    cpus: int | None
    """Of an emulated host; None: its own default."""
    host_options: dict[str, Any] = field(default_factory=dict)
    """What only this testbed is told, as OPTIONS_OF has it."""

    @classmethod
    def check(
        cls, name: str, experiment: Experiment, testbed: str = AUTO, cpus: int | None = None, host_options: dict[str, Any] | None = None
    ) -> Self:
        """Raises ``BadInput`` on anything that could not be run."""
        options = host_options or {}
        if testbed not in (known := [AUTO, *experiments.TESTBEDS]):
            raise terms_messages.unknown_value("testbed", testbed, known)
        for option in options:
            if (owner := OPTIONS_OF[option]) != testbed != AUTO:
                raise messages.not_of_this_testbed(option, testbed, owner)
        _check_nodes(experiment.nodes, testbed, cpus)
        experiments.check_notebook(experiment)
        experiments.check_collector_options(experiment)
        collectors, named = experiments.collectors(experiment)
        if testbed == Lab.name:
            options = {**options, "clock": clock(experiment, testbed, options)}
            collectors = experiments.with_clock(collectors, options["clock"])
        setting = Setting(name, experiment.windows, collectors, named, experiment.collector_options)
        cases = experiments.cases(experiment)
        return cls(name, experiment, cases, experiments.traffic_items(experiment), setting, testbed, cpus, options)

    def plans(self, seed: int) -> list[Plan]:
        """Every case once in each repetition, in random order within it; each run's traffics in random order.

        Repetitions stay blocks, so that a slow drift of the machine meets all cases alike. Every second one is the one before it turned
        round: then no case comes before another each time, which of two cases and three repetitions would happen one time in four.
        """
        order = random.Random(seed)
        plans: list[Plan] = []
        block: list[Case] = []
        for repetition in range(1, self.experiment.repetitions + 1):
            block = order.sample(self.cases, len(self.cases)) if repetition % 2 else block[::-1]
            for case in block:
                traffics = tuple(order.sample(self.traffics, len(self.traffics)))
                run_id = f"r{len(plans) + 1:03d}"
                plans.append(Plan(run_id, case, repetition, traffics, random.Random(f"{seed} {run_id}").randrange(2**32)))
        return plans

    @property
    def emulator_plugins(self) -> list[Path]:
        """The emulator's plug-ins that the chosen collectors need, each once."""
        needed = [experiments.COLLECTORS[name].emulator_plugin for name in self.setting.collectors]
        return list(dict.fromkeys(plugin for plugin in needed if plugin is not None))

    def host(self, progress: Progress, beside: Testbed | None = None) -> Testbed:
        """``beside``: one that is open, and stays so for longer."""
        for name in self.setting.collectors:
            experiments.COLLECTORS[name].build()
        cpus = self.cpus or self._lab_cpus()
        more = {**self.host_options, **({"cpus": cpus} if cpus is not None else {})}
        if self.experiment.nodes > 1:
            more["nodes"] = self.experiment.nodes
        if beside:
            more["beside"] = beside
        return experiments.TESTBEDS[self.testbed](say=progress.say, plugins=self.emulator_plugins, **more)

    def on(self, server: str | None) -> Self:
        """The same on this server of its inventory, if one is given."""
        return replace(self, host_options={**self.host_options, "server": server}) if server else self

    @property
    def at_once(self) -> int:
        """How many runs of a repetition are alive at the same time."""
        if not (experiments.TESTBEDS[self.testbed].takes_turns and self.experiment.turns):
            return 1
        return max(1, min(turns.MOST, available_memory() // turns.BYTES_OF_A_RUN))

    def _lab_cpus(self) -> int | None:
        """The CPUs of a lab in which every case has one for each duty, so that all cases have the same host; None: as many as usual."""
        needed = max(experiments.duties(case.values).cpus for case in self.cases)
        if self.testbed != Lab.name or needed <= PAIR.cpus:
            return None
        return next((cpus for cpus in LAB_CPUS if cpus >= needed), LAB_CPUS[-1])


def clock(experiment: Experiment, testbed: str, options: Mapping[str, Any]) -> str | None:
    """Whose time passes in windows; None while the testbed is not known. In the lab under KVM there is no model."""
    if testbed != Lab.name:
        return None if testbed == AUTO else REAL
    return options.get("clock") or (experiment.clock if options.get("accel", "tcg") == "tcg" else EMULATED)


def _check_nodes(nodes: int, testbed: str, cpus: int | None) -> None:
    """Raise ``BadInput`` where ``testbed`` can't have so many NUMA nodes, or has too few CPUs on each."""
    if nodes > 1 and testbed not in (AUTO, Lab.name):
        raise messages.nodes_not_of_this_testbed(nodes, testbed)
    if nodes > 1 and cpus == 2:
        raise messages.too_few_cpus(nodes, cpus)


def chosen(
    testbed: str, host_options: Mapping[str, Any], progress: Progress, prefers: str | None = None, only_in_lab: str | None = None
) -> str:
    """The testbed by name. ``auto`` is the one that an option belongs to, and the lab where something is ``only_in_lab``; else native,
    where the experiment ``prefers`` it and this host can be a testbed, or both kinds of Open vSwitch can run here with virtual machines;
    else the lab."""
    if testbed != AUTO:
        return testbed
    if host_options:
        return OPTIONS_OF[next(iter(host_options))]
    if only_in_lab:
        progress.say(only_in_lab)
        return Lab.name
    if prefers == Native.name:
        why = Native.needs()
        progress.say(messages.lab_in_its_place(why) if why else messages.native_preferred())
    else:
        why = Native.lacks()
        progress.say(messages.lab_chosen(why) if why else messages.native_chosen())
    return "lab" if why else "native"


def begin(
    campaign: Campaign, progress: Progress, seed: int | None = None, root: Path = results.ROOT, servers: Sequence[str] = ()
) -> tuple[Campaign, Results]:
    """A new campaign's folder, with all runs planned and none done; and the campaign with the cases that the testbed can run.

    ``servers``: those of an inventory that share its runs. A repetition's runs are all on one: what is compared is of one machine.
    """
    chosen = random.SystemRandom().randrange(2**32) if seed is None else seed
    # Once before anything is written: a testbed that can't come up, or can run none of it, is no result.
    seen = _look_at(campaign, progress) if len(servers) < 2 else _look_at_all(campaign, servers, progress)
    campaign = replace(campaign, cases=seen.offer.cases)
    store = Results.create(_manifest(campaign, chosen, campaign.plans(chosen), seen.facts), root)
    with store.alone():
        for record in store.manifest["runs"] if servers else ():
            record["server"] = servers[(record["repetition"] - 1) % len(servers)]
        store.manifest["left_out"] = seen.offer.left_out
        for finding in (*seen.offer.left_out, *seen.findings):
            store.find(finding)
            progress.warn(finding)
        store.save()
    return campaign, store


@dataclass(frozen=True)
class _Seen:
    """A testbed before a campaign, or several."""

    facts: dict[str, Any]
    findings: list[str]
    offer: offers.Offer


def _look_at(campaign: Campaign, progress: Progress) -> _Seen:
    with campaign.host(progress) as host:
        return _Seen(host.facts(), host.findings(), offers.of(host, campaign.experiment))


def _look_at_all(campaign: Campaign, servers: Sequence[str], progress: Progress) -> _Seen:
    """Facts are the first one's, and each one's by its name."""
    seen = {name: _look_at(campaign.on(name), progress) for name in servers}
    facts = {**seen[servers[0]].facts, "servers": {name: one.facts for name, one in seen.items()}}
    findings = [f"{name}: {finding}" for name, one in seen.items() for finding in one.findings]
    return _Seen(facts, findings, offers.common({name: one.offer for name, one in seen.items()}))


def start(campaign: Campaign, progress: Progress, seed: int | None = None, root: Path = results.ROOT) -> Results:
    """Begin a new campaign and do all its runs."""
    campaign, store = begin(campaign, progress, seed, root)
    with store.unswept(), store.alone():
        return _go(campaign, store, progress)


def resume(store: Results, progress: Progress) -> Results:
    """Do the runs of a broken campaign that are not done. Raises ``BadInput`` while somebody else does."""
    with store.unswept(), store.alone():
        store.check_raw()
        campaign = reopened(store)
        call_off_the_damaged(store, progress)
        return _go(campaign, store, progress)


def reopened(store: Results) -> Campaign:
    """The campaign that a result is of, as it began. Raises ``BadInput``."""
    manifest = store.manifest
    experiment = experiments.parse(manifest["experiment"], store.folder / results.MANIFEST)
    options = manifest.get("host_options") or {}
    if manifest["testbed"] == Lab.name:
        # One that an earlier vsprof began without a word of the clock had the emulator's.
        options = {"clock": EMULATED, **options}
    campaign = Campaign.check(manifest["name"], experiment, manifest["testbed"], manifest["lab_cpus"], options)
    # What the testbed offered when it began, so that the plans are the same.
    return replace(campaign, cases=[Case.of(case["values"]) for case in manifest["cases"]])


def call_off_the_damaged(store: Results, progress: Progress) -> list[str]:
    """What a crash or a bad disk took of a finished run's numbers is measured again, and that is said. Returns these runs."""
    runs = {run["run_id"]: run for run in store.manifest["runs"]}
    damaged = store.damaged()
    for run_id, why in damaged.items():
        runs[run_id]["status"] = "planned"
        finding = messages.done_again(run_id, why)
        store.find(finding)
        progress.warn(finding)
    return list(damaged)


def _go(campaign: Campaign, store: Results, progress: Progress) -> Results:
    records = {record["run_id"]: record for record in store.manifest["runs"]}
    todo = [plan for plan in campaign.plans(store.manifest["seed"]) if records[plan.run_id]["status"] != "done"]
    progress.begin([plan.case.case_id for plan in todo], _took(store))
    try:
        for group in turns.groups(todo, campaign.at_once):
            _do_group(campaign, group, store, records, progress)
    except BaseException:
        # Whatever ended the campaign is what must be told, even if the disk is too full to note it.
        with contextlib.suppress(errors.VsprofError):
            store.finish("partial")
        raise
    # Once more, for a full disk may have kept it from being done after the last run.
    store.join()
    store.finish("complete" if all(r["status"] == "done" for r in records.values()) else "partial")
    return store


def _do_group(campaign: Campaign, group: Sequence[Plan], store: Results, records: Mapping[str, Any], progress: Progress) -> None:
    """Do one run, or several by turns."""
    usual = experiments.usual(campaign.cases)
    cases = ", ".join(plan.case.without(usual) for plan in group)
    by_turns = len(group) > 1
    progress.start_run(f"{cases}{' by turns' if by_turns else ''}, repetition {group[0].repetition}", len(group))
    if by_turns:
        for plan in group:
            others = [other.run_id for other in group if other is not plan]
            records[plan.run_id].update(beside=others, traffics=[item.label for item in plan.traffics])
        with campaign.host(progress) as beside:
            turns.do([partial(do, campaign, plan, store, records[plan.run_id], progress, beside) for plan in group])
    else:
        do(campaign, group[0], store, records[group[0].run_id], progress)
    progress.end_run(failed=sum(records[plan.run_id]["status"] != "done" for plan in group), runs=len(group))


def _took(store: Results) -> dict[str, list[float]]:
    """Seconds of the runs that are done, by case."""
    took: dict[str, list[float]] = {}
    for record in store.manifest["runs"]:
        if record["status"] == "done" and record.get("seconds"):
            took.setdefault(record["case_id"], []).append(record["seconds"])
    return took


def do(
    campaign: Campaign,
    plan: Plan,
    store: Results,
    record: dict[str, Any],
    progress: Progress,
    beside: Testbed | None = None,
    turn: Turn = run.ALONE,
) -> None:
    """Do one run and record it; a run that fails is recorded as failed, and the campaign goes on. By ``turn``, on a testbed ``beside``
    another one, if there are others.

    One that fails in the lab is tried once more: the next attempt has a new instance, and what made one of many instances fail is
    seldom in the experiment.
    """
    began = time.monotonic()
    record.update(started=results.now(), status="running", error=None)
    if not beside:
        record.pop("beside", None)
    store.save()
    tries = TRIES_IN_LAB if campaign.testbed == Lab.name else 1
    for left in reversed(range(tries)):
        folder = store.run_folder(plan.run_id)
        try:
            _fresh(folder)
            say, look = progress.of(plan.run_id) if beside else (progress.say, progress.look)
            host = campaign.on(record.get("server")).host(progress, beside)
            outcome = run.execute(host, plan, campaign.setting, folder, say, look, turn)
            tables = parse.tables_of_run(folder)
        except errors.BadInput:
            raise
        except OSError as error:
            if _interrupted(error):
                raise KeyboardInterrupt from error
            # Not this run's fault: the next ones could not be recorded either.
            raise messages.can_not_write(folder, error) from error
        except (errors.VsprofError, subprocess.SubprocessError, ValueError, LookupError) as error:
            if _interrupted(error):
                raise KeyboardInterrupt from error
            first = _first(error)
            again = left > 0 and not isinstance(first, errors.NotOffered)
            _note_failure(plan, store, record, progress, first, again=again)
            if not again:
                break
        else:
            _note_success(plan, store, record, outcome)
            if not turn.given:
                # It never stood still: it went on as one that is alone.
                record.pop("beside", None)
            record["seconds"] = round(time.monotonic() - began - turn.waited_s, 1)
            return store.record(plan.run_id, *tables)
    record["seconds"] = round(time.monotonic() - began - turn.waited_s, 1)
    store.save()


def _interrupted(error: BaseException | None) -> bool:
    """Whether a run failed because it was to end. What it speaks with, ssh say, had the same Ctrl-C; so taking away what it had made may
    fail, and that error hides the interruption."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _first(error: BaseException) -> BaseException:
    """What failed first. Where it made everything be taken away, and that failed, too, the later error hides it."""
    while error.__cause__ is None and isinstance(error.__context__, errors.VsprofError):
        error = error.__context__
    return error


def _note_failure(plan: Plan, store: Results, record: dict[str, Any], progress: Progress, error: BaseException, *, again: bool) -> None:
    if again:
        record.setdefault("failed_before", []).append(f"{error}")
        store.find(messages.failed_and_repeated(plan.run_id, plan.case.case_id, error))
        progress.warn(f"{plan.run_id} failed, and is repeated: {error}")
    else:
        # No finding: a report names the runs that failed, and one that is done later did not.
        record.update(status="failed", error=f"{error}")
        progress.fail(f"{plan.run_id} failed: {error}")


def _note_success(plan: Plan, store: Results, record: dict[str, Any], outcome: run.Outcome) -> None:
    record.update(placement=outcome.placement, cpu_roles=outcome.cpu_roles)
    store.manifest["facts"]["switches"][plan.case.switch] = outcome.facts["switch"]
    if plan.case.options:
        # The same switch is set up in another way in the next case.
        ours = {name: outcome.facts[name] for name in ("switch", "endpoints", "kernel") if name in outcome.facts}
        if experiments.of_processor(plan.case.options):
            ours["processor"] = outcome.facts["collectors"][experiments.PROCESSOR]["profile"]
        store.manifest["facts"].setdefault("cases", {})[plan.case.case_id] = ours
    if clock := outcome.facts.get("clock"):
        record["clock"] = clock
        store.manifest["facts"]["clock"] = {name: clock[name] for name in ("cpu", "cpu_name", "frequency_hz", "quantum_s")}
    # A result that an earlier vsprof began has none.
    store.manifest["facts"].setdefault("collectors", {}).update(outcome.facts["collectors"])
    vocabulary.note(store.manifest, outcome.vocabulary)
    for name, why in outcome.left_out.items():
        store.find(f"{name} left out with {plan.case.switch}: {why}")


def _fresh(folder: Path) -> None:
    """Make room for a run's folder; what a broken attempt left is kept beside it."""
    if folder.exists():
        number = len(list(folder.parent.glob(f"{folder.name}.broken*")))
        folder.rename(folder.with_name(f"{folder.name}.broken{number}"))


def _manifest(campaign: Campaign, seed: int, plans: Sequence[Plan], facts: dict[str, Any]) -> dict[str, Any]:
    given = campaign.experiment.model_dump(mode="json", by_alias=True)
    return {
        "schema_version": schema.VERSION,
        "name": campaign.name,
        "experiment": given,
        "status": "partial",
        "started": results.now(),
        "ended": None,
        "seed": seed,
        "git": _git(),
        "testbed": campaign.testbed,
        "lab_cpus": campaign.cpus,
        "host_options": campaign.host_options,
        "host": host_facts(),
        "facts": {**facts, "switches": {}, "collectors": {}},
        "cases": [
            {"case_id": case.case_id, "values": case.values, "frame_bytes_without_fcs": without_fcs(case.frame_bytes)}
            for case in campaign.cases
        ],
        "runs": [
            {
                "run_id": plan.run_id, "case_id": plan.case.case_id, "repetition": plan.repetition, "order": order,
                "status": "planned", "error": None, "started": None, "seconds": None, "cpu_roles": {}, "placement": [],
                "traffics": [item.label for item in plan.traffics],
            }
            for order, plan in enumerate(plans)
        ],
        "left_out": [],
        "findings": [],
        "vocabulary": vocabulary.of(
            {case.switch: experiments.SWITCHES[case.switch] for case in campaign.cases},
            {item.kind: experiments.TRAFFIC[item.kind] for item in campaign.traffics},
        ).to_json(),
    }  # fmt: skip


def host_facts() -> dict[str, Any]:
    """The machine that vsprof itself runs on."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    fields = dict(map(str.strip, line.split(":", 1)) for line in cpuinfo.split("\n\n", 1)[0].splitlines() if ":" in line)
    memory = next(int(line.split()[1]) * 1024 for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal:"))
    os_release = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    return {
        "cpu_model": fields.get("model name", "unknown"),
        "microcode": fields.get("microcode", "unknown"),
        "cpus": cpuinfo.count("processor\t"),
        "memory_bytes": memory,
        "kernel": platform.release(),
        "os": os_release.get("PRETTY_NAME", "unknown"),
        "python": platform.python_version(),
    }


def _git() -> dict[str, Any]:
    """The project's commit, and whether the working tree differs from it; unknown outside a clone."""

    def ask(*words: str) -> str | None:
        try:
            asked = subprocess.run(["git", "-C", str(PROJECT), *words], capture_output=True, text=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return asked.stdout.strip() if asked.returncode == 0 else None

    changes = ask("status", "--porcelain")
    return {"commit": ask("rev-parse", "HEAD"), "dirty": None if changes is None else bool(changes)}
