# SPDX-License-Identifier: GPL-2.0-or-later
"""What was run, and where: the tables that open a report, out of the manifest alone."""

import html
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vsprof.analysis import disturbed, figures, functions, messages, metrics, model, plausible, series, stats, style, vocabulary
from vsprof.analysis.load import Result, worded
from vsprof.analysis.source import Source
from vsprof.analysis.sources import HARDWARE, MODEL, SOFTWARE
from vsprof.terms import schema, units

BEYOND = {
    "search_upper_unsent": "not sent",
    "search_upper_lost_before_switch": "lost before the switch",
    "search_upper_lost_in_switch": "lost in it",
    "search_upper_lost_after_switch": "lost after it",
}
"""What became of packets at the lowest rate that was too high."""
ASKED_FIRST = ("instructions", "cycles", "cpi", "l1d_misses", "llc_misses", "dtlb_misses", "branch_misses")
"""Of a processor, for each traffic that carries something: in a table of its own."""
FUNCTIONS = 5
"""How many of those with most misses are shown."""
MISSES = ("l1d_misses", "llc_misses", "dtlb_walks", "branch_misses")


def _asked(result: Result, source: Source) -> list[tuple[str, str, str, str]]:
    """The numbers that a reader asks for first: traffic, load, metric, words."""
    if source is SOFTWARE:
        return vocabulary.headlines(metrics.sent(result))
    words, found = vocabulary.per_data(), []
    for traffic, load in metrics.carrying(result):
        for counter in ASKED_FIRST:
            per = "" if counter == "cpi" else f" per {words[traffic]}"
            text = model.WORDS[counter] + per
            shown = text if source is MODEL else text.replace("estimated ", "").replace(" (1st level)", ", 1st level")
            found.append((traffic, load, source.prefix + counter + per.replace(" ", "_"), shown))
    return found


@dataclass(frozen=True)
class Table:
    """A table in a notebook; what it shows is text already."""

    frame: pd.DataFrame

    def _repr_html_(self) -> str:
        return self.frame.to_html(index=False, border=0, na_rep="–", escape=True)


def question(result: Result) -> str:
    asked = " ".join(str(_experiment(result).get("question") or "No question was recorded.").split())
    return f"> {html.escape(asked, quote=False)}"


def what(result: Result) -> Table:
    """The experiment: what was fixed, what varied, how often and how long."""
    experiment = _experiment(result)
    windows = experiment.get("windows") or {}
    done = sum(run.get("status") == "done" for run in result.manifest.get("runs", []))
    rows = {
        "cases": "; ".join(result.cases["label"]),
        "topology": ", ".join(sorted(set(result.cases["topology"].dropna()))),
        "fixed": _pairs(experiment.get("fixed")),
        "varied": _pairs(experiment.get("vary")),
        **({"changed": "; ".join(map(worded, result.changes))} if result.changes else {}),
        "traffic": "; ".join(style.traffic_name(*pair) for pair in metrics.sent(result)),
        "repetitions": f"{experiment.get('repetitions', '–')} wanted; {done} runs done, {len(result.failed)} failed",
        "windows": _windows(result, windows),
        "order": f"random (seed {result.manifest.get('seed', '–')}){_by_turns(result)}",
        "collectors": ", ".join(sorted(set(result.frame["collector"].unique()) - set(result.frame["traffic"].unique()))),
        "started": result.manifest.get("started"),
        "ended": result.manifest.get("ended"),
        "result": f"{result.path.name} ({result.manifest.get('status', '–')})",
    }
    return listed(rows)


def _by_turns(result: Result) -> str:
    there = any(run.get("beside") for run in result.manifest.get("runs", []))
    return "; the cases of a repetition had their windows in turn, forwards and backwards" if there else ""


