# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation of a result whose experiment has `changes`, in vm2host: what each does to TCP's goodput and to who is switched how often,
when it is switched on, and off again.

A change is demonstrated where two cases that differ in it alone have a ratio whose interval excludes 1. Nothing here knows which change is
a suspect and which a remedy: the numbers say so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from analysis import comparison, stats
from analysis.comparison import FLOOD, PING, TCP, Comparison, Finding, Pair, measured, sentence, share, times
from analysis.describe import Table, Text
from analysis.describe_frames import by_case
from analysis.load import SIZES, Result, worded
from analysis.published import Published, every
from terms import units

SWITCH = "ovs-dpdk"
UNCHANGED = "as it is"
"""What the case is called in which nothing is changed."""
SWITCHED = {**TCP, "metric": "context_switches_per_second", "role": "switch"}
COLUMNS = (
    ("goodput", {**TCP, "metric": "goodput"}, "bit/s"),
    ("retransmits per second", {**TCP, "metric": "retransmits_per_second"}, ""),
    ("context switches per second: ovs-vswitchd", SWITCHED, ""),
    ("its main thread alone", {**TCP, "metric": "main_thread_context_switches_per_second"}, ""),
    ("whole path", {**TCP, "metric": "context_switches_per_second"}, ""),
    ("upcalls per second", {**TCP, "metric": "upcalls_per_second"}, ""),
    ("main thread on a CPU", {**TCP, "metric": "main_thread_running"}, "fraction"),
    ("main thread waiting for one", {**TCP, "metric": "main_thread_waiting"}, "fraction"),
    ("packets that it moved, per second", {**TCP, "metric": "main_thread_packets_per_second"}, ""),
    ("poll-mode thread busy", {**TCP, "metric": "pmd_busy"}, "fraction"),
    ("mean frame that the host got", {**TCP, "metric": "frame_bytes_received"}, "bytes"),
    ("round trip, median", {**PING, "metric": "rtt_p50"}, "seconds"),
    ("UDP flood, received", {**FLOOD, "metric": "packet_rate_received"}, "packets/s"),
)
"""What is shown of each case: words, which metric, its unit."""
WAITS = 0.05
"""A share of its time above which the main thread is said to wait for its CPU."""
ALIKE = (0.8, 1.25)
"""An interval of a ratio of frame sizes that lies within says that segmentation is the same."""


@dataclass(frozen=True)
class Effect:
    """A case of OVS-DPDK beside the unchanged one, and beside the kernel's way to the host with the same endpoints. Ratios of goodput."""

    case: str
    name: str
    unchanged: stats.Estimate
    kernel: stats.Estimate
    switched: stats.Estimate
    """Context switches of ovs-vswitchd's threads per second, against the unchanged case."""


def table(result: Result) -> Table | Text:
    """A row a case: goodput, context switches by who is switched, upcalls, retransmissions, the main thread's time."""
    return by_case(result, COLUMNS, "TCP stream, unless it says otherwise")


def cases(result: Result) -> list[str]:
    """The cases of OVS-DPDK, in the experiment's order."""
    return [case for case in result.cases.index if result.cases.loc[case, "switch"] == SWITCH]


def unchanged(result: Result, case: str) -> str | None:
    """The case of OVS-DPDK in which nothing is changed, and that has the same sizes; None where it has no numbers."""
    return next((one for one in cases(result) if not result.changed[one] and _sizes(result, one) == _sizes(result, case)), None)


def _sizes(result: Result, case: str) -> dict[str, object]:
    return {name: value for name, value in result.varied[case].items() if name in SIZES}


def kernel_pair(result: Result, case: str) -> Pair | None:
    """The case beside the kernel's way to the host, with the same options of its endpoints."""
    return next((pair for pair in comparison.pairs(result) if pair.other == case and "arm" in result.differences(pair.base, case)), None)


def effects(result: Result) -> list[Effect]:
    """Of each case, in the experiment's order."""
    return [_effect(result, case) for case in cases(result)]


def _effect(result: Result, case: str) -> Effect:
    base, kernel = unchanged(result, case), kernel_pair(result, case)
    pair = Pair(result, base, case) if base is not None and base != case else None
    return Effect(
        case,
        worded({**_sizes(result, case), **result.changed[case]}) if result.changed[case] else UNCHANGED,
        pair.ratio(**TCP, metric="goodput") if pair else stats.NOTHING,
        kernel.ratio(**TCP, metric="goodput") if kernel else stats.NOTHING,
        pair.ratio(**SWITCHED) if pair else stats.NOTHING,
    )


