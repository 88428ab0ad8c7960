# SPDX-License-Identifier: GPL-2.0-or-later
"""One run: one case executed once, on a testbed as fresh as after a boot.

testbed, switch, endpoints, then each traffic in turn with its warm-up and windows; everything is taken away at the end,
whatever happened: where the testbed is thrown away, with it.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vsprof.collectors.base import Apart, Between, Clock, Collector
from vsprof.runner import experiment as experiments
from vsprof.runner import messages, window
from vsprof.runner.between import Looks
from vsprof.runner.experiment import COLLECTORS, SWITCHES, TOPOLOGIES, TRAFFIC, Case, TrafficItem, Windows
from vsprof.runner.live import Look, Watch
from vsprof.runner.turns import Turn
from vsprof.switches.base import Switch
from vsprof.terms import errors, schema
from vsprof.terms.placement import PAIR
from vsprof.terms.vocabulary import CollectorWords
from vsprof.testbeds.base import MODELLED, Testbed
from vsprof.workloads.topologies.base import Topology
from vsprof.workloads.traffic.base import Traffic

Say = Callable[[str], None]
ALONE = Turn()
BEFORE_MODELLED_S = 0.2
"""The most that a traffic flows before time is modelled, in which it warms up again."""


@dataclass(frozen=True)
class Plan:
    """One run to be done."""

    run_id: str
    case: Case
    repetition: int
    traffics: tuple[TrafficItem, ...]
    """In the order in which this run sends them."""
    seed: int = 0
    """Of all that is random in the run, 0 to 2**32 - 1, unless a collector is given another."""


@dataclass(frozen=True)
class Setting:
    """What all runs of a campaign share."""

    experiment: str
    windows: Windows
    collectors: Sequence[str]
    named: frozenset[str]
    """Collectors that were named outright: one of them that can't work stops the campaign instead of being left out."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of each collector that has any."""


@dataclass
class Outcome:
    """What a finished run adds to the manifest."""

    facts: dict[str, Any]
    """Of the switch, the endpoints, the collectors and the clock, by these words, and the kernel where the case has one; those of the
    testbed are the campaign's."""
    placement: list[dict[str, Any]]
    cpu_roles: dict[int, str]
    left_out: dict[str, str]
    """Collectors and traffics that could not work, and why."""
    vocabulary: dict[str, CollectorWords] = field(default_factory=dict)
    """What each collector says of its numbers."""