def where(result: Result) -> Table:
    """The testbed, the machine below it, and the versions that ran."""
    facts, host, git = (result.manifest.get(key) or {} for key in ("facts", "host", "git"))
    versions = facts.get("versions") or {}
    hugepages = facts.get("hugepages_2mib", facts.get("hugepages"))
    rows = {
        "testbed": result.testbed + _whose_time(result),
        **({"its servers": ", ".join(facts["servers"])} if "servers" in facts else {}),
        "its CPUs": _cpus(facts),
        "its memory": _memory(facts),
        "its hugepages": None if hugepages is None else f"{hugepages} of 2 MiB",
        "its kernel": _kernels(result) or facts.get("kernel"),
        "its kernel command line": facts.get("kernel_command_line"),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "placement": _placement(result),
        "machine below": f"{_cpus(host)}, {_memory(host)}, kernel {host.get('kernel', '–')}, {host.get('os', '–')}",
        "vsprof": f"{str(git.get('commit', '–'))[:12]}{' (with local changes)' if git.get('dirty') else ''}",
    }
    return listed(rows)


def _kernels(result: Result) -> str:
    """Those that the cases booted, as `uname` named each; empty where none was asked for."""
    facts = result.facts
    booted = [f"{values['kernel']}: {facts[case]['kernel']}" for case, values in result.values.items() if "kernel" in facts.get(case, {})]
    return "; ".join(dict.fromkeys(booted))


def headlines(result: Result, source: Source = SOFTWARE) -> Table | str:
    """The headline numbers of a source by case: median [low, high]; of a processor, its packet path's. n is named where it differs from the
    rest. Where no PMU counted, nothing."""
    if not source.present(result):
        return f"*{messages.not_shown('the modelled processor', MODEL.missing(result, ()))}*" if source is MODEL else ""
    found = {label: estimates(result, case, source) for case, label in result.cases["label"].items()}
    rows = {}
    for *where, words in _asked(result, source):
        shown = {label: _headline(*one[tuple(where)], result.repetitions) for label, one in found.items() if tuple(where) in one}
        if shown:
            rows[f"{style.traffic_name(*where[:2])}: {words}"] = {label: shown.get(label, "–") for label in found}
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=list(result.cases["label"]))
    what = "median" if source is SOFTWARE else source.label(result)
    return Table(frame.rename_axis(f"{what} [95 % interval], n={result.repetitions}").reset_index())


def modelled_processor(result: Result) -> Table | str:
    """Which processor was modelled, and how well its values are known."""
    found = model.profile(result)
    if not found:
        return ""
    if any(name.startswith("cpu.") for varied in result.varied.values() for name in varied):
        return f"Cases differ in their processor ({result.modelled}); the manifest has each one's values (`facts.cases`)."
    sources = [str(value.get("source")) for value in found.get("values", {}).values()]
    guessed = ", ".join(f"{sources.count(word)} {word}" for word in ("assumed", "fitted"))
    rows = {
        "processor": found.get("name"),
        "CPU profile": found.get("id"),
        "description": found.get("description"),
        "frequency": units.si(found.get("frequency_hz"), "hertz"),
        "its values": f"{len(sources)}, of which {guessed}; the rest with a reference",
        "counts as TLB miss": "not in the first level; a walk: nor in the second",
    }
    return listed(rows)


def searches(result: Result) -> Table:
    """How each search went: what was found, between which bounds, in how many trials, and what was missing at the rate above."""
    found = SOFTWARE.summary(result, metrics.SEARCH)
    by = found.pivot_table(index=["case_id", "label", "traffic", "load"], columns="metric", values="median", sort=False)
    ended = {"metric": "search_ended"}
    rows = [
        {
            "case": label,
            "load": vocabulary.LOADS[load],
            **_search(one, metrics.happened(result, **ended, case_id=case, traffic=traffic, load=load)),
        }
        for (case, label, traffic, load), one in by.reindex(columns=list(metrics.SEARCH)).iterrows()
    ]
    return Table(pd.DataFrame(rows))


def _search(one: pd.Series, ended: tuple[int, int]) -> dict[str, str]:
    """A row of medians over repetitions in words; of the rate's, over those that found one."""
    shown = {"rate found": "search_rate", "carried": "search_lower_bound", "too high": "search_upper_bound"}
    beyond = [f"{words} {number(one[name], 'fraction')}" for name, words in BEYOND.items() if one[name] > 0]
    return {
        **{words: number(one[name], metrics.SEARCH[name]) for words, name in shown.items()},
        "searches that found one": f"{ended[0]} of {ended[1]}",
        "trials": f"{one.search_trials:g} in {units.duration(one.search_seconds)}",
        "bad ones at the rate carried": f"{one.search_lower_bad:g} of {one.search_lower_trials:g}" if one.search_lower_trials else "–",
        "of what was due at the rate too high": ", ".join(beyond) or "–",
    }


