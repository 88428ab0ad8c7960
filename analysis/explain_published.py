# SPDX-License-Identifier: GPL-2.0-or-later
"""Why our ratios differ from T1's published ones, figure by figure, as far as this result's own counters show a reason.

T1: ACANETS, "Understanding the Performance of DPDK as a Computer Architect", DPDK Summit San Jose 2016. Its notes give ratios alone: no
processor, frame size, number of CPUs, nor which counter a rate was of. A reason below is one that our numbers show at work here; that it is
the reason there, nobody can tell from here, and nothing below says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from analysis import comparison, model, published, stats
from analysis.comparison import EQUAL, FLOOD, TCP, Finding, Pair, measured, share, times
from analysis.explain import NEAR_ALL, NEAR_NONE, packet_cpu
from analysis.load import Result
from analysis.source import Source, by_repetition, ratio_between
from analysis.sources import MODEL, SOFTWARE

RATES = {"T1-l1-misses": "model_l1d_miss_rate", "T1-tlb-misses": "model_dtlb_miss_rate"}
"""By the published figure's id, our metric of the same kind."""


COUNTERS = {"T1-l1-misses": "l1d_misses", "T1-tlb-misses": "dtlb_misses"}
PER_WHAT = {
    "per instruction with idle polling counted in, as a profiler has it": f"model_{{}}_per_kilo_instructions{model.WITH_POLLING}",
    "per packet, without it": "model_{}_per_packet",
}
"""What else a rate can be of: an ending of our metrics' names."""


def markdown(result: Result) -> str:
    """The differences as a list, or why there is nothing to set beside T1."""
    found = (finding for pair in _pairs(result) for look in LOOKS if (finding := look(pair)))
    return comparison.numbered(found, "T1 compares two VMs over kernel OVS and over OVS-DPDK; this result does not have both.")


def _pairs(result: Result) -> Iterator[Pair]:
    """T1's own pair: kernel OVS, and OVS-DPDK against it."""
    for pair in comparison.pairs(result):
        switches = [result.cases.loc[case, "switch"] for case in (pair.base, pair.other)]
        if switches == ["kernel-ovs", "ovs-dpdk"] and result.cases.loc[pair.other, "topology"] == "vm2vm":
            yield pair


def throughput(pair: Pair) -> Finding | None:
    """Up to 8x: what kept ours from it?"""
    ours = pair.ratio(**FLOOD, metric="packet_rate_received")
    if not measured(ours):
        return None
    reasons = [*_emulated(pair), *_endpoints(pair), *_not_the_limit(pair)]
    return _finding("T1-throughput", [f"ours, of a UDP flood at saturation: {times(ours)}"], reasons)


def _emulated(pair: Pair) -> Iterator[str]:
    if not pair.result.emulated:
        return
    instructions = MODEL.ratio(pair.result, pair.other, pair.base, **FLOOD, metric="model_instructions_per_packet")
    text = "an emulator's rate follows the number of instructions, not what a processor waits for"
    yield text + (f"; OVS-DPDK takes {times(instructions)} the instructions per packet" if measured(instructions) else "")


def _endpoints(pair: Pair) -> Iterator[str]:
    """The guests' part of the path's cycles, which no switch can lower."""
    parts = [_guests(MODEL, pair, case, "model_cycles_per_packet") for case in (pair.base, pair.other)]
    if not measured(*parts):
        return
    yield (
        f"the two guests take {share(parts[0])} of the path's estimated cycles with kernel OVS and {share(parts[1])} with OVS-DPDK, which "
        "no switch can lower" + _without_guests(MODEL, pair, "cycles", "model_cycles_per_packet")
    )


def _guests(source: Source, pair: Pair, case: str, metric: str) -> stats.Estimate:
    """The guests' part of the whole path, of one case."""
    return _part(source, pair, case, over={"metric": metric, "role": "guest"}, under={"metric": metric})


def _part(source: Source, pair: Pair, case: str, *, over: Mapping[str, str], under: Mapping[str, str]) -> stats.Estimate:
    """How many times one metric of a case's path another one of the same windows is."""
    runs = (
        by_repetition(source.rows(pair.result, **{"case_id": case, "role": "path", "cpu": -1, **FLOOD, **which})) for which in (over, under)
    )
    return ratio_between(*runs, paired=True)


def _without_guests(source: Source, pair: Pair, what: str, metric: str) -> str:
    without = source.ratio_without(pair.result, "guest", pair.other, pair.base, **FLOOD, metric=metric)
    return f"; without them, OVS-DPDK's path has {times(without)} the {what} per packet" if without.median > 0 else ""