def execute(
    host: Testbed, plan: Plan, setting: Setting, folder: Path, say: Say, look: Look = lambda seen: None, turn: Turn = ALONE
) -> Outcome:
    """Do one run on ``host`` (not yet opened) and record it in ``folder``. ``look`` is told what CPUs do while a window
    lasts, and what it came to. ``turn``: of a run that has others beside it.

    Raises ``RunFailed``, or another ``VsprofError``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as undo:
        say("resuming the testbed")
        undo.enter_context(host)
        kernel, boots = plan.case.options.get("kernel"), TOPOLOGIES[plan.case.topology].boots(plan.case.options)
        # Asked when the campaign began; a server may have booted since, and the campaign be resumed.
        if boots and (why := host.boot_lacking(**boots)):
            raise messages.can_not_boot(why)
        if kernel or boots:
            host.boot(kernel, **boots)
        switch, topology = _parts(host, plan.case)
        if host.thrown_away:
            undo.callback(topology.close)
        else:
            undo.callback(switch.stop)
            undo.callback(topology.stop)
        undo.callback(_keep_logs, host, folder)
        topology.boot()
        # Not before: a testbed that was asked anything can't come up with its virtual machines booted. They stand still.
        for name in setting.collectors:
            COLLECTORS[name].ask_ahead(host)
        say(f"starting {plan.case.switch}")
        switch.start()
        say("starting the endpoints")
        with host.polling_last(switch.plan.movers):
            topology.start()
            switch.ready()
        with host.polling_last(switch.plan.own):
            collectors, left_out = _set_up(host, plan, setting, undo)
            facts = {"switch": switch.facts(), "endpoints": topology.facts(), "collectors": _facts(collectors)}
            if kernel:
                facts["kernel"] = host.run("uname -rv").stdout.strip()
        words = {name: one.vocabulary() for name, one in collectors.items()}
        run = _describe(plan, setting, host, topology, collectors)
        for item in plan.traffics:
            if why := _traffic(item, plan, topology).unavailable():
                left_out[item.label] = why
                continue
            with _explained(topology):
                sent = _send(item, plan, setting, topology, collectors, folder, say, look, turn)
            run["traffics"].append(sent)
            if sent["no_windows"]:
                left_out[f"windows of {item.label}"] = sent["no_windows"]
            topology.check()
        (folder / "run.json").write_text(json.dumps(run, indent=1))
        placement = topology.placement().to_json()
        if host.clock == MODELLED:
            facts["clock"] = _clock(collectors)[1].clock_facts()
    return Outcome(facts, placement["threads"], placement["cpu_roles"], left_out, words)


def _parts(host: Testbed, case: Case) -> tuple[Switch, Topology]:
    """The switch of a case and its endpoints, not yet begun. Raises ``RunFailed`` where the host has too little room for them."""
    duties, kind = experiments.duties(case.values), SWITCHES[case.switch]
    if duties.endpoints > PAIR.endpoints and (why := host.room_lacking(duties.endpoints, dpdk=kind.takes_devices)):
        raise messages.can_not_boot(why)
    switch = kind(host, host.plan(duties), case.options)
    topology = TOPOLOGIES[case.topology](host, switch, switch.plan, case.access, case.options, case.frame_bytes, case.flows)
    return switch, topology


@contextlib.contextmanager
def _explained(topology: Topology) -> Iterator[None]:
    """Where something fails because a process died, that is what must be told, not who missed it first."""
    try:
        yield
    except errors.RunFailed as error:
        try:
            topology.check()
        except errors.RunFailed as died:
            raise died from error
        raise


def _set_up(host: Testbed, plan: Plan, setting: Setting, undo: contextlib.ExitStack) -> tuple[dict[str, Collector], dict[str, str]]:
    """Make the collectors ready; those that can't work are left out with the reason, or raise where named outright. What only
    another switch has is left out in any case."""
    ready, left_out = {}, {}
    for name in setting.collectors:
        collector = COLLECTORS[name](host, **_options(name, plan, setting))
        elsewhere = collector.not_of_this_switch()
        if why := elsewhere or _no_windows_for(collector, host) or collector.unavailable():
            if name in setting.named and not elsewhere:
                raise messages.collector_unavailable(name, why)
            left_out[name] = why
            continue
        undo.callback(collector.teardown)
        collector.setup()
        ready[name] = collector
    return ready, left_out


def _options(name: str, plan: Plan, setting: Setting) -> Mapping[str, Any]:
    one, options = COLLECTORS[name], setting.options.get(name, {})
    return one.options_of(plan.case.options, {"seed": plan.seed, **options}) if issubclass(one, Clock) else options


def _no_windows_for(collector: Collector, host: Testbed) -> str | None:
    """Why it has no windows on ``host``, or None."""
    return messages.no_own_windows() if isinstance(collector, Apart) and host.clock == MODELLED else None


def _send(
    item: TrafficItem,
    plan: Plan,
    setting: Setting,
    topology: Topology,
    collectors: dict[str, Collector],
    folder: Path,
    say: Say,
    look: Look,
    turn: Turn,
) -> dict[str, Any]:
    """Send one traffic, measure its windows, and return its entry of run.json."""
    into = folder / item.label
    traffic = _traffic(item, plan, topology)
    traffic.say = lambda text: say(f"{item.label}: {text}")
    traffic.beside = tuple(other.settings for other in plan.traffics if other.kind == item.kind)
    if topology.host.clock == MODELLED:
        traffic.clock = _clock(collectors)[1]
    looks = Looks(topology.host, _between(collectors))
    looks.look()
    traffic.say("warm-up")
    traffic.start()
    no_windows = traffic.nothing_flows()
    if not no_windows:
        modelled = topology.host.clock == MODELLED
        time.sleep(min(setting.windows.warmup_seconds, BEFORE_MODELLED_S) if modelled else setting.windows.warmup_seconds)
        traffic.check()
        topology.switch.settle(plan.case.flows if "flows" in traffic.factors else 1)
    with topology.host.polling_last(topology.plan.own):
        placement = topology.placement()
    if not no_windows:
        ports = [route.receiver_port.name for route in topology.routes]
        watch = Watch(look, item.label, plan.case.switch, ports, placement, traffic.clock and _clock(collectors)[1])
        if traffic.clock:
            _measure_in_modelled_time(traffic, setting.windows, collectors, into, watch, looks)
        else:
            _measure(traffic, setting.windows, collectors, into, watch, looks, turn if traffic.stands_still() else ALONE)
    (into / "traffic").mkdir(parents=True)
    for name, text in traffic.stop().items():
        (into / "traffic" / name).write_text(text)
    looks.look()
    described = {"kind": item.kind, "load": item.settings.load, "label": item.label}
    return {**described, "placement": placement.to_json(), "no_windows": no_windows}


def _measure(
    traffic: Traffic, windows: Windows, collectors: Mapping[str, Collector], into: Path, watch: Watch, looks: Looks, turn: Turn
) -> None:
    """All windows of a traffic that flows: first those that all collectors share, each in this run's ``turn``, then the own ones."""
    host, shared = traffic.topology.host, _shared(collectors)
    # To any other traffic a look would be a gap: frames lost, and replies late.
    look = looks.look if traffic.stands_still() else lambda: None
    for number in range(1, windows.count + 1):
        turn.give(host)
        traffic.say(f"window {number} of {windows.count}")
        for one in shared.values():
            one.next_window(number, windows.count)
        watch.begin(number, windows.count)
        look()
        window.measure(host, traffic, shared, windows.seconds, into / f"w{number}")
        looks.window(into / f"w{number}")
        look()
        watch.end(into / f"w{number}", shared)
        traffic.check()
    # What follows takes longer: it must not lie between the others' last windows.
    turn.give(host)
    if apart := {name: one for name, one in collectors.items() if isinstance(one, Apart)}:
        traffic.before_own_windows()
        for name, collector in apart.items():
            _measure_apart(name, collector, traffic, windows, into)
    traffic.after_windows()


