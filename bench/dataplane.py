# SPDX-License-Identifier: GPL-2.0-or-later
"""vhost-switch beside OVS-DPDK and DPDK's testpmd, between the same two endpoints over virtio-user, in one run on this host.

Each round starts every contender once for each size of frame, in random order, floods it, and measures one window. So a drift of the
machine meets all alike, and each ratio is of two windows of the same round. The cost of the stage counters is taken inside one
vhost-switch, which switches them on and off while the flood flows.

A contender's cycles per packet are all TSC cycles of the CPU that moves its frames, by the frames that it moved; misses are counted
there by the PMU. Of vhost-switch the busy ones are told, too, by its own stage counters: where they are fewer, the endpoints were the
limit, and not the switch. Endpoints take the path that costs them least (`--path vector`): on two CPUs both share one, and with the
default path they would be the limit of every contender but OVS-DPDK.
"""

import argparse
import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from vsprof.analysis import stats
from vsprof.analysis.stats import Estimate
from vsprof.bench import messages, perf, table
from vsprof.bench.flood import Say, flowing
from vsprof.bench.testpmd_switch import TestpmdSwitch
from vsprof.runner.experiment import SWITCHES, Case
from vsprof.switches.vhost_switch import PREFIX, VhostSwitch
from vsprof.terms import errors
from vsprof.testbeds import dpdk_telemetry
from vsprof.testbeds.native import Native
from vsprof.workloads import messages as workloads_messages
from vsprof.workloads.endpoints.virtio_user import PATHS
from vsprof.workloads.topologies.base import Topology

ROUNDS = 6
"""A bootstrap's interval takes six to be a 95 % one."""
SECONDS = 1.0
PAIRS = 6
"""Windows with the stage counters and without, of one vhost-switch."""
FRAMES = (64, 512, 1518)
EVENTS = {"l1d_misses": "L1-dcache-load-misses", "llc_misses": "cache-misses", "dtlb_misses": "dTLB-load-misses"}
"""perf's own names, whose meaning is the vendor's: good for one machine's contenders side by side."""


CONTENDERS: dict[str, dict[str, str]] = {
    "vhost_switch": {"switch": "vhost-switch", "forward": "switch"},
    "wire": {"switch": "vhost-switch", "forward": "wire"},
    "librte": {"switch": "vhost-switch", "forward": "switch", "rings": "librte"},
    "zero_copy": {"switch": "vhost-switch", "forward": "switch", "dequeue": "zero-copy"},
    "ovs_dpdk": {"switch": "ovs-dpdk"},
    "testpmd_io": {"switch": "testpmd", "forward": "io"},
    "testpmd_mac": {"switch": "testpmd", "forward": "mac"},
}
RATIOS = {
    "vhost_switch_over_ovs_dpdk": ("vhost_switch", "ovs_dpdk"),
    "vhost_switch_over_testpmd_io": ("vhost_switch", "testpmd_io"),
    "vhost_switch_over_testpmd_mac": ("vhost_switch", "testpmd_mac"),
    "wire_over_testpmd_io": ("wire", "testpmd_io"),
    "zero_copy_over_copy": ("zero_copy", "vhost_switch"),
    "own_rings_over_librte": ("vhost_switch", "librte"),
}


@dataclass(frozen=True)
class Window:
    """What one window saw of a contender."""

    packets_per_second: float
    misses_per_packet: Mapping[str, float]
    busy_cycles_per_packet: float | None = None
    """vhost-switch's alone, while it counts by stage."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--frames", type=int, nargs="*", default=[*FRAMES])
    parser.add_argument("--path", choices=[*PATHS], default="vector", help="the endpoints' way through their rings")
    parser.add_argument("--contenders", nargs="*", choices=[*CONTENDERS], default=[*CONTENDERS])
    asked = parser.parse_args(arguments)
    try:
        if lacks := Native.needs():
            raise messages.not_on_this_host("bench-dataplane", lacks)
        print(table.report("bench-dataplane", measure(asked.rounds, asked.frames, asked.contenders, asked.seconds, asked.path, _say)))
    except errors.VsprofError as error:
        print(f"bench-dataplane: {error}", file=sys.stderr)
        return error.exit_status
    return 0


def measure(rounds: int, frames: list[int], contenders: list[str], seconds: float, path: str, say: Say) -> dict[str, tuple[Estimate, str]]:
    """All estimates by name. Raises ``VsprofError``."""
    if why := perf.missing():
        say(messages.not_measured("misses per packet", why))
    events = {} if why else EVENTS
    seen: dict[tuple[str, int], list[Window]] = {(name, frame): [] for frame in frames for name in contenders}
    for number in range(1, rounds + 1):
        for name, frame in random.sample([*seen], len(seen)):
            say(f"round {number} of {rounds}: {name}, {frame} B")
            with flooded(name, frame, path, say) as topology:
                seen[name, frame].append(_window(topology, seconds, events))
    found: dict[str, tuple[Estimate, str]] = {}
    for frame in frames:
        found |= _ratios(seen, contenders, frame)
    # Without the copy the endpoints wait for the switch, and not it for them: what its counters cost it shows in the rate.
    with flooded("zero_copy", frames[0], path, say) as topology:
        say("stage counters on and off")
        found["stage_counters_cost"] = (_cost_of_stages(topology, seconds), "fraction of the rate")
        hertz = _tsc_hertz(_vhost_switch(topology))
    for (name, frame), windows in seen.items():
        found |= _absolute(f"{name}_{{}}_{frame}", windows, hertz)
    return found


@contextlib.contextmanager
def flooded(contender: str, frame_bytes: int, path: str, say: Say) -> Iterator[Topology]:
    """Two endpoints over virtio-user, on ``path``, with ``contender`` between them, one of which floods the other."""
    fixed = {"topology": "vm2vm", "access": "virtio-user", "frame_bytes": frame_bytes, "flows": 1, "path": path}
    case = Case.of({**fixed, **CONTENDERS[contender]})
    with flowing(Native(say=say), case, say, switches={**SWITCHES, "testpmd": TestpmdSwitch}) as flow:
        yield flow.topology
        flow.topology.check()


def _window(topology: Topology, seconds: float, events: Mapping[str, str]) -> Window:
    """Frames that the receiver got, and what the CPU that moved them did meanwhile."""
    busy_before = _busy(topology)
    before = topology.receiver.counters()
    misses = _counted(events, topology.switch.plan.switch, seconds)
    after = topology.receiver.counters()
    busy_after = _busy(topology)
    packets = after.received_packets - before.received_packets
    if packets <= 0:
        raise workloads_messages.endpoint_failed(topology.receiver.name, "no frame arrived in the window", "")
    rate = packets / (after.clock_s - before.clock_s)
    # The counters span a little more than perf's window: the packets of its time are the rate's.
    per = rate * seconds
    timed = {name: busy_after[name] - busy_before[name] for name in busy_after}
    busy = timed["busy_cycles"] / timed["timed_packets"] if timed.get("timed_packets") else None
    return Window(rate, {name: count / per for name, count in misses.items()}, busy)


def _busy(topology: Topology) -> dict[str, float]:
    """vhost-switch's cycles that were not idle polls, and the packets of the bursts that it timed; of another switch nothing."""
    if not isinstance(topology.switch, VhostSwitch):
        return {}
    found = _lcore(topology.switch)
    return {name: float(found[name]) for name in ("busy_cycles", "timed_packets")}


