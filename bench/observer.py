# SPDX-License-Identifier: GPL-2.0-or-later
"""What each collector costs the traffic that it watches: throughput with it over throughput without, in pairs.

One flood at saturation flows through a switch. For each collector there are turns of four windows, two with it and two without, in the
order A B B A (``bench.slices``), so that a drift of the machine meets both alike. The ratio of each turn is taken; shown are their median
and its interval. A ratio of 1 is no effect. Collectors that have windows of their own are measured while they are engaged.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from vsprof.analysis.stats import Estimate
from vsprof.bench import messages, slices, table
from vsprof.bench.compared import estimate
from vsprof.bench.flood import Flow, Say, flowing
from vsprof.collectors.base import Apart, Collector
from vsprof.runner import experiment as experiments
from vsprof.runner import offers, window
from vsprof.runner.experiment import COLLECTORS, SWITCHES, TESTBEDS, Case
from vsprof.terms import errors
from vsprof.testbeds.native import Native

TURNS = 6
"""A bootstrap's interval takes six to be a 95 % one: with five, the outermost of their medians is met more often than once in forty."""
SECONDS = {"native": 0.25}
"""Of a window, by testbed: a neighbour slows this host for some seconds at a time."""
OTHER_SECONDS = 1.0
Found = dict[str, tuple[Estimate, str]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--testbed", choices=[*TESTBEDS], default="lab" if Native.needs() else "native")
    parser.add_argument("--collectors", nargs="*", choices=[*COLLECTORS], default=[*COLLECTORS])
    parser.add_argument("--switches", nargs="*", choices=[*SWITCHES], help="default: what the experiment vm2vm compares on that testbed")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--seconds", type=float, help="of a window; default: 0.25 natively, else 1")
    asked = parser.parse_args(arguments)
    seconds = asked.seconds or SECONDS.get(asked.testbed, OTHER_SECONDS)
    try:
        found = measure(asked.testbed, asked.switches, asked.collectors, asked.turns, seconds, _say)
        print(table.report("bench-observer", found))
    except errors.VsprofError as error:
        print(f"bench-observer: {error}", file=sys.stderr)
        return error.exit_status
    return 0


def measure(testbed: str, switches: list[str] | None, collectors: list[str], turns: int, seconds: float, say: Say) -> Found:
    """The ratio of each collector that works, by switch. Raises ``VsprofError``."""
    plugins = [plugin for name in collectors if (plugin := COLLECTORS[name].emulator_plugin)]
    _, experiment = experiments.load("vm2vm")
    if switches:
        experiment = experiment.model_copy(update={"vary": {**experiment.vary, "switch": switches}})
    with TESTBEDS[testbed](say=say, plugins=plugins) as host:
        cases = offers.of(host, experiment).cases
    found: Found = {}
    for case in cases:
        # A fresh host for each, as a run has.
        with flowing(TESTBEDS[testbed](say=say, plugins=plugins), case, say) as flow:
            for name in collectors:
                if estimate := _of_collector(flow, name, turns, seconds, lambda text, case=case: say(f"{case.switch}: {text}")):
                    found[_name(name, case)] = (estimate, "ratio")
    return found


def _of_collector(flow: Flow, name: str, turns: int, seconds: float, say: Say) -> Estimate | None:
    collector = COLLECTORS[name](flow.host)
    if why := collector.unavailable():
        say(messages.not_measured(name, why))
        return None
    say(name)
    collector.setup()
    try:
        # What the first window alone costs (a program read from the disk) is no part of it.
        _with(flow, name, collector, seconds)
        ratios = [_turn(flow, name, collector, seconds) for _ in range(turns)]
    except errors.RunFailed as error:
        say(messages.not_measured(name, str(error)))
        return None
    finally:
        collector.teardown()
    flow.traffic.check()
    return estimate(ratios)


def _turn(flow: Flow, name: str, collector: Collector, seconds: float) -> float:
    """Throughput with the collector over throughput without. Raises ``RunFailed`` where nothing came."""
    return slices.ratio(
        lambda: _delivered(_with(flow, name, collector, seconds), seconds), lambda: _delivered(_without(flow, collector, seconds), seconds)
    )


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


def _name(collector: str, case: Case) -> str:
    """Later work compares the names of OVS-DPDK's; another switch is named."""
    return f"{collector}_throughput_ratio{'' if case.switch == 'ovs-dpdk' else f'_{case.switch}'}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