def _measure_in_modelled_time(
    traffic: Traffic, windows: Windows, collectors: Mapping[str, Collector], into: Path, watch: Watch, looks: Looks
) -> None:
    """All windows of a traffic that flows, in the modelled processor's time: all collectors count in the same ones.

    What the model counted is kept apart all the same: as in a window of its own, which lasted from mark to mark, without any probe.
    """
    host = traffic.topology.host
    name, clock = _clock(collectors)
    shared = _shared(collectors)
    seconds = max(traffic.settings.modelled_seconds or windows.modelled_seconds, traffic.least_seconds())
    for number in range(1, windows.count + 1):
        traffic.say(f"window {number} of {windows.count}, {seconds:g} s of modelled time")
        for one in shared.values():
            one.next_window(number, windows.count)
        warmup = windows.modelled_warmup_seconds
        counted = into / schema.own_window(name, number) / f"{name}.end"
        watch.begin(number, windows.count)
        window.measure_modelled(host, traffic, shared, clock, seconds, warmup, into / f"w{number}", counted, watch)
        looks.window(into / f"w{number}")
        watch.end(into / f"w{number}", shared, counted)
        traffic.check()
    traffic.after_windows()


def _clock(collectors: Mapping[str, Collector]) -> tuple[str, Clock]:
    """The collector that drives the testbed's clock, and its name."""
    return next((name, one) for name, one in collectors.items() if isinstance(one, Clock))


def _traffic(item: TrafficItem, plan: Plan, topology: Topology) -> Traffic:
    return TRAFFIC[item.kind](topology, item.settings, plan.case.frame_bytes, plan.case.flows)


def _measure_apart(name: str, collector: Apart, traffic: Traffic, windows: Windows, into: Path) -> None:
    try:
        traffic.say(f"engaging {name}")
        collector.engage()
        for number in range(1, windows.own_count + 1):
            traffic.say(f"{name}'s own window {number} of {windows.own_count}")
            recorded = collector.measure(windows.own_seconds)
            folder = into / schema.own_window(name, number)
            folder.mkdir(parents=True)
            (folder / f"{name}.end").write_text(recorded)
    finally:
        collector.disengage()
    traffic.check()


def _facts(collectors: Mapping[str, Collector]) -> dict[str, Any]:
    return {name: said for name, one in collectors.items() if (said := one.facts())}


def _shared(collectors: Mapping[str, Collector]) -> dict[str, Collector]:
    """The collectors whose commands are in a window's script."""
    return {name: one for name, one in collectors.items() if not isinstance(one, Apart | Between | Clock)}


def _between(collectors: Mapping[str, Collector]) -> dict[str, Between]:
    return {name: one for name, one in collectors.items() if isinstance(one, Between)}


def _describe(plan: Plan, setting: Setting, host: Testbed, topology: Topology, collectors: Mapping[str, Collector]) -> dict[str, Any]:
    """What parsing the run again takes, beside what was printed."""
    case = plan.case
    where = {
        "experiment": setting.experiment, "run_id": plan.run_id, "case_id": case.case_id, "repetition": plan.repetition,
        "testbed": host.name, **case.values,
    }  # fmt: skip
    ports = {
        "sender_ports": [route.sender_port.name for route in topology.routes],
        "receiver_ports": [route.receiver_port.name for route in topology.routes],
    }
    return {"where": where, "clock": host.clock, **ports, "collectors": [*_shared(collectors), *_between(collectors)], "traffics": []}


def _keep_logs(host: Testbed, folder: Path) -> None:
    """Keep what the switch and the endpoints printed; on the way out of a run that failed, this is what tells why."""
    with contextlib.suppress(errors.VsprofError, OSError):
        logs = host.run("cd /run && tail -v -c 100000 vsprof-*.log *.console 2>/dev/null", check=False).stdout
        (folder / "logs.txt").write_text(logs)
