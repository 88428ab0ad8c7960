# SPDX-License-Identifier: GPL-2.0-or-later
"""Why our ratios differ from T1's published ones, figure by figure, as far as this result's own counters show a reason.

T1: ACANETS, "Understanding the Performance of DPDK as a Computer Architect", DPDK Summit San Jose 2016. Its notes give ratios alone: no
processor, frame size, number of CPUs, nor which counter a rate was of. A reason below is one that our numbers show at work here; that it is
the reason there, nobody can tell from here, and nothing below says so.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vsprof.analysis import comparison, looks, model, published, stats
from vsprof.analysis.comparison import FLOOD, Pair, measured, share, times
from vsprof.analysis.load import Result
from vsprof.analysis.looks import Finding, NotMeasured, Words
from vsprof.analysis.source import by_repetition, ratio_between
from vsprof.analysis.sources import source_of


def markdown(result: Result) -> str:
    """The differences as a list, or why there is nothing to set beside T1."""
    found = filter(None, (_beside(pair, **row) for pair in _pairs(result) for row in looks.ROWS["published"]))
    return looks.numbered(found, "T1 compares two VMs over kernel OVS and over OVS-DPDK; this result does not have both.")


def _pairs(result: Result) -> Iterator[Pair]:
    """T1's own pair: kernel OVS, and OVS-DPDK against it."""
    for pair in comparison.pairs(result):
        switches = [result.cases.loc[case, "switch"] for case in (pair.base, pair.other)]
        if switches == ["kernel-ovs", "ovs-dpdk"] and result.cases.loc[pair.other, "topology"] == "vm2vm":
            yield pair


def _beside(pair: Pair, published_id: str, needs: Sequence[str], evidence: Sequence[Any], reason: Sequence[Any]) -> Finding | None:
    """A published ratio and ours of the same two cases."""
    words = Words(pair, FLOOD)
    with contextlib.suppress(NotMeasured):
        for name in needs:
            words.number(name)
        figure = next(one.figure for one in published.every() if one.id == published_id)
        reasons = "; ".join(words.sentences(reason)) or "nothing that was counted here tells"
        return Finding(f"Published: {figure}.", tuple(words.sentences(evidence)), f"{reasons}.")
    return None


@looks.in_rows
def cycles_of_guests(words: Words) -> Iterator[str]:
    text = "the two guests take {} of the path's estimated cycles with kernel OVS and {} with OVS-DPDK, which no switch can lower"
    return _guests(words.pair, {**FLOOD, "metric": "model_cycles_per_packet"}, text, "cycles")


@looks.in_rows
def switches_of_guests(words: Words) -> Iterator[str]:
    text = (
        "threads of the guests make {} of kernel OVS's context switches in the flood and {} of OVS-DPDK's: such a thread sleeps when its "
        "guest has nothing to do, whichever switch it waits for"
    )
    return _guests(words.pair, {**FLOOD, "metric": "context_switches_per_packet"}, text, "context switches")


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
    rows = (source_of(which["metric"]).rows(pair.result, **{**path, **which}) for which in (over, under))
    return ratio_between(*map(by_repetition, rows), paired=True)


@looks.in_rows
def l1d_polls(words: Words) -> Iterator[str]:
    return _polls(words, model.RATES["l1d_misses"])


@looks.in_rows
def dtlb_polls(words: Words) -> Iterator[str]:
    return _polls(words, model.RATES["dtlb_misses"])


def _polls(words: Words, rate: str) -> Iterator[str]:
    """What polls that find nothing do to a rate of misses."""
    if words.holds("has.other.model_polling_share.switch"):
        yield words.say("polls that find nothing take {other.model_polling_share.switch} of the poll-mode thread's cycles here")
        of_path = {**FLOOD, "metric": rate}
        lower = _part(words.pair, words.pair.other, over={**of_path, "metric": rate + model.WITH_POLLING}, under=of_path)
        if lower.high is not None and lower.high < 1:
            yield f"they hit the same few lines again and again: with them, OVS-DPDK's rate is {times(lower)} of what it is without"
            yield "the fewer packets there are, the lower a rate that has polls in it"
    yield "a rate says nothing of a packet: that is what misses per packet are for, above"
