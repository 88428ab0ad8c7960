# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation of a result whose experiment has `changes`, in vm2host: what each does to TCP's goodput and to who is switched how often,
when it is switched on, and off again.

A change is demonstrated where two cases that differ in it alone have a ratio whose interval excludes 1. Nothing here knows which change is
a suspect and which a remedy: the numbers say so.
"""

import math
from dataclasses import dataclass, replace

from vsprof.analysis import comparison, looks, stats
from vsprof.analysis.comparison import Pair, measured, sent, times
from vsprof.analysis.load import SIZES, Result, worded
from vsprof.analysis.looks import Finding
from vsprof.analysis.published import EVERY
from vsprof.terms import units

SWITCH = "ovs-dpdk"
UNCHANGED = "as it is"
"""What the case is called in which nothing is changed."""


@dataclass(frozen=True)
class Effect:
    """A case of OVS-DPDK beside the unchanged one, and beside the kernel's way to the host with the same endpoints. Ratios of goodput."""

    case: str
    name: str
    unchanged: stats.Estimate
    kernel: stats.Estimate
    switched: stats.Estimate
    """Context switches of ovs-vswitchd's threads per second, against the unchanged case."""


def cases(result: Result) -> list[str]:
    """The cases of OVS-DPDK, in the experiment's order."""
    return [case for case in result.cases.index if result.cases.loc[case, "switch"] == SWITCH]


def goodput(result: Result) -> dict[str, str]:
    return {**sent(result, "tcp"), "metric": "goodput"}


def effects(result: Result) -> list[Effect]:
    """Of each case, in the experiment's order."""
    found, given, switched = [], goodput(result), {**sent(result, "tcp"), "metric": "context_switches_per_second", "role": "switch"}
    sizes = {case: {name: value for name, value in result.varied[case].items() if name in SIZES} for case in cases(result)}
    for case, size in sizes.items():
        base = next((one for one in sizes if not result.changed[one] and sizes[one] == size), None)
        pair = Pair(result, base, case) if base is not None and base != case else None
        kernel = _kernel_pair(result, case)
        ratios = [one.ratio(**which) if one else stats.NOTHING for one, which in ((pair, given), (kernel, given), (pair, switched))]
        found.append(Effect(case, worded({**size, **result.changed[case]}) if result.changed[case] else UNCHANGED, *ratios))
    return found


def _kernel_pair(result: Result, case: str) -> Pair | None:
    """The case beside the kernel's way to the host, with the same options of its endpoints."""
    return next((pair for pair in comparison.pairs(result) if pair.other == case and "arm" in result.differences(pair.base, case)), None)


def answer(result: Result) -> str:
    """What brings goodput down most, whether that is what was published, and what it is without; what brings it up most."""
    found = effects(result)
    if not any(measured(one.unchanged) for one in found):
        return (
            "This result can't answer the question: it has no goodput of OVS-DPDK both as it is, with nothing changed, and with one of "
            "the changes."
        )
    decided = [one for one in found if one.unchanged.decided]
    down, up = ([one for one in decided if (one.unchanged.median < 1) == lower] for lower in (True, False))
    if down:
        worst = min(down, key=lambda one: one.unchanged.median)
        switched = f"{times(worst.switched)} as often" if measured(worst.switched) else "how often was not counted"
        lowers = (
            f"**{worst.name}**{_ties(result, worst, down)} lowers TCP's goodput most: to {times(worst.unchanged)} of what it is without, "
            f"while the threads of ovs-vswitchd are switched {switched}. That {_beside_kernel(result, worst)}.{_taken_back(result, worst)}"
        )
    else:
        as_it_is = next(one for one in found if not result.changed[one.case])
        lowers = f"No change lowers TCP's goodput clearly. OVS-DPDK {UNCHANGED} {_beside_kernel(result, as_it_is)}."
    raises = "No change raises it clearly."
    if up:
        best = max(up, key=lambda one: one.unchanged.median)
        kernel = f", which is {times(best.kernel)} the kernel's" if measured(best.kernel) else ""
        named = f"**{best.name}**{_ties(result, best, up)}"
        raises = f"{named} raises it most, from OVS-DPDK {UNCHANGED}: {times(best.unchanged)} the goodput{kernel}."
    return "\n\n".join([f"{lowers} {raises}", *looks.notes(result)])


def _ties(result: Result, first: Effect, others: list[Effect]) -> str:
    """Which changes do not differ significantly from the one that is named: the largest of several medians is largest by chance, too."""
    rest = [one for one in others if one is not first]
    alike = [one.name for one in rest if not Pair(result, first.case, one.case).ratio(**goodput(result)).decided]
    return f" (not significantly different: {'; '.join(alike)})" if alike else ""


def _taken_back(result: Result, worst: Effect) -> str:
    """What it is when one thing of the deepest fall is taken back, all else as it is there: what was switched on, switched off again. Of a
    fall by one thing this is the fall itself."""
    changed = result.changed[worst.case]
    back = {}
    for pair in comparison.pairs(result) if len(changed) > 1 else []:
        other = {pair.base: pair.other, pair.other: pair.base}.get(worst.case)
        if other in cases(result) and len(result.changed[other]) < len(changed):
            back[", ".join(changed.keys() - result.changed[other].keys())] = Pair(result, worst.case, other).ratio(**goodput(result))
    told = [f"{name} ({times(ratio)})" for name, ratio in back.items() if ratio.decided and ratio.median > 1]
    return f" There, taking back one thing alone raises it again: {', '.join(told)}." if told else ""


def _beside_kernel(result: Result, one: Effect) -> str:
    """What remains of the kernel's goodput, and whether that is as little as was published."""
    pair, ratio = _kernel_pair(result, one.case), one.kernel
    if pair is None or not measured(ratio):
        return "has no kernel's way to the host beside it"
    high = EVERY["T2-throughput"].high
    limit = f"as published (below 1/{units.significant(1 / high)})"
    if ratio.high is None or ratio.low is None:
        depth = "one repetition decides nothing"
    elif ratio.high <= high:
        depth = f"as deep {limit}"
    elif ratio.low > high:
        depth = f"not as deep {limit}"
    else:
        depth = f"maybe as deep {limit}: the interval holds both"
    return f"has {times(ratio)} the goodput of {pair.names()[0]}: {depth}"


def findings(result: Result) -> list[Finding]:
    """One for each change that was switched on and off, those that matter most first."""
    ours, [change] = set(cases(result)), looks.of("changes")
    found = []
    for pair in comparison.pairs(result):
        finding = change(pair) if {pair.base, pair.other} <= ours else None
        if finding is not None:
            claim = f"With {pair.setting}, {finding.claim}" if pair.setting else finding.claim
            found.append((abs(math.log(pair.ratio(**goodput(result)).median)), replace(finding, claim=claim)))
    return [finding for _, finding in sorted(found, key=lambda one: -one[0])]


def markdown(result: Result) -> str:
    """The findings as a numbered list."""
    return looks.numbered(findings(result), "No finding: this result has no two cases of OVS-DPDK that differ in one change.")
