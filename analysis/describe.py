# SPDX-License-Identifier: GPL-2.0-or-later
"""What was run, and where: the tables that open a report, out of the manifest alone."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis import figures, hardware, messages, metrics, model, series, stats, style, vocabulary
from analysis.load import Result, worded
from analysis.source import Source
from analysis.sources import HARDWARE, MODEL, SOFTWARE
from terms import schema, units

BEYOND = {
    "search_upper_unsent": "not sent",
    "search_upper_lost_before_switch": "lost before the switch",
    "search_upper_lost_in_switch": "lost in it",
    "search_upper_lost_after_switch": "lost after it",
}
"""What became of packets at the lowest rate that was too high."""

MODEL_METRICS = (
    ("model_instructions_per_{}", "instructions per {}"),
    ("model_cycles_per_{}", "estimated cycles per {}"),
    ("model_cpi", "estimated CPI"),
    ("model_l1d_misses_per_{}", "L1D misses per {}"),
    ("model_llc_misses_per_{}", "LLC misses per {}"),
    ("model_dtlb_misses_per_{}", "DTLB misses (1st level) per {}"),
    ("model_branch_misses_per_{}", "branch misses per {}"),
)
"""The same of the modelled processor, for each traffic that carries something: in a table of their own."""


def _of_result(result: Result) -> list[tuple[str, str, str, str]]:
    """The numbers that a reader asks for first: traffic, load, metric, words."""
    return vocabulary.headlines(metrics.sent(result))


def _of_model(result: Result) -> list[tuple[str, str, str, str]]:
    words = vocabulary.per_data()
    return [
        (traffic, load, metric.format(words[traffic]), text.format(words[traffic]))
        for traffic, load in metrics.carrying(result)
        for metric, text in MODEL_METRICS
    ]


def _of_hardware(result: Result) -> list[tuple[str, str, str, str]]:
    """The same of the processor's own counters."""
    return [
        (traffic, load, metric.replace("model_", hardware.PREFIX), words.replace("estimated ", "").replace(" (1st level)", ", 1st level"))
        for traffic, load, metric, words in _of_model(result)
    ]


@dataclass(frozen=True)
class Table:
    """A table in a notebook; what it shows is text already."""

    frame: pd.DataFrame
    index: bool = False

    def _repr_html_(self) -> str:
        return self.frame.to_html(index=self.index, border=0, na_rep="–", escape=True)


@dataclass(frozen=True)
class Text:
    """Markdown in a notebook."""

    text: str

    def _repr_markdown_(self) -> str:
        return self.text


def question(result: Result) -> Text:
    asked = " ".join(str(_experiment(result).get("question") or "No question was recorded.").split())
    return Text(f"> {html.escape(asked, quote=False)}")


def what(result: Result) -> Table:
    """The experiment: what was fixed, what varied, how often and how long."""
    experiment = _experiment(result)
    windows = experiment.get("windows") or {}
    done = sum(run.get("status") == "done" for run in result.manifest.get("runs", []))
    pairs = style.traffics(result.frame[result.frame["traffic"] != ""])
    rows = {
        "cases": "; ".join(result.cases["label"]),
        "topology": ", ".join(sorted(set(result.cases["topology"].dropna()))),
        "fixed": _pairs(experiment.get("fixed")),
        "varied": _pairs(experiment.get("vary")),
        **({"changed": "; ".join(map(worded, changes))} if (changes := [one for one in experiment.get("changes", []) if one]) else {}),
        "traffic": "; ".join(style.traffic_name(*pair) for pair in pairs),
        "repetitions": f"{experiment.get('repetitions', '–')} wanted; {done} runs done, {len(result.failed)} failed",
        "windows": _windows(result, windows),
        "order": f"random (seed {result.manifest.get('seed', '–')})",
        "collectors": ", ".join(sorted(set(result.frame["collector"].unique()) - set(result.frame["traffic"].unique()))),
        "started": result.manifest.get("started"),
        "ended": result.manifest.get("ended"),
        "result": f"{result.path.name} ({result.manifest.get('status', '–')})",
    }
    return _listed(rows)


def where(result: Result) -> Table:
    """The testbed, the machine below it, and the versions that ran."""
    facts, host, git = (result.manifest.get(key) or {} for key in ("facts", "host", "git"))
    versions = facts.get("versions") or {}
    rows = {
        "testbed": result.testbed + _whose_time(result),
        "its CPUs": _cpus(facts),
        "its memory": _memory(facts),
        "its hugepages": _hugepages(facts),
        "its kernel": facts.get("kernel"),
        "its kernel command line": facts.get("kernel_command_line"),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "placement": _placement(result),
        "machine below": f"{_cpus(host)}, {_memory(host)}, kernel {host.get('kernel', '–')}, {host.get('os', '–')}",
        "vsprof": f"{str(git.get('commit', '–'))[:12]}{' (with local changes)' if git.get('dirty') else ''}",
    }
    return _listed(rows)