def misses(result: Result) -> Table | str:
    """For each kind of miss and case the functions that have most of them per packet, at saturation.

    A cell has the misses per packet, their share of all, the function and the role of the thread; the first row of a kind has the sum
    over all functions, those that were not kept among them.
    """
    where = functions.profiled(result)
    rows = [row for counter in MISSES for row in _missed(result, counter, where)] if where else []
    if not rows:
        return f"*{messages.not_shown('functions by misses', functions.missing(result))}*"
    # A short header: functions need the room.
    return Table(pd.DataFrame(rows, columns=["per packet (modelled)", *result.cases["label"]]))


def _missed(result: Result, counter: str, where: dict[str, str]) -> list[list[str]]:
    """Of one kind: the sums, then the functions by rank."""
    found = {case: functions.hottest(result, case, counter, FUNCTIONS, **where) for case in result.cases.index}
    if all(one.empty for one in found.values()):
        return []
    metric = f"model_{counter}_per_{vocabulary.per_data()[where['traffic']]}"
    sums = [MODEL.estimate(result, case_id=case, metric=metric, **where).median for case in found]
    ranks = range(max(len(one) for one in found.values()))
    ranked = [[f"{place + 1}.", *(_function(one, place) for one in found.values())] for place in ranks]
    return [[model.WORDS[counter], *(f"{units.significant(value)} in all" if pd.notna(value) else "–" for value in sums)], *ranked]


def _function(found: pd.DataFrame, place: int) -> str:
    if place >= len(found):
        return "–"
    row = found.iloc[place]
    share = f" ({units.significant(100 * row['share_of_all'], 2)} %)" if pd.notna(row["share_of_all"]) else ""
    return f"{units.significant(row['median'])}{share}: {functions.named(row['object'], row['function'])}, {row['role']}"


def hardware_heading(result: Result) -> str:
    """What opens the part on the processor's own counters, with what the preflight found; nothing where no PMU counted."""
    if not HARDWARE.present(result):
        return ""
    said = HARDWARE.facts(result)
    found = "".join(f"\n- *{one['name']}*, {one['state']}: {one['text']}" for one in said.get("preflight", []))
    return (
        f"## What the processor's own counters say\nCounted by perf stat on each CPU: {HARDWARE.label(result)}, events of `"
        f"{said.get('microarchitecture', '–')}`. A count's words are those of the modelled processor where both mean the same, but it is "
        f"another processor, and polls cost it something else: nothing here is set against the model.\n\nThe preflight found:\n{found}"
    )


def limits(result: Result) -> str:
    """What a reader must know about these very numbers, as a list."""
    found = all_limits(result) or ["Nothing was left out, and no run failed."]
    return "\n".join(f"- {_escaped(text)}" for text in found)


def _escaped(text: str) -> str:
    """A message's `<not supported>` is no tag. What stands in backticks is left: Markdown takes it as it is."""
    return "`".join(part if inside else html.escape(part, quote=False) for part, inside in zip(text.split("`"), itertools.cycle((0, 1))))


def all_limits(result: Result) -> list[str]:
    """Of the result, of its units, its series and their order, of counts that can't be true, and of the model's and the PMU's numbers."""
    numbers = result.frame[["collector", "unit", "name"]].drop_duplicates().dropna().itertuples(index=False, name=None)
    looks = (figures.not_taken, series.limits, plausible.limits, disturbed.limits, MODEL.limits, HARDWARE.limits)
    return [*result.limits(), *units.unknown(numbers), *(text for look in looks for text in look(result))]


