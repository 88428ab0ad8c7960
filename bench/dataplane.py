# SPDX-License-Identifier: GPL-2.0-or-later
"""vhost-switch beside OVS-DPDK and DPDK's testpmd, each between two endpoints over virtio-user, in one run: on this host, or in the lab
by the modelled processor's clock (``bench.dataplane_modelled``), where nothing disturbs.

On this host, in each round every contender is started, and all stay alive: they take turns in slices of a tenth of a second
(``bench.slices``), while the others are frozen. A ratio is of slices that followed one another; a round's ratio is the median of its
turns, and shown are the median over rounds and its interval: what a start decides (where memory lies) is another in each round. It is
shown for each place of the CPUs (``bench.dataplane_seen``). There are so many rounds as were asked for, or as many as it takes until every
interval is narrow enough (--half-width). The cost of the stage counters is taken inside one vhost-switch, which switches them on and off
between slices.

A contender's cycles per packet are all TSC cycles of the CPU that moves its frames, by the frames that came; misses are counted there by
the PMU, in windows of their own. Of vhost-switch the busy ones are told, too, by its own stage counters.

The endpoints are frame-flood (--driver), which costs less than any contender, also where both share a CPU. It tells how often it was
behind: where it never was, the switch was the limit.
"""

import argparse
import contextlib
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from vsprof.bench import command, contenders, dataplane_modelled, messages, perf, slices, table
from vsprof.bench.dataplane_seen import Enough, Found, Pair, Seen, Turn
from vsprof.bench.distance import Distance
from vsprof.bench.flood import Say, flood, standing
from vsprof.bench.slices import Contender, Disturbance, Slice, Telemetry
from vsprof.collectors.uarch_model import profiles
from vsprof.runner import interruption
from vsprof.switches.vhost_switch import PREFIX, VhostSwitch
from vsprof.terms import errors
from vsprof.testbeds.native import Native
from vsprof.workloads.endpoints import frame_flood
from vsprof.workloads.endpoints.virtio_user import DRIVERS, PATHS, VirtioUser
from vsprof.workloads.topologies.base import Topology
from vsprof.workloads.traffic.base import Traffic

ROUNDS = 6
"""A bootstrap's interval takes six to be a 95 % one."""
ROUNDS_MOST = 60
"""Two minutes each here."""
TURNS = 6
"""Of each ratio in a round, for each size of frame; a turn is four slices."""
FRAMES = (64, 512, 1518)
WARMUP_SECONDS = 0.5
COUNTED_SECONDS = 1.0
"""A window of the PMU."""
PERF_SECONDS = 30
"""What perf may take besides."""
EVENTS = {"l1d_misses": "L1-dcache-load-misses", "llc_misses": "cache-misses", "dtlb_misses": "dTLB-load-misses"}
"""perf's own names, whose meaning is the vendor's: good for one machine's contenders side by side."""
LCORES = "/vhost_switch/lcores"
BUSY = ("busy_cycles", "timed_packets")
STAGES_COST_OF = "vhost_switch"