def headlines(result: Result) -> Table:
    """The headline numbers by case: median [low, high]. n is named where it differs from the rest."""
    return _headlines(result, _of_result(result), SOFTWARE, "median")


def model_headlines(result: Result) -> Table | Text:
    """The same of the modelled processor's packet path."""
    if not MODEL.present(result):
        return Text(f"*{messages.not_shown('the modelled processor', MODEL.missing(result, ()))}*")
    return _headlines(result, _of_model(result), MODEL, MODEL.label(result))


def modelled_processor(result: Result) -> Table | Text:
    """Which processor was modelled, and how well its values are known."""
    found = model.profile(result)
    if not found:
        return Text("")
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
    return _listed(rows)


def search_heading(result: Result) -> Text:
    """What opens the part on rates without loss, and what such a rate means here; nothing where none was searched."""
    if not metrics.searched(result):
        return Text("")
    clock = (
        f" {messages.drop_free_in_an_emulator()}"
        if result.emulated
        else f" {messages.drop_free_in_modelled_time()}"
        if result.modelled
        else ""
    )
    return Text(f"## Rates without loss\n{messages.drop_free()}{clock}\n\n{messages.drop_free_checked()}")


def searches(result: Result) -> Table | Text:
    """How each search went: what was found, between which bounds, in how many trials, and what was missing at the rate above."""
    if not metrics.searched(result):
        return Text("")
    found = SOFTWARE.summary(result, list(metrics.SEARCH))
    by = found.pivot_table(index=["case_id", "label", "load"], columns="metric", values="median", sort=False).reindex(
        columns=list(metrics.SEARCH)
    )
    rows = [
        {"case": label, "load": style.LOAD_NAMES[load], **_search(one, metrics.searches_ended(result, case, load))}
        for (case, label, load), one in by.iterrows()
    ]
    return Table(pd.DataFrame(rows))


def _search(one: pd.Series, ended: tuple[int, int]) -> dict[str, str]:
    """A row of medians over repetitions in words; of the rate's, over those that found one."""
    shown = {"rate found": "search_rate", "carried": "search_lower_bound", "too high": "search_upper_bound"}
    trials = f"{one.search_trials:g} in {units.duration(one.search_seconds)}"
    at_rate = f"{one.search_lower_bad:g} of {one.search_lower_trials:g}" if one.search_lower_trials else "–"
    beyond = ", ".join(f"{words} {_number(one[name], 'fraction')}" for name, words in BEYOND.items() if one[name] > 0)
    return {
        **{words: _number(one[name], metrics.SEARCH[name]) for words, name in shown.items()},
        "searches that found one": f"{ended[0]} of {ended[1]}",
        "trials": trials,
        "bad ones at the rate carried": at_rate,
        "of what was due at the rate too high": beyond or "–",
    }


def hardware_heading(result: Result) -> Text:
    """What opens the part on the processor's own counters, with what the preflight found; nothing where no PMU counted."""
    if not HARDWARE.present(result):
        return Text("")
    said = HARDWARE.facts(result)
    found = "".join(f"\n- *{one['name']}*, {one['state']}: {one['text']}" for one in said.get("preflight", []))
    return Text(
        f"## What the processor's own counters say\nCounted by perf stat on each CPU: {HARDWARE.label(result)}, events of `"
        f"{said.get('microarchitecture', '–')}`. A count's words are those of the modelled processor where both mean the same, but it is "
        f"another processor, and polls cost it something else: nothing here is set against the model.\n\nThe preflight found:\n{found}"
    )


def hardware_headlines(result: Result) -> Table | Text:
    """The headline numbers of the PMU's packet path; nothing where no PMU counted."""
    if not HARDWARE.present(result):
        return Text("")
    return _headlines(result, _of_hardware(result), HARDWARE, HARDWARE.label(result))


def limits(result: Result) -> Text:
    """What a reader must know about these very numbers, as a list."""
    found = all_limits(result) or ["Nothing was left out, and no run failed."]
    return Text("\n".join(f"- {text}" for text in found))


def all_limits(result: Result) -> list[str]:
    """Of the result, of its series and their order, and of the model's and the PMU's numbers in it."""
    looks = (figures.not_taken, series.limits, MODEL.limits, HARDWARE.limits)
    return [*result.limits(), *(text for look in looks for text in look(result))]


def estimates(result: Result, case: str) -> dict[tuple[str, str, str], tuple[stats.Estimate, str]]:
    """The headline estimates of one case with their units, for `vsprof show`."""
    return _estimates(result, case, _of_result(result), SOFTWARE)


def model_estimates(result: Result, case: str) -> dict[tuple[str, str, str], tuple[stats.Estimate, str]]:
    """The same of the modelled processor."""
    return _estimates(result, case, _of_model(result), MODEL)


def hardware_estimates(result: Result, case: str) -> dict[tuple[str, str, str], tuple[stats.Estimate, str]]:
    """The same of the processor's own counters."""
    return _estimates(result, case, _of_hardware(result), HARDWARE)