# -- the answer -------------------------------------------------------------------------------------------------


def answer(result: Result) -> str:
    """What brings goodput down most, whether that is what was published, and what it is without; what brings it up most."""
    found = effects(result)
    if not any(measured(one.unchanged) for one in found):
        return (
            "This result can't answer the question: it has no goodput of OVS-DPDK both as it is, with nothing changed, and with one of "
            "the changes."
        )
    told = [one for one in found if measured(one.unchanged) and one.unchanged.decided]
    down, up = ([one for one in told if (one.unchanged.median < 1) == lower] for lower in (True, False))
    lines = [_down(result, down) or _nothing_down(result, found), _up(result, up)]
    notes = [f"*{sentence(note)}.*" for note in result.manifest.get("left_out", [])]
    if result.emulated:
        notes.insert(0, "*Measured in the emulated lab: the rates are the emulator's, no result about hardware.*")
    return "\n\n".join([" ".join(lines), *notes])


def _down(result: Result, down: list[Effect]) -> str:
    if not down:
        return ""
    worst = min(down, key=lambda one: one.unchanged.median)
    return (
        f"**{worst.name}**{_ties(result, worst, down)} lowers TCP's goodput most: to {times(worst.unchanged)} of what it is without, while "
        f"the threads of ovs-vswitchd are switched {_switched(worst)}. That {_beside_kernel(result, worst)}."
        f"{_taken_back(result, worst)}"
    )


def _nothing_down(result: Result, found: list[Effect]) -> str:
    as_it_is = next(one for one in found if not result.changed[one.case])
    return f"No change lowers TCP's goodput clearly. OVS-DPDK {UNCHANGED} {_beside_kernel(result, as_it_is)}."


def _up(result: Result, up: list[Effect]) -> str:
    if not up:
        return "No change raises it clearly."
    best = max(up, key=lambda one: one.unchanged.median)
    kernel = f", which is {times(best.kernel)} the kernel's" if measured(best.kernel) else ""
    return (
        f"**{best.name}**{_ties(result, best, up)} raises it most, from OVS-DPDK {UNCHANGED}: {times(best.unchanged)} the goodput{kernel}."
    )


def _ties(result: Result, first: Effect, others: list[Effect]) -> str:
    """Which changes do not differ significantly from the one that is named: the largest of several medians is largest by chance, too."""
    alike = [one.name for one in others if one is not first and not _between(result, first.case, one.case).decided]
    return f" (not significantly different: {'; '.join(alike)})" if alike else ""


def _taken_back(result: Result, worst: Effect) -> str:
    """What it is when one thing of the deepest fall is taken back, all else as it is there: what was switched on, switched off again. Of a
    fall by one thing this is the fall itself."""
    if len(result.changed[worst.case]) == 1:
        return ""
    back = {}
    for pair in comparison.pairs(result):
        other = {pair.base: pair.other, pair.other: pair.base}.get(worst.case)
        if other in cases(result) and len(result.changed[other]) < len(result.changed[worst.case]):
            back[", ".join(result.changed[worst.case].keys() - result.changed[other].keys())] = _between(result, worst.case, other)
    told = [f"{name} ({times(ratio)})" for name, ratio in back.items() if measured(ratio) and ratio.decided and ratio.median > 1]
    return f" There, taking back one thing alone raises it again: {', '.join(told)}." if told else ""


def _between(result: Result, base: str, other: str) -> stats.Estimate:
    return Pair(result, base, other).ratio(**TCP, metric="goodput")


def _switched(one: Effect) -> str:
    return f"{times(one.switched)} as often" if measured(one.switched) else "how often was not counted"


def _beside_kernel(result: Result, one: Effect) -> str:
    """What remains of the kernel's goodput, and whether that is as little as was published."""
    pair, published = kernel_pair(result, one.case), _published("T2-throughput")
    if pair is None or not measured(one.kernel):
        return "has no kernel's way to the host beside it"
    name = pair.names()[0]
    return f"has {times(one.kernel)} the goodput of {name}: {_depth(one.kernel, published)}"