def _counted(events: Mapping[str, str], cpu: int, seconds: float) -> dict[str, float]:
    """How often each event happened in user mode on ``cpu`` in ``seconds``; those that the PMU counted all the time."""
    if not events:
        time.sleep(seconds)
        return {}
    command = [*perf.command(list(events.values()), cpu=cpu), "sleep", str(seconds)]
    printed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 30).stdout
    counts = {name: perf.read(printed, [event]) for name, event in events.items()}
    return {name: count.events for name, count in counts.items() if count is not None}


def _ratios(seen: Mapping[tuple[str, int], list[Window]], contenders: list[str], frame: int) -> dict[str, tuple[Estimate, str]]:
    there = {name: pair for name, pair in RATIOS.items() if {*pair} <= {*contenders}}
    return {f"{name}_{frame}": (_paired(seen[one, frame], seen[other, frame]), "ratio") for name, (one, other) in there.items()}


def _paired(ones: list[Window], others: list[Window]) -> Estimate:
    rates = [one.packets_per_second / other.packets_per_second for one, other in zip(ones, others, strict=True)]
    return _estimate(rates)


def _estimate(values: list[float]) -> Estimate:
    return stats.estimate([np.array([[value, 1.0]]) for value in values])


def _absolute(name: str, windows: list[Window], hertz: float) -> dict[str, tuple[Estimate, str]]:
    found = {
        name.format("mpps"): (_estimate([one.packets_per_second / 1e6 for one in windows]), "Mpackets/s"),
        name.format("cycles_per_packet"): (_estimate([hertz / one.packets_per_second for one in windows]), "TSC cycles"),
    }
    if busy := [one.busy_cycles_per_packet for one in windows if one.busy_cycles_per_packet is not None]:
        found[name.format("busy_cycles_per_packet")] = (_estimate(busy), "TSC cycles")
    for event in dict.fromkeys(event for one in windows for event in one.misses_per_packet):
        values = [one.misses_per_packet[event] for one in windows if event in one.misses_per_packet]
        found[name.format(f"{event}_per_packet")] = (_estimate(values), "events")
    return found


def _cost_of_stages(topology: Topology, seconds: float) -> Estimate:
    """1 - rate with the stage counters / rate without, of neighbouring windows of one vhost-switch, in random order."""
    costs = []
    for _ in range(PAIRS):
        rates = {}
        for stages in random.sample(("on", "off"), 2):
            _vhost_switch(topology).tell(f"set stages {stages}")
            rates[stages] = _window(topology, seconds, {}).packets_per_second
        costs.append(1 - rates["on"] / rates["off"])
    return _estimate(costs)


def _vhost_switch(topology: Topology) -> VhostSwitch:
    assert isinstance(topology.switch, VhostSwitch)
    return topology.switch


def _lcore(switch: VhostSwitch) -> Mapping[str, float]:
    """The counters of its one worker."""
    printed = switch.host.run(dpdk_telemetry.command(PREFIX, ["/vhost_switch/lcore,*=/vhost_switch/lcores"])).stdout
    return next(dpdk_telemetry.answers(printed))[3]


def _tsc_hertz(switch: VhostSwitch) -> float:
    """The TSC's frequency, as DPDK found it; one machine has one, whoever runs."""
    return float(_lcore(switch)["tsc_hz"])


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