def _estimates(result: Result, case: str, names: Sequence[tuple[str, ...]], source: Source) -> dict:
    found = {}
    for traffic, load, metric, _ in names:
        where = {"traffic": traffic, "load": load, "metric": metric}
        estimate = source.estimate(result, case_id=case, **where)
        if estimate.n:
            found[traffic, load, metric] = (estimate, source.unit(result, **where))
    return found


def _headlines(result: Result, names: Sequence[tuple[str, ...]], source: Source, what: str) -> Table:
    rows = {}
    for traffic, load, metric, words in names:
        where = {"traffic": traffic, "load": load, "metric": metric}
        found = {label: _headline(result, source, case, where) for case, label in result.cases["label"].items()}
        if any(text for text in found.values()):
            rows[f"{style.traffic_name(traffic, load)}: {words}"] = {label: text or "–" for label, text in found.items()}
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=list(result.cases["label"]))
    return Table(frame.rename_axis(f"{what} [95 % interval], n={result.repetitions}").reset_index())


def _headline(result: Result, source: Source, case: str, where: dict[str, str]) -> str:
    one = source.estimate(result, case_id=case, **where)
    if not one.n:
        return ""
    shown = with_interval(one.median, one.low, one.high, source.unit(result, **where))
    return shown + (f" n={one.n}" if one.n != result.repetitions else "")


def with_interval(median: float, low: float | None, high: float | None, unit: str) -> str:
    """`33.4 kpps [32.9, 34.0]`."""
    shown = [_number(value, unit) for value in (median, low, high)]
    return f"{shown[0]} [{_unrepeated(shown)}]" if low is not None else f"{shown[0]} (no interval)"


def _unrepeated(shown: list[str]) -> str:
    """The interval's bounds, without a unit that all three numbers share."""
    suffixes = {text.partition(" ")[2] for text in shown}
    return ", ".join(text.partition(" ")[0] if len(suffixes) == 1 else text for text in shown[1:])


def _number(value: float | None, unit: str) -> str:
    if value is not None and unit == "fraction":
        return f"{units.significant(100 * value)} %"
    return units.si(value, "" if unit.startswith(("events", "instructions/", "cycles/")) else unit)


def _whose_time(result: Result) -> str:
    if result.modelled:
        return f" (an emulated host, in the time of a {result.modelled} as modelled)"
    return " (an emulated host: its clock rates are the emulator's)" if result.emulated else ""


def _windows(result: Result, windows: dict[str, Any]) -> str:
    count = windows.get("count", "–")
    if result.modelled:
        seconds, warm_up = (windows.get(f"modelled_{name}seconds", "–") for name in ("", "warmup_"))
        return f"{count} of {seconds} s of modelled time in each run and traffic, unless a traffic has its own, after {warm_up} s at least"
    length, warm_up = windows.get("seconds", "–"), windows.get("warmup_seconds", "–")
    return f"{count} of {length} s in each run and traffic, after {warm_up} s of warm-up{_own_windows(result, windows)}"


def _own_windows(result: Result, windows: dict[str, Any]) -> str:
    owners = sorted({str(schema.window_owner(window)) for window in result.own_numbers["window"].unique()})
    if not owners:
        return ""
    return f"; then {windows.get('own_count', '–')} of {windows.get('own_seconds', '–')} s or more for {', '.join(owners)} alone"


def _listed(rows: dict[str, Any]) -> Table:
    shown = {name: "–" if value in (None, "") else str(value) for name, value in rows.items()}
    return Table(pd.DataFrame({"": list(shown), "as recorded": list(shown.values())}))


def _pairs(values: Any) -> str:
    if not isinstance(values, dict):
        return str(values or "")
    return "; ".join(f"{name} {_words(value)}" for name, value in values.items())


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _placement(result: Result) -> str:
    """What each CPU was for, case by case, from the first run of each."""
    texts = {}
    for run in result.manifest.get("runs", []):
        if run["case_id"] in result.cases.index and run.get("cpu_roles"):
            text = ", ".join(f"cpu{cpu} {role}" for cpu, role in sorted(run["cpu_roles"].items()))
            texts.setdefault(text, []).append(result.cases.loc[run["case_id"], "label"])
    return "; ".join(f"{', '.join(dict.fromkeys(labels))}: {text}" for text, labels in texts.items())


def _hugepages(facts: dict[str, Any]) -> str:
    count = facts.get("hugepages_2mib", facts.get("hugepages"))
    return f"{count} of 2 MiB" if count is not None else "–"


def _cpus(facts: dict[str, Any]) -> str:
    return f"{facts.get('cpus', '–')} × {facts.get('cpu_model', '–')}"


def _memory(facts: dict[str, Any]) -> str:
    size = facts.get("memory_bytes")
    return units.gib(size) if isinstance(size, int | float) else "–"


def _experiment(result: Result) -> dict[str, Any]:
    return result.manifest.get("experiment") or {}
