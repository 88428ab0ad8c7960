# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables and words on single frames: what a switch's worker takes for them, what its restart costs, and what was published of both."""

import functools

import pandas as pd

from vsprof.analysis import comparison, looks, messages, metrics, stats
from vsprof.analysis.describe import Table, with_interval
from vsprof.analysis.load import Result
from vsprof.analysis.published import EVERY
from vsprof.analysis.sources import SOFTWARE, source_of

SENTENCES = 4
"""As many a reader takes in one by one."""
SLEEPERS, BUSY = {"switch": "the switch", "guest": "the machine's program"}, 0.95
"""Who may sleep until a frame comes, by role; and the least share of a CPU that one takes which never sleeps."""
RESTARTS = (
    ("longest time without a frame", "outage", "seconds"),
    ("until the switch said that it runs", "switch_away", "seconds"),
    ("packets lost", "outage_packets_lost", ""),
)


def answer(result: Result) -> str | Table:
    """Each two cases that differ in one thing: how much longer a frame takes, and how much less CPU time the sleeper. Few in sentences,
    more in a table."""
    frames, found, role = comparison.sent(result, "frames"), [], _sleeper(result)
    for pair in comparison.pairs(result):
        ratios = pair.ratio(**frames, metric="latency_mean"), pair.ratio(**frames, metric="running", role=role)
        if comparison.measured(*ratios):
            found.append((pair, *ratios))
    if not found:
        return looks.NO_ANSWER
    if len(found) <= SENTENCES:
        return "\n".join(f"- {_sentence(SLEEPERS[role], *one)}" for one in found)
    return Table(pd.DataFrame([_row(SLEEPERS[role], *one) for one in found]))


def _sleeper(result: Result) -> str:
    """The role of who sleeps in any case: of what polls the CPU is always busy."""
    asked, cases = {**comparison.sent(result, "frames"), "metric": "running"}, result.cases.index
    used = {role: [SOFTWARE.estimate(result, case_id=case, role=role, **asked) for case in cases] for role in SLEEPERS}
    return next((role for role, found in used.items() if any(one.n and one.median < BUSY for one in found)), "switch")


def _sentence(who: str, pair: comparison.Pair, latency: stats.Estimate, running: stats.Estimate) -> str:
    base, other = pair.names()
    setting = f"**{pair.setting}**: " if pair.setting else ""
    takes = f"{setting}with {other}, a frame takes {comparison.of(latency, f'the average time of {base}')}{comparison.doubt(latency)}"
    return f"{takes}; {who} takes {comparison.of(running, 'its CPU time')}."


def _row(who: str, pair: comparison.Pair, latency: stats.Estimate, running: stats.Estimate) -> dict[str, str]:
    base, other = pair.names()
    # Where it is true comes last: a narrow window shows the rest.
    ratios = {"a frame takes, times as long": shown(latency, ""), f"CPU time of {who}, times as much": shown(running, "")}
    return {"with": other, "instead of": base, **ratios, "where": pair.setting}


def restarted(result: Result) -> str:
    """The answer in two sentences: which cases came back after the restart, after how long, and which did not."""
    counts = {case: _came_back(result, case) for case in result.cases.index}
    tried = {case: count for case, count in counts.items() if count[1]}
    if not tried:
        return "This result can't answer the question: no switch was restarted in it."
    label = result.cases["label"]
    back = [f"{label[case]} ({shown(_restart(result, case, 'outage'), 'seconds')})" for case, (came, of) in tried.items() if came == of]
    lines = [f"Frames came back after every restart with {'; '.join(back)}." if back else "With no case did frames come back each time."]
    left = {case: count for case, count in tried.items() if count[0] < count[1]}
    not_back = [label[case] + (f" (came back {came} of {of} times)" if came else "") for case, (came, of) in left.items()]
    return " ".join([*lines, f"They did not, while they were waited for, with {'; '.join(not_back)}." if not_back else "All did."])


def restarts(result: Result) -> Table | str:
    """By case, how often frames came back after the restart, after how long, and what was lost."""
    cases = list(result.cases["label"].items())
    counts = {label: _came_back(result, case) for case, label in cases}
    rows = {"came back": {label: f"{came} of {tried}" if tried else "–" for label, (came, tried) in counts.items()}}
    for words, metric, unit in RESTARTS:
        rows[words] = {label: shown(_restart(result, case, metric), unit) for case, label in cases}
    return _table(result, rows, "restart of the switch, median [95 % interval]")


def _came_back(result: Result, case: str) -> tuple[int, int]:
    return metrics.happened(result, case_id=case, **comparison.sent(result, "restart"), metric="came_back")


def _restart(result: Result, case: str, metric: str) -> stats.Estimate:
    return SOFTWARE.estimate(result, case_id=case, **comparison.sent(result, "restart"), metric=metric)


def published(target: str) -> str:
    """What was published of ``target``, in its own words; figures of one machine and source together."""
    groups: dict[str, list[str]] = {}
    for one in [one for one in EVERY.values() if one.target == target]:
        whence = f"Machine: {one.machine}. Source: {one.source}."
        groups.setdefault(whence, []).append(f"- {one.what}: {one.figure}. Compared: {one.compared}.")
    return "\n\n".join("\n".join([*lines, "", whence]) for whence, lines in groups.items())


def by_case(result: Result, name: str) -> Table | str:
    """A row a case, and a column for each number of the table of this name in looks.yaml that any case has."""
    rows = {}
    for words, metric in looks.ROWS["tables"][name].items():
        where = looks.named(result, metric)
        source = source_of(where["metric"])
        found = {label: source.estimate(result, case_id=case, **where) for case, label in result.cases["label"].items()}
        if any(estimate.n for estimate in found.values()):
            rows[words] = {label: shown(estimate, looks.unit(result, where["metric"])) for label, estimate in found.items()}
    return _table(result, rows, f"{name}, median [95 % interval]")


shown = functools.partial(with_interval, without="")
"""`12.3 µs [11.9, 12.8]`, or a dash where it was not measured. Without an interval the number alone: they are many, and n is in the
table's head."""


def _table(result: Result, rows: dict[str, dict[str, str]], name: str) -> Table | str:
    if not rows:
        return f"*{messages.not_shown(name, ['no finished run has a value'])}*"
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=list(result.cases["label"]))
    # A case a row: they are many, and what is compared stands in one column.
    return Table(frame.T.rename_axis(f"{name}, n={result.repetitions}").reset_index())