def estimates(result: Result, case: str, source: Source) -> dict[tuple[str, str, str], tuple[stats.Estimate, str]]:
    """The headline estimates of one case with their units, by traffic, load and metric, for `vsprof show`."""
    found = {}
    for traffic, load, metric, _ in _asked(result, source):
        where = {"traffic": traffic, "load": load, "metric": metric}
        if (estimate := source.estimate(result, case_id=case, **where)).n:
            found[traffic, load, metric] = (estimate, source.unit(result, **where))
    return found


def _headline(one: stats.Estimate, unit: str, repetitions: int) -> str:
    # Where each case ran once, the table's head says so.
    return with_interval(one, unit, *([""] if repetitions == 1 else [])) + (f" n={one.n}" if one.n != repetitions else "")


def number(value: float | None, unit: str) -> str:
    """As tables have it: a fraction in percent, a count without its unit."""
    if pd.notna(value) and unit == "fraction":
        return f"{units.significant(100 * value)} %"
    return units.si(value, "" if unit.startswith(("events", "instructions/", "cycles/")) else unit)


def with_interval(one: Any, unit: str, without: str = " (no interval)", shown: Callable[[float | None, str], str] = number) -> str:
    """`33.4 kpps [32.9, 34.0]`, of an estimate or of a summary's row; `without` stands behind a number that has no interval."""
    middle, *bounds = [shown(value, unit) for value in (one.median, one.low, one.high)]
    if pd.isna(one.low):
        return middle + without
    # The unit is not told again where all three share it.
    if len({text.partition(" ")[2] for text in (middle, *bounds)}) == 1:
        bounds = [text.partition(" ")[0] for text in bounds]
    return f"{middle} [{', '.join(bounds)}]"


def _whose_time(result: Result) -> str:
    if result.modelled:
        return f" (an emulated host; its time is that of the modelled processor, {result.modelled})"
    return " (an emulated host: its clock rates are the emulator's)" if result.emulated else ""


def _windows(result: Result, windows: dict[str, Any]) -> str:
    asked = {name: windows.get(name, "–") for name in ("count", "seconds", "warmup_seconds", "own_count", "own_seconds")}
    if result.modelled:
        seconds, warm_up = (windows.get(f"modelled_{name}", "–") for name in ("seconds", "warmup_seconds"))
        every = f"{asked['count']} of {seconds} s of modelled time in each run and traffic"
        return f"{every}, unless a traffic has its own, after {warm_up} s at least"
    shown = f"{asked['count']} of {asked['seconds']} s in each run and traffic, after {asked['warmup_seconds']} s of warm-up"
    owners = sorted({str(schema.window_owner(window)) for window in result.own_numbers["window"].unique()})
    alone = f"; then {asked['own_count']} of {asked['own_seconds']} s or more for {', '.join(owners)} alone"
    return shown + alone * bool(owners)


def listed(rows: dict[str, Any]) -> Table:
    """A row a value, behind its name; a dash where none was recorded."""
    shown = {name: "–" if value in (None, "") else str(value) for name, value in rows.items()}
    return Table(pd.DataFrame({"": list(shown), "as recorded": list(shown.values())}))


def _pairs(values: Any) -> str:
    if not isinstance(values, dict):
        return str(values or "")
    return "; ".join(f"{name} {', '.join(map(str, one)) if isinstance(one, list) else one}" for name, one in values.items())


def _placement(result: Result) -> str:
    """What each CPU was for, case by case, from the first run of each."""
    texts = {}
    for run in result.manifest.get("runs", []):
        if run["case_id"] in result.cases.index and run.get("cpu_roles"):
            text = ", ".join(f"cpu{cpu} {role}" for cpu, role in sorted(run["cpu_roles"].items()))
            texts.setdefault(text, []).append(result.cases.loc[run["case_id"], "label"])
    return "; ".join(f"{', '.join(dict.fromkeys(labels))}: {text}" for text, labels in texts.items())


def _cpus(facts: dict[str, Any]) -> str:
    return f"{facts.get('cpus', '–')} × {facts.get('cpu_model', '–')}"


def _memory(facts: dict[str, Any]) -> str:
    size = facts.get("memory_bytes")
    return units.gib(size) if isinstance(size, int | float) else "–"


def _experiment(result: Result) -> dict[str, Any]:
    return result.manifest.get("experiment") or {}
