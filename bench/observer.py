# SPDX-License-Identifier: GPL-2.0-or-later
"""What each collector costs the traffic that it watches: throughput with it over throughput without, in pairs.

One flood at saturation flows through a switch. For each collector there are turns of four windows, two with it and two without, in the
order A B B A (``bench.slices``), so that a drift of the machine meets both alike. The ratio of each turn is taken; shown are their median
and its interval. A ratio of 1 is no effect. Collectors that have windows of their own are measured while they are engaged.

Natively what disturbed is told as well, and a turn during which the hypervisor moved the CPUs apart or together is done again.
"""

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from vsprof.analysis.stats import Estimate
from vsprof.bench import command, messages, slices, table
from vsprof.bench.compared import estimate, once
from vsprof.bench.distance import Distance
from vsprof.bench.flood import Flow, Say, flowing
from vsprof.collectors.base import Apart, Between, Collector
from vsprof.runner import experiment as experiments
from vsprof.runner import interruption, offers, window
from vsprof.runner.experiment import AUTO, COLLECTORS, SWITCHES, TESTBEDS, Case
from vsprof.terms import errors
from vsprof.testbeds.native import Native

TURNS = 6
"""A bootstrap's interval takes six to be a 95 % one: with five, the outermost of their medians is met more often than once in forty."""
SECONDS = {"native": 0.25}
"""Of a window, by testbed: a neighbour slows this host for some seconds at a time."""
OTHER_SECONDS = 1.0
MOST_TURNS = 3
"""Times the turns that are asked for: on a machine whose CPUs are moved all the time there are fewer than that."""
Found = dict[str, tuple[Estimate, str]]


class Undisturbed:
    """A testbed that nobody looks at: the lab, in which a hypervisor has no part."""

    def __init__(self) -> None:
        self.moved: list[bool] = []
        """Of each turn, whether the CPUs were moved during it."""

    def look(self) -> None:
        """Between windows."""

    def place(self) -> str:
        """How far apart the CPUs are now: ``near`` or ``far``."""
        return ""

    def told(self) -> Found:
        """What disturbed."""
        return {}


class Watched(Undisturbed):
    """This host."""

    def __init__(self, host: Native) -> None:
        super().__init__()
        plan = host.plan()
        self._disturbance, self._distance = slices.Disturbance(plan.switch), Distance(plan.switch, plan.endpoints)
        self.place = self._distance

    def look(self) -> None:
        # The switch polls on that CPU.
        with slices.before_others():
            self._disturbance.look()

    def told(self) -> Found:
        if not self.moved:
            return {}
        return {
            "time_stolen_by_the_hypervisor": (once(self._disturbance.stolen()), "fraction of time"),
            "slowest_calibration_loops": (once(self._disturbance.slowed()), "fraction longer"),
            "turns_in_which_cpus_moved": (once(statistics.mean(self.moved)), "fraction of turns"),
            **{f"line_from_cpu_to_cpu_{place}": (estimate(values), "ns") for place, values in self._distance.seen.items()},
        }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--testbed", choices=["native", "lab"], default="lab" if Native.needs() else "native")
    # Those that look while nothing is measured cost a window nothing.
    costly = [name for name, one in COLLECTORS.items() if not issubclass(one, Between)]
    parser.add_argument("--collectors", nargs="*", default=[AUTO], help="by name, between spaces or commas; default: auto, all that cost")
    parser.add_argument("--switches", nargs="*", choices=[*SWITCHES], help="default: what the experiment vm2vm compares on that testbed")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--seconds", type=float, help="of a window; default: 0.25 natively, else 1")
    asked = parser.parse_args(arguments)
    collectors = _named_of(" ".join(asked.collectors), costly)
    if unknown := [name for name in collectors if name not in costly]:
        parser.error(messages.no_such_collectors(unknown, costly))
    # What ends it takes the switches down, and not the numbers.
    interruption.heed()
    seconds = asked.seconds or SECONDS.get(asked.testbed, OTHER_SECONDS)

    def benchmark() -> None:
        found, ended = measure(asked.testbed, asked.switches, collectors, asked.turns, seconds, _say)
        print(table.report("bench-observer", found))
        if ended is not None:
            # What is shown is less than was asked for.
            raise ended

    return command.status("bench-observer", benchmark)


def _named_of(words: str, every: list[str]) -> list[str]:
    names = words.replace(",", " ").split()
    return every if names == [AUTO] else names


