# SPDX-License-Identifier: GPL-2.0-or-later
"""What each poll-mode thread of OVS-DPDK did: busy and idle cycles, packets, batches, cache hits, upcalls; and how these are distributed.

Cycles are the time-stamp counter's (TSC), not the core's: in the emulated lab they follow the emulating machine's clock.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from vsprof.collectors.base import Recorded
from vsprof.collectors.ovs import Asker, has_pmd, not_running
from vsprof.collectors.ovs_pmd import histograms
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords

SEPARATOR, QUEUES = "--- pmd-perf-show", "--- pmd-rxq-show"
# Fields of pmd-stats-show and of pmd-perf-show, both counted since the thread started, and our name and unit of each.
STATS = {
    "packets received": ("pmd_packets", "packets"),
    "emc hits": ("emc_hits", "packets"),
    "smc hits": ("smc_hits", "packets"),
    "simple match hits": ("simple_match_hits", "packets"),
    "megaflow hits": ("megaflow_hits", "packets"),
    "miss with success upcall": ("upcalls", "events"),
    "miss with failed upcall": ("lost_upcalls", "events"),
    "idle cycles": ("pmd_idle_cycles", "TSC cycles"),
    "processing cycles": ("pmd_busy_cycles", "TSC cycles"),
}
PERF = {
    "Iterations": ("pmd_iterations", "events"),
    "idle iterations": ("pmd_idle_iterations", "events"),
    "busy iterations": ("pmd_busy_iterations", "events"),
    "sleep iterations": ("pmd_sleep_iterations", "events"),
    "Tx packets": ("pmd_packets_sent", "packets"),
    "Tx batches": ("pmd_batches_sent", "events"),
}
# Since Open vSwitch 4.0 both commands print what pmd-perf-show does, in which the cycles of idle and busy rounds are percentages alone.
ALSO_PERF = {
    "Rx packets": "pmd_packets", "EMC hits": "emc_hits", "SMC hits": "smc_hits", "Simple Match hits": "simple_match_hits",
    "Megaflow hits": "megaflow_hits", "Upcalls": "upcalls", "Lost upcalls": "lost_upcalls",
}  # fmt: skip
"""Fields of pmd-perf-show that stand in for those of pmd-stats-show, by our names."""
_THREAD = re.compile(r"^pmd thread numa_id \d+ core_id (\d+):$")
_FIELD = re.compile(r"^\s+(?:- )?(?P<name>[A-Za-z][\w ]*?):\s+(?P<value>\d+)\b(?!\.)")


class OvsPmd(Asker):
    words = "OVS-DPDK's poll-mode threads"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "pmd_busy_cycles": NumberWords("TSC cycles of iterations that found packets", better="less"),
        "pmd_idle_cycles": NumberWords("TSC cycles of iterations that found nothing"),
        "pmd_*iterations": NumberWords("rounds over the ports"),
        "pmd_packets*": NumberWords("packets"),
        "pmd_batches_sent": NumberWords("batches sent", better="less"),
        "*_hits": NumberWords("packets whose flow this cache has"),
        "*upcalls": NumberWords("packets without a flow", better="less"),
        "pmd_batch_packets_*": NumberWords("batches of packets received, by size: so many at most, and more than the bin below"),
        "pmd_iteration_packets_*": NumberWords("rounds over the ports, by the packets received"),
        "pmd_queue_fill_*": NumberWords("rounds over the ports, by the frames in the fullest vhost queue"),
        "pmd_iteration_cycles_*": NumberWords("TSC cycles of a round over the ports"),
        "pmd_packet_cycles_*": NumberWords("TSC cycles per packet of a round that received any", better="less"),
        "pmd_iteration_upcalls_*": NumberWords("upcalls of a round over the ports", better="less"),
        "pmd_upcall_cycles_*": NumberWords("TSC cycles of an upcall", better="less"),
        "pmd_long_iterations": NumberWords("rounds over the ports of more than 250 us", better="less"),
        "pmd_full_queue_iterations": NumberWords("rounds that found 128 frames or more in a queue", better="less"),
        "rxq_load_*": NumberWords("share of the thread's cycles that this receive queue took"),
    }
    # Older ones know no -secs, and refuse the last.
    asks = (
        "dpif-netdev/pmd-stats-show", SEPARATOR, "dpif-netdev/pmd-perf-show", QUEUES,
        f"dpif-netdev/pmd-rxq-show -secs {histograms.RXQ_SECONDS}",
    )  # fmt: skip

    def not_of_this_switch(self) -> str | None:
        if why := not_running(self.host):
            return why
        return None if has_pmd(self.host) else "this switch has no poll-mode threads"

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        before, after = read(recorded.begin), read(recorded.end)
        if before.keys() != after.keys():
            raise ValueError(f"poll-mode threads on CPUs {sorted(before)} at the begin, on {sorted(after)} at the end")
        for cpu, counters in after.items():
            for name, unit in (*STATS.values(), *PERF.values()):
                if name not in counters or name not in before[cpu]:
                    yield Number(name, None, unit, "switch", cpu, note="OVS did not print it at both ends of the window")
                    continue
                gained = counters[name] - before[cpu][name]
                yield Number(name, gained, unit, "switch", cpu, "all", recorded.seconds, recorded.seconds)
        yield from _distributions(recorded)


def _distributions(recorded: Recorded) -> Iterable[Number]:
    """Nothing where Open vSwitch prints no histograms, as with an earlier vsprof's command."""
    begin, (end, _, queues) = recorded.begin.partition(QUEUES)[0], recorded.end.partition(QUEUES)
    before, after = histograms.read(begin), histograms.read(end)
    for cpu in sorted(before.keys() & after.keys()):
        gained = {name: one.since(before[cpu][name]) for name, one in after[cpu].items()}
        yield from histograms.numbers(gained, histograms.hertz(end, cpu), cpu, recorded.seconds)
    yield from histograms.queues(queues, sorted(after), recorded.seconds)


def read(text: str) -> dict[int, dict[str, int]]:
    """Both commands' counters of each poll-mode thread, by its CPU."""
    stats, found, perf = text.partition(QUEUES)[0].partition(SEPARATOR)
    if not found:
        raise ValueError("not pmd-stats-show and pmd-perf-show, one after the other")
    threads: dict[int, dict[str, int]] = {}
    for part, names in ((stats, STATS), (perf, PERF)):
        for cpu, field, value in _fields(part):
            if field in names:
                threads.setdefault(cpu, {})[names[field][0]] = value
    for cpu, field, value in _fields(perf):
        if field in ALSO_PERF:
            threads.setdefault(cpu, {}).setdefault(ALSO_PERF[field], value)
    return threads


def _fields(text: str) -> Iterable[tuple[int, str, int]]:
    cpu = None
    for line in text.splitlines():
        if match := _THREAD.match(line.strip()):
            cpu = int(match[1])
        elif line.startswith("main thread"):
            cpu = None
        elif cpu is not None and (match := _FIELD.match(line)):
            yield cpu, match["name"], int(match["value"])


COLLECTOR = OvsPmd