class Live:
    """A contender that is alive, and its flood."""

    def __init__(self, host: Native, topology: Topology) -> None:
        self.topology = topology
        receiver, switch = topology.receiver, topology.switch
        assert isinstance(receiver, VirtioUser)
        prefix, question = receiver.asked()
        # Both ends are one program, which is the first one's.
        self._counts = counts = Telemetry(host, prefix, topology.sender.processes()[0].pid)
        self._asked = Telemetry(host, PREFIX, switch.processes()[0].pid) if isinstance(switch, VhostSwitch) else None
        self._lcore = f"/vhost_switch/lcore,{self._asked.ask(LCORES)[0]}" if self._asked else ""
        # Another driver's rounds are nobody's business.
        own = [frame_flood.question(end) for end in (0, 1)] if topology.chosen["driver"] == "frame-flood" else []
        rounds = [lambda of=of: {name: float(value) for name, value in counts.ask(of).items()} for of in own]
        self.turn = Contender(host, lambda: int(counts.ask(question)["ipackets"]), self._busy, *rounds)
        self._traffic: Traffic | None = None
        self.seen: list[Slice] = []

    def flood(self, frame_bytes: int) -> None:
        """Begin with frames of another size."""
        with self.turn.awake():
            self.stop()
            self._traffic = flood(self.topology, frame_bytes)
            time.sleep(WARMUP_SECONDS)
        self.taken()

    def taken(self) -> list[Slice]:
        """The slices since it was last asked."""
        seen, self.seen = self.seen, []
        return seen

    def rate(self) -> float:
        """Packets per second in a slice."""
        self.seen.append(self.turn.slice())
        return self.seen[-1].packets_per_second

    def rate_with(self, stages: str) -> float:
        """The same with vhost-switch's stage counters ``on``, or ``off``."""
        assert isinstance(self.topology.switch, VhostSwitch)
        with self.turn.awake():
            self.topology.switch.tell(f"set stages {stages}")
        return self.turn.slice().packets_per_second

    def misses(self, events: Mapping[str, str]) -> dict[str, float]:
        """Per packet, each event in user mode on the switch's CPU; those that the PMU counted all the time."""
        printed = ""

        def count() -> None:
            nonlocal printed
            words = [*perf.command(list(events.values()), cpu=self.topology.switch.plan.switch), "sleep", str(COUNTED_SECONDS)]
            try:
                printed = subprocess.run(words, capture_output=True, text=True, check=False, timeout=COUNTED_SECONDS + PERF_SECONDS).stdout
            except subprocess.TimeoutExpired as error:
                raise messages.perf_silent(error.timeout) from error

        # The rate's window is a little longer than perf's: the packets of perf's time are the rate's.
        packets = self.turn.slice(count).packets_per_second * COUNTED_SECONDS
        counts = {name: perf.read(printed, [event]) for name, event in events.items()}
        return {name: count.events / packets for name, count in counts.items() if count is not None}

    def tsc_hertz(self) -> float:
        """As DPDK found it; 0 where it is not asked of this switch."""
        with self.turn.awake():
            return float(self._asked.ask(self._lcore)["tsc_hz"]) if self._asked else 0.0

    def stop(self) -> None:
        if self._traffic is not None:
            self.topology.check()
            self._traffic.stop()
            self._traffic = None

    def close(self) -> None:
        for connection in filter(None, (self._counts, self._asked)):
            connection.close()

    def _busy(self) -> dict[str, float]:
        """vhost-switch's cycles that were not idle polls, and the packets of the bursts that it timed; of another switch nothing."""
        found = self._asked.ask(self._lcore) if self._asked else {}
        return {name: float(found[name]) for name in BUSY if name in found}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--testbed", choices=["native", "lab"], default="lab" if Native.needs() else "native")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="natively: how often all are started, at least")
    parser.add_argument("--half-width", type=float, help="natively: go on until no ratio's interval is wider to a side, near or far")
    parser.add_argument("--rounds-most", type=int, default=ROUNDS_MOST, help="natively: but no longer than this")
    parser.add_argument("--turns", type=int, default=TURNS, help="natively: of each ratio in a round")
    parser.add_argument("--windows", type=int, default=dataplane_modelled.WINDOWS, help="in the lab: of each contender")
    parser.add_argument("--cpu-profile", default=profiles.DEFAULT, help="in the lab")
    parser.add_argument("--frames", type=int, nargs="*", default=[*FRAMES])
    parser.add_argument("--driver", choices=DRIVERS, default="frame-flood", help="the endpoints: frame-flood, or DPDK's driver and testpmd")
    parser.add_argument("--path", choices=[*PATHS], default="vector", help="the features of their rings")
    parser.add_argument("--contenders", nargs="*", choices=[*contenders.CONTENDERS], default=[*contenders.CONTENDERS])
    asked = parser.parse_args(arguments)
    # What nohup has started takes no Ctrl-C; by this, too, nothing that was measured is lost.
    interruption.heed()
    ends = {"driver": asked.driver, "path": asked.path}
    if asked.half_width is not None and not 0 < asked.half_width < 1:
        parser.error(f"--half-width: found {asked.half_width:g}, need a part of the ratio between 0 and 1: 0.03 for 3 %")
    if asked.half_width is not None and asked.testbed == "lab":
        parser.error("--half-width is for this host: in the lab ask for more --windows")
    if asked.testbed == "native" and (lonely := contenders.lonely(asked.contenders)):
        parser.error(messages.in_no_ratio([*lonely], contenders.partners(lonely)))

    def benchmark() -> None:
        if asked.testbed == "lab":
            found, ended = dataplane_modelled.measure(asked.windows, asked.frames, asked.contenders, ends, asked.cpu_profile, _say)
        elif lacks := Native.needs():
            raise messages.not_on_this_host("bench-dataplane", lacks)
        else:
            enough = Enough(asked.rounds, asked.half_width, asked.rounds_most)
            found, ended = measure(enough, asked.turns, asked.frames, asked.contenders, ends, _say)
        print(table.report("bench-dataplane" if asked.testbed == "native" else "bench-dataplane-lab", found))
        if ended is not None:
            # What is shown is less than was asked for.
            raise ended

    return command.status("bench-dataplane", benchmark)