def _depth(ratio: stats.Estimate, published: Published) -> str:
    """Whether a ratio to the kernel's way is as low as the published one."""
    assert published.high is not None
    limit = f"1/{units.significant(1 / published.high)}"
    if ratio.high is None or ratio.low is None:
        return "one repetition decides nothing"
    if ratio.high <= published.high:
        return f"as deep as published (below {limit})"
    if ratio.low > published.high:
        return f"not as deep as published (below {limit})"
    return f"maybe as deep as published (below {limit}): the interval holds both"


def _published(name: str) -> Published:
    return next(one for one in every() if one.id == name)


# -- the findings -----------------------------------------------------------------------------------------------


def findings(result: Result) -> list[Finding]:
    """One for each change that was switched on and off, those that matter most first."""
    ours = set(cases(result))
    pairs = [pair for pair in comparison.pairs(result) if {pair.base, pair.other} <= ours]
    pairs = [pair for pair in pairs if measured(pair.ratio(**TCP, metric="goodput"))]
    pairs.sort(key=lambda pair: -abs(math.log(pair.ratio(**TCP, metric="goodput").median)))
    return [switched(pair) for pair in pairs]


def markdown(result: Result) -> str:
    """The findings as a numbered list."""
    return comparison.numbered(findings(result), "No finding: this result has no two cases of OVS-DPDK that differ in one change.")


def switched(pair: Pair) -> Finding:
    """What one change does, all else as it was."""
    found = comparison.find(pair, CHANGE)
    assert found is not None
    return replace(found, claim=f"With {pair.setting}, {found.claim}") if pair.setting else found


def _counted(pair: Pair) -> Iterator[str]:
    """How often threads were switched, of the daemon and of the whole path; the main thread's time; and what else moves goodput."""
    for whose, role in (("of ovs-vswitchd's threads", "switch"), ("of the whole path", "path")):
        yield from pair.line(f"context switches per second {whose}", **TCP, metric="context_switches_per_second", role=role)
    for words, where, unit in (
        ("share of the time that the main thread ran", {**TCP, "metric": "main_thread_running"}, "fraction"),
        ("share of the time that it waited for its CPU", {**TCP, "metric": "main_thread_waiting"}, "fraction"),
        ("retransmits per second", {**TCP, "metric": "retransmits_per_second"}, ""),
        ("upcalls per second", {**TCP, "metric": "upcalls_per_second"}, ""),
        ("round trip", {**PING, "metric": "rtt_p50"}, "seconds"),
    ):
        if measured(*pair.both(**where)):
            yield f"{words}: {pair.text(unit, **where)}"


def _mechanisms(pair: Pair, _: stats.Estimate) -> str:
    return " ".join(one for one in (_waiting(pair), _moved(pair), _segments(pair)) if one)


def _waiting(pair: Pair) -> str:
    """The main thread's waiting, where the change makes it."""
    before, after = pair.both(**TCP, metric="main_thread_waiting")
    if not measured(before, after) or after.median < WAITS or after.median < 2 * before.median:
        return ""
    return (
        f"The main thread, which takes in what the host sends, TCP's acknowledgements among it, waited for its CPU {share(after)} of the "
        f"time (before: {share(before)})."
    )


def _moved(pair: Pair) -> str:
    """Whether the host's packets still pass the main thread."""
    before, after = pair.both(**TCP, metric="main_thread_packets_per_second")
    if not measured(before, after) or not before.median or after.median > 0.01 * before.median:
        return ""
    return (
        f"What the host sends no longer passes the main thread (packets per second: {units.si(before.median, '')} before, "
        f"{units.si(after.median, '')} after): the poll-mode thread takes it in."
    )


def _segments(pair: Pair) -> str:
    """Whether the change lets TCP pass in packets of another size."""
    ratio = pair.ratio(**TCP, metric="frame_bytes_received")
    if not measured(ratio) or not ratio.decided or ((ratio.low or 0) > ALIKE[0] and (ratio.high or 0) < ALIKE[1]):
        return ""
    how = "in larger packets, so that what a packet costs is paid less often" if ratio.median > 1 else "in smaller packets"
    return f"TCP reaches the host {how}: on average {pair.text('bytes', **TCP, metric='frame_bytes_received')}."


CHANGE = Comparison(
    where=TCP,
    metric="goodput",
    unit="bit/s",
    topic="TCP's goodput",
    claim="{other} instead of {base} brings TCP's goodput {way}.",
    ways=("up", "down"),
    shown="goodput",
    evidence=_counted,
    reason=_mechanisms,
)