def measure(
    testbed: str, switches: list[str] | None, collectors: list[str], turns: int, seconds: float, say: Say
) -> tuple[Found, BaseException | None]:
    """The ratio of each collector that works, by switch; after Ctrl-C, or where a switch fails, those that were measured, and what ended
    it. Raises ``VsprofError`` where none was."""
    for name in collectors:
        COLLECTORS[name].build()
    plugins = [plugin for name in collectors if (plugin := COLLECTORS[name].emulator_plugin)]
    _, experiment = experiments.load("vm2vm")
    if switches:
        experiment = experiment.model_copy(update={"vary": {**experiment.vary, "switch": switches}})
    with TESTBEDS[testbed](say=say, plugins=plugins) as host:
        cases = offers.of(host, experiment).cases
    found: Found = {}
    ended: BaseException | None = None
    try:
        for case in cases:
            say_here = lambda text, case=case: say(f"{case.switch}: {text}")  # noqa: E731
            # A fresh host for each, as a run has.
            with flowing(TESTBEDS[testbed](say=say, plugins=plugins), case, say) as flow:
                _of_switch(flow, case, collectors, turns, seconds, found, say_here)
    except (KeyboardInterrupt, errors.VsprofError, OSError) as error:
        if not found:
            raise
        say(messages.measuring_ended(str(error) or "interrupted"))
        ended = error
    return found, ended


def _of_switch(flow: Flow, case: Case, collectors: list[str], turns: int, seconds: float, found: Found, say: Say) -> None:
    """Add what is found to ``found``, one collector after the other."""
    around = Watched(flow.host) if isinstance(flow.host, Native) else Undisturbed()
    for name in collectors:
        if one := _of_collector(flow, name, turns, seconds, around, say):
            found[_named(f"{name}_throughput_ratio", case)] = (one, "ratio")
    found.update({_named(name, case): told for name, told in around.told().items()})


def _of_collector(flow: Flow, name: str, turns: int, seconds: float, around: Undisturbed, say: Say) -> Estimate | None:
    collector = COLLECTORS[name](flow.host)
    if why := collector.not_of_this_switch() or collector.unavailable():
        say(messages.not_measured(name, why))
        return None
    say(name)
    try:
        collector.setup()
        # What the first window alone costs (a program read from the disk) is no part of it.
        _with(flow, name, collector, seconds)
        ratios = list(itertools.islice(_turns(flow, name, collector, seconds, around, MOST_TURNS * turns), turns))
    except errors.RunFailed as error:
        say(messages.not_measured(name, str(error)))
        return None
    finally:
        collector.teardown()
    flow.traffic.check()
    if not ratios:
        say(messages.not_measured(name, messages.CPUS_MOVED_ALWAYS))
        return None
    return estimate(ratios)


def _turns(flow: Flow, name: str, collector: Collector, seconds: float, around: Undisturbed, most: int) -> Iterator[float]:
    """Throughput with the collector over throughput without, of each turn during which the CPUs stayed where they were. Raises
    ``RunFailed`` where nothing came."""
    for _ in range(most):
        place = around.place()
        ratio = slices.ratio(
            lambda: _delivered(_with(flow, name, collector, seconds), seconds),
            lambda: _delivered(_without(flow, collector, seconds), seconds),
            around.look,
        )
        around.moved.append(around.place() != place)
        if not around.moved[-1]:
            yield ratio


def _delivered(rate: float, seconds: float) -> float:
    if not rate:
        raise messages.nothing_delivered(seconds)
    return rate


def _with(flow: Flow, name: str, collector: Collector, seconds: float) -> float:
    if not isinstance(collector, Apart):
        return _in_window(flow, {name: collector}, seconds)
    try:
        collector.engage()
        return _around(flow, lambda: collector.measure(seconds))
    finally:
        collector.disengage()


def _without(flow: Flow, collector: Collector, seconds: float) -> float:
    """Without it, and timed in the very same way."""
    return _around(flow, lambda: time.sleep(seconds)) if isinstance(collector, Apart) else _in_window(flow, {}, seconds)


def _in_window(flow: Flow, collectors: Mapping[str, Collector], seconds: float) -> float:
    """Frames per second out of the switch in a window as the runner measures it."""
    port = flow.topology.receiver_port.name
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "w1"
        window.measure(flow.host, flow.traffic, collectors, seconds, into)
        printed = ((into / f"{window.PORTS}.{end}").read_text() for end in ("begin", "end"))
        before, after = (flow.topology.switch.parse_port_counters(text)[port].sent_packets for text in printed)
        return (after - before) / window.recorded_seconds(into, window.PORTS)


def _around(flow: Flow, do: Callable[[], object]) -> float:
    """Frames per second out of the switch while ``do`` lasts."""
    began, before = flow.sent()
    do()
    ended, after = flow.sent()
    return (after - before) / (ended - began)


def _named(number: str, case: Case) -> str:
    """Later work compares the names of OVS-DPDK's; another switch is named."""
    return f"{number}{'' if case.switch == 'ovs-dpdk' else f'_{case.switch}'}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