def _not_the_limit(pair: Pair) -> Iterator[str]:
    busy = pair.of(pair.other, **FLOOD, metric="pmd_busy")
    if measured(busy) and busy.median < NEAR_ALL:
        yield (
            f"OVS-DPDK's poll-mode thread found packets in {share(busy)} of its cycles only: it could have carried more than the endpoints "
            "gave it"
        )


def context_switches(pair: Pair) -> Finding | None:
    """About 10x fewer: at which load?"""
    flood = pair.ratio(**FLOOD, metric="context_switches_per_packet")
    if not measured(flood):
        return None
    evidence = [f"ours per packet, in a flood at saturation: {times(flood)}"]
    equal = pair.ratio(**EQUAL, metric="context_switches_per_packet")
    if measured(equal):
        evidence.append(f"at one offered rate for both: {times(equal)}")
    tcp = pair.ratio(**TCP, metric="context_switches_per_megabit")
    if measured(tcp):
        evidence.append(f"per megabit of TCP: {times(tcp)}")
    return _finding("T1-context-switches", evidence, [*_never_sleeps(pair), *_guests_sleep(pair)])


def _never_sleeps(pair: Pair) -> Iterator[str]:
    cpu = packet_cpu(pair, pair.base)
    idle = pair.of(pair.base, **FLOOD, metric="cpu_idle", cpu=cpu) if cpu is not None else stats.NOTHING
    if measured(idle) and idle.median < NEAR_NONE:
        yield (
            f"at saturation the CPU that moves kernel OVS's packets is idle {share(idle)} of the time: its worker always finds another "
            "packet, does not sleep, and is hardly switched; what a poll-mode thread saves shows where the kernel's worker has time to "
            "sleep"
        )


def _guests_sleep(pair: Pair) -> Iterator[str]:
    """The part of the guests' own threads."""
    metric = "context_switches_per_packet"
    parts = [_guests(SOFTWARE, pair, case, metric) for case in (pair.base, pair.other)]
    if measured(*parts):
        yield (
            f"threads of the guests make {share(parts[0])} of kernel OVS's context switches in the flood and {share(parts[1])} of "
            "OVS-DPDK's: such a thread sleeps when its guest has nothing to do, whichever switch it waits for"
            + _without_guests(SOFTWARE, pair, "context switches", metric)
        )


def misses(published_id: str) -> Callable[[Pair], Finding | None]:
    """Of misses per access: with polls counted in, as a PMU counts them, and without."""

    def look(pair: Pair) -> Finding | None:
        where = {**FLOOD, "metric": RATES[published_id]}
        without = MODEL.ratio(pair.result, pair.other, pair.base, **where)
        counted_in = MODEL.ratio(pair.result, pair.other, pair.base, **{**where, "metric": where["metric"] + model.WITH_POLLING})
        if not measured(counted_in, without):
            return None
        evidence = [f"ours, misses per access with idle polling counted in: {times(counted_in)}", f"without it: {times(without)}"]
        evidence += [
            f"{words}: {times(ratio)}"
            for words, metric in PER_WHAT.items()
            if measured(ratio := MODEL.ratio(pair.result, pair.other, pair.base, **FLOOD, metric=metric.format(COUNTERS[published_id])))
        ]
        return _finding(published_id, evidence, list(_polls(pair, where["metric"])))

    return look


def _polls(pair: Pair, rate: str) -> Iterator[str]:
    polling = MODEL.estimate(pair.result, case_id=pair.other, **FLOOD, metric="model_polling_share", role="switch")
    if measured(polling):
        yield f"polls that find nothing take {share(polling)} of the poll-mode thread's cycles here"
        lower = _part(MODEL, pair, pair.other, over={"metric": rate + model.WITH_POLLING}, under={"metric": rate})
        if lower.high is not None and lower.high < 1:
            yield f"they hit the same few lines again and again: with them, OVS-DPDK's rate is {times(lower)} of what it is without"
            yield "the fewer packets there are, the lower a rate that has polls in it"
    yield "a rate says nothing of a packet: that is what misses per packet are for, above"


def _finding(published_id: str, evidence: list[str], reasons: list[str]) -> Finding:
    figure = next(one.figure for one in published.every() if one.id == published_id)
    return Finding(
        f"Published: {figure}.", tuple(evidence), "; ".join(reasons) + "." if reasons else "nothing that was counted here tells."
    )


LOOKS: tuple[Callable[[Pair], Finding | None], ...] = (throughput, context_switches, *(misses(one) for one in RATES))
