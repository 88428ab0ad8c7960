# SPDX-License-Identifier: GPL-2.0-or-later
"""Why our ratios differ from T1's published ones, figure by figure, as far as this result's own counters show a reason.

T1: ACANETS, "Understanding the Performance of DPDK as a Computer Architect", DPDK Summit San Jose 2016. Its notes give ratios alone: no
processor, frame size, number of CPUs, nor which counter a rate was of. A reason below is one that our numbers show at work here; that it is
the reason there, nobody can tell from here, and nothing below says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from vsprof.analysis import comparison, model, published, stats
from vsprof.analysis.comparison import EQUAL, FLOOD, NEAR_ALL, NEAR_NONE, TCP, Finding, Pair, measured, share, times, told
from vsprof.analysis.load import Result
from vsprof.analysis.source import Source, by_repetition, ratio_between
from vsprof.analysis.sources import MODEL, SOFTWARE

SWITCHES = {**FLOOD, "metric": "context_switches_per_packet"}
OTHER_LOADS = {
    "at one offered rate for both": {**SWITCHES, **EQUAL},
    "per megabit of TCP": {**TCP, "metric": "context_switches_per_megabit"},
}
MODEL_CYCLES = {**FLOOD, "metric": "model_cycles_per_packet"}


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


@dataclass(frozen=True)
class Beside:
    """A published ratio, by its id, and ours of the same two cases: ``ours`` are ratios without which there is nothing to say, ``more`` are
    told where they were counted, both by what evidence calls them."""

    id: str
    ours: Mapping[str, Mapping[str, str]]
    reasons: Callable[[Pair], Iterable[str]]
    more: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    source: Source = SOFTWARE

    def __call__(self, pair: Pair) -> Finding | None:
        ratios = {words: pair.by(self.source).ratio(**which) for words, which in {**self.ours, **self.more}.items()}
        if not measured(*(ratios[words] for words in self.ours)):
            return None
        figure = next(one.figure for one in published.every() if one.id == self.id)
        reasons = "; ".join(self.reasons(pair))
        evidence = tuple(f"{words}: {times(ratio)}" for words, ratio in ratios.items() if measured(ratio))
        return Finding(f"Published: {figure}.", evidence, f"{reasons}." if reasons else "nothing that was counted here tells.")


def _throughput(pair: Pair) -> Iterator[str]:
    """Up to 8x: what kept ours from it?"""
    if pair.result.emulated:
        instructions = pair.by(MODEL).ratio(**FLOOD, metric="model_instructions_per_packet")
        fewer = told("; OVS-DPDK takes {} the instructions per packet", instructions, show=times)
        yield "an emulator's rate follows the number of instructions, not what a processor waits for" + "".join(fewer)
    text = "the two guests take {} of the path's estimated cycles with kernel OVS and {} with OVS-DPDK, which no switch can lower"
    yield from _guests(pair.by(MODEL), MODEL_CYCLES, text, "cycles")
    busy = pair.of(pair.other, **FLOOD, metric="pmd_busy")
    if busy.median < NEAR_ALL:
        yield (
            f"OVS-DPDK's poll-mode thread found packets in {share(busy)} of its cycles only: it could have carried more than the endpoints "
            "gave it"
        )


def _guests(pair: Pair, which: Mapping[str, str], text: str, what: str) -> Iterator[str]:
    """The guests' part of both cases' whole paths, and how the paths compare without it."""
    parts = [_part(pair, case, over={**which, "role": "guest"}, under=which) for case in (pair.base, pair.other)]
    if measured(*parts):
        without = pair.ratio(without="guest", **which)
        rest = f"; without them, OVS-DPDK's path has {times(without)} the {what} per packet" if without.median > 0 else ""
        yield text.format(*map(share, parts)) + rest


def _part(pair: Pair, case: str, *, over: Mapping[str, str], under: Mapping[str, str]) -> stats.Estimate:
    """How many times one metric of a case's path another one of the same windows is."""
    path = {"case_id": case, "role": "path", "cpu": -1}
    return ratio_between(*(by_repetition(pair.source.rows(pair.result, **{**path, **which})) for which in (over, under)), paired=True)


def _context_switches(pair: Pair) -> Iterator[str]:
    """About 10x fewer: at which load?"""
    idle = pair.of(pair.base, **FLOOD, metric="cpu_idle", cpu=pair.cpu(pair.base))
    if idle.median < NEAR_NONE:
        yield (
            f"at saturation the CPU that moves kernel OVS's packets is idle {share(idle)} of the time: its worker always finds another "
            "packet, does not sleep, and is hardly switched; what a poll-mode thread saves shows where the kernel's worker has time to "
            "sleep"
        )
    text = (
        "threads of the guests make {} of kernel OVS's context switches in the flood and {} of OVS-DPDK's: such a thread sleeps when its "
        "guest has nothing to do, whichever switch it waits for"
    )
    yield from _guests(pair, SWITCHES, text, "context switches")


def _polls(rate: Mapping[str, str], polled: Mapping[str, str], pair: Pair) -> Iterator[str]:
    """What polls that find nothing do to a rate of misses."""
    pair = pair.by(MODEL)
    polling = pair.of(pair.other, **FLOOD, metric="model_polling_share", role="switch")
    if measured(polling):
        yield f"polls that find nothing take {share(polling)} of the poll-mode thread's cycles here"
        lower = _part(pair, pair.other, over=polled, under=rate)
        if lower.high is not None and lower.high < 1:
            yield f"they hit the same few lines again and again: with them, OVS-DPDK's rate is {times(lower)} of what it is without"
            yield "the fewer packets there are, the lower a rate that has polls in it"
    yield "a rate says nothing of a packet: that is what misses per packet are for, above"


def _of_misses(published_id: str, counter: str) -> Beside:
    """Of misses per access: with polls counted in, as a PMU counts them, and without."""
    rate, polled = ({**FLOOD, "metric": model.RATES[counter] + ending} for ending in ("", model.WITH_POLLING))
    more = {
        "per instruction with idle polling counted in, as a profiler has it": {
            **FLOOD, "metric": f"model_{counter}_per_kilo_instructions{model.WITH_POLLING}"
        },
        "per packet, without it": {**FLOOD, "metric": f"model_{counter}_per_packet"},
    }  # fmt: skip
    ours = {"ours, misses per access with idle polling counted in": polled, "without it": rate}
    return Beside(published_id, ours, partial(_polls, rate, polled), more, MODEL)


LOOKS = (
    Beside("T1-throughput", {"ours, of a UDP flood at saturation": {**FLOOD, "metric": "packet_rate_received"}}, _throughput),
    Beside("T1-context-switches", {"ours per packet, in a flood at saturation": SWITCHES}, _context_switches, more=OTHER_LOADS),
    _of_misses("T1-l1-misses", "l1d_misses"),
    _of_misses("T1-tlb-misses", "dtlb_misses"),
)