def measure(
    enough: Enough, turns: int, frames: Sequence[int], names: Sequence[str], ends: Mapping[str, str], say: Say
) -> tuple[Found, BaseException | None]:
    """All estimates by name; after Ctrl-C, or where a switch ends, those of what was measured, if a round was whole, and what ended it.
    Raises ``VsprofError``."""
    if why := perf.missing():
        say(messages.not_measured("misses per packet", why))
    seen, number = Seen(), 0
    ended: BaseException | None = None
    every = [(ratio, frame) for frame in frames for ratio in contenders.pairs(names)]
    try:
        while left := enough.left(number, seen, every):
            number += 1
            say_here = lambda text, number=number: say(f"round {number}: {text}")  # noqa: E731
            needed = {name for ratio, _ in left for name in contenders.RATIOS[ratio]}
            with alive([name for name in names if name in needed], ends, say_here) as live, slices.before_others():
                _round(live, left, turns, {} if why else EVENTS, seen, min(frames), say_here)
    except (KeyboardInterrupt, errors.VsprofError, OSError) as error:
        if number < 2:
            raise
        say(messages.rounds_ended(number, str(error) or "interrupted"))
        ended = error
    return seen.estimates(), ended


@contextlib.contextmanager
def alive(names: Sequence[str], ends: Mapping[str, str], say: Say) -> Iterator[dict[str, Live]]:
    """All contenders of ``names``, each between two endpoints over virtio-user with these options; all frozen."""
    with contextlib.ExitStack() as undo:
        live: dict[str, Live] = {}
        beside: Native | None = None
        for name in names:
            host = Native(say=say, beside=beside)
            beside = beside or host
            topology = undo.enter_context(standing(host, contenders.case(name, ends), say, switches=contenders.KINDS))
            live[name] = one = Live(host, topology)
            undo.callback(one.close)
            undo.callback(one.stop)
            undo.callback(host.thaw)
            host.freeze()
        yield live


def _round(
    live: Mapping[str, Live], left: Collection[Pair], turns: int, events: Mapping[str, str], seen: Seen, smallest: int, say: Say
) -> None:
    """Measure the ratios that are ``left``, all with frames of one size before those of the next; what the stage counters cost, with the
    ``smallest``, as long as there are some left of it."""
    plan = next(iter(live.values())).topology.switch.plan
    disturbance, distance = Disturbance(plan.switch), Distance(plan.switch, plan.endpoints[:2])
    moved: list[bool] = []
    for frame in sorted({frame for _, frame in left}):
        say(f"{frame} B")
        pairs = {ratio: contenders.RATIOS[ratio] for ratio, of in left if of == frame}
        there = {name: live[name] for name in live if any(name in pair for pair in pairs.values())}
        for one in there.values():
            one.flood(frame)
        turned = [*_turns(there, pairs, turns, disturbance, distance)]
        seen.take(frame, turned)
        moved += [not turn.place for turn in turned]
        if events:
            for name, one in there.items():
                seen.misses[name, frame].append(one.misses(events))
        if frame == smallest and (one := there.get(STAGES_COST_OF)):
            say("stage counters on and off")
            seen.stages_cost.append(1 - statistics.median(_turns_of_stages(one, turns, disturbance.look)))
    seen.moved.append(statistics.mean(moved))
    seen.stolen.append(disturbance.stolen())
    seen.slowed.append(disturbance.slowed())
    for place, values in distance.seen.items():
        seen.line_ns[place].append(statistics.median(values))
    seen.tsc_hertz = max(one.tsc_hertz() for one in live.values())


def _turns(
    live: Mapping[str, Live], pairs: Mapping[str, tuple[str, str]], turns: int, disturbance: Disturbance, distance: Callable[[], str]
) -> Iterator[Turn]:
    """Every ratio, so many times; those of all ratios lie among one another."""
    place = distance()
    for _ in range(turns):
        for name in random.sample([*pairs], len(pairs)):
            one, other = (live[contender] for contender in pairs[name])
            value = slices.ratio(one.rate, other.rate, disturbance.look)
            disturbance.look()
            before, place = place, distance()
            its = {each: [disturbance.beside(seen) for seen in live[each].taken()] for each in pairs[name]}
            yield Turn(name, value, place if before == place else "", its)


def _turns_of_stages(one: Live, turns: int, between: Callable[[], None]) -> list[float]:
    """The rate with the stage counters over the rate without. They are on again at the end: what follows is measured with them."""
    found = [slices.ratio(lambda: one.rate_with("on"), lambda: one.rate_with("off"), between) for _ in range(turns)]
    one.rate_with("on")
    return found


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
