# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables and words on single frames: what a switch's worker takes for them, what its restart costs, and what was published of both."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis import comparison, messages, stats
from analysis.describe import Table, Text
from analysis.load import Result
from analysis.published import every
from analysis.sources import SOFTWARE
from terms import units

FRAMES = {"traffic": "paced_frames", "load": "paced"}
IDLE = {"traffic": "idle", "load": "none"}
RESTART = {"traffic": "reconnect", "load": "paced"}
WORKER = (
    ("CPU use, frames flow", {**FRAMES, "metric": "running", "role": "switch"}, "fraction"),
    ("CPU use, nothing comes", {**IDLE, "metric": "running", "role": "switch"}, "fraction"),
    ("context switches per packet", {**FRAMES, "metric": "context_switches_per_packet", "role": "switch"}, ""),
    ("waiting for its CPU, frames flow", {**FRAMES, "metric": "waiting", "role": "switch"}, "fraction"),
    ("latency, shortest", {**FRAMES, "metric": "latency_min"}, "seconds"),
    ("latency, median", {**FRAMES, "metric": "latency_p50"}, "seconds"),
    ("latency, mean", {**FRAMES, "metric": "latency_mean"}, "seconds"),
    ("latency, 99 %", {**FRAMES, "metric": "latency_p99"}, "seconds"),
    ("latency, longest", {**FRAMES, "metric": "latency_max"}, "seconds"),
    ("frames lost", {**FRAMES, "metric": "frames_lost"}, "fraction"),
    ("frames not timed", {**FRAMES, "metric": "disturbed"}, "fraction"),
)
"""What the threads of the switch take, and what that buys: words, which metric, its unit."""


def worker(result: Result) -> Table | Text:
    """By case, what the switch's threads take: a share of one CPU, times that they were switched, and the latency that it makes."""
    return by_case(result, WORKER, "paced frames")


def answer(result: Result) -> Text:
    """A sentence for each two cases that differ in one thing: how much longer a frame takes, and how much less of its CPU the switch."""
    lines = [sentence for pair in comparison.pairs(result) if (sentence := _compared(pair))]
    return Text(
        "\n".join(f"- {line}" for line in lines) or "This result can't answer the question: it has no two cases with a common number."
    )


def _compared(pair: comparison.Pair) -> str:
    latency, running = pair.ratio(**FRAMES, metric="latency_mean"), pair.ratio(**FRAMES, metric="running", role="switch")
    if not comparison.measured(latency, running):
        return ""
    base, other = pair.names()
    setting = f"**{pair.setting}**: " if pair.setting else ""
    doubt = "" if latency.decided else ", which is not significant"
    return (
        f"{setting}with {other}, a frame takes {comparison.of(latency, f'the average time of {base}')}{doubt}; "
        f"the switch's threads take {comparison.of(running, 'its CPU time')}."
    )


def restarted(result: Result) -> Text:
    """The answer in two sentences: which cases came back after the restart, after how long, and which did not."""
    counts = {label: _came_back(result, case) for case, label in result.cases["label"].items()}
    tried = {label: count for label, count in counts.items() if count[1]}
    if not tried:
        return Text("This result can't answer the question: no switch was restarted in it.")
    back = [f"{label} ({_after(result, label)})" for label, (came, of) in tried.items() if came == of]
    not_back = [label if not came else f"{label} (came back {came} of {of} times)" for label, (came, of) in tried.items() if came < of]
    lines = [f"Frames came back after every restart with {'; '.join(back)}." if back else "With no case did frames come back each time."]
    return Text(" ".join([*lines, f"They did not, while they were waited for, with {'; '.join(not_back)}." if not_back else "All did."]))


def _came_back(result: Result, case: str) -> tuple[int, int]:
    """How often frames came back, of how many restarts."""
    back = SOFTWARE.sample(result, case_id=case, **RESTART, metric="came_back", role="all", cpu=-1)
    return round(sum(float(run[:, 0].sum()) for run in back)), len(back)


def _after(result: Result, label: str) -> str:
    case = result.cases.index[result.cases["label"] == label][0]
    return shown(SOFTWARE.estimate(result, case_id=case, **RESTART, metric="outage"), "seconds")


def restarts(result: Result) -> Table | Text:
    """By case, how often frames came back after the restart, after how long, and what was lost."""
    rows: dict[str, dict[str, str]] = {}
    for case, label in result.cases["label"].items():
        came, tried = _came_back(result, case)
        rows.setdefault("came back", {})[label] = f"{came} of {tried}" if tried else "–"
        for words, metric, unit in (
            ("longest time without a frame", "outage", "seconds"),
            ("until the switch said that it runs", "switch_away", "seconds"),
            ("packets lost", "outage_packets_lost", ""),
        ):
            rows.setdefault(words, {})[label] = shown(SOFTWARE.estimate(result, case_id=case, **RESTART, metric=metric), unit)
    return _table(result, rows, "restart of the switch, median [95 % interval]")


def published(target: str) -> Text:
    """What was published of ``target``, in its own words."""
    found = [one for one in every() if one.target == target]
    lines = [f"- {one.what}: {one.figure}. Compared: {one.compared}. Machine: {one.machine}. Source: {one.source}." for one in found]
    return Text("\n".join(lines))


def by_case(result: Result, columns: Sequence[tuple[str, dict[str, str], str]], name: str) -> Table | Text:
    """A row a case, and a column for each of ``columns`` (words, which metric, its unit) that any case has a value of."""
    rows = {}
    for words, where, unit in columns:
        found = {label: SOFTWARE.estimate(result, case_id=case, **where) for case, label in result.cases["label"].items()}
        if any(estimate.n for estimate in found.values()):
            rows[words] = {label: shown(estimate, unit) for label, estimate in found.items()}
    return _table(result, rows, f"{name}, median [95 % interval]")


def shown(estimate: stats.Estimate, unit: str) -> str:
    """`12.3 µs [11.9, 12.8]`, or a dash where it was not measured."""
    if not estimate.n:
        return "–"
    numbers = [_number(value, unit) for value in (estimate.median, estimate.low, estimate.high)]
    return numbers[0] + (f" [{numbers[1]}, {numbers[2]}]" if estimate.low is not None else "")


def _number(value: float | None, unit: str) -> str:
    if value is not None and unit == "fraction":
        return f"{units.significant(100 * value)} %"
    return units.si(value, unit)


def _table(result: Result, rows: dict[str, dict[str, str]], name: str) -> Table | Text:
    if not rows:
        return Text(f"*{messages.not_shown(name, ['no finished run has a value'])}*")
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=list(result.cases["label"]))
    # A case a row: they are many, and what is compared stands in one column.
    return Table(frame.T.rename_axis(f"{name}, n={result.repetitions}").reset_index())
