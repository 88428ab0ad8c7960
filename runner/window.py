# SPDX-License-Identifier: GPL-2.0-or-later
"""One measured interval: a script on the testbed that reads every counter at its begin and at its end.

One script, so that nobody talks to the host while the window passes: a log-in would cost more context switches than a
PMD makes in a minute. Every probe is stamped with the testbed's clock at both ends, and timed by its own stamps.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vsprof.collectors import ovs, reading
from vsprof.collectors.base import Clock, Collector, Marks, Reader
from vsprof.collectors.ovs import Asker
from vsprof.testbeds.base import Testbed
from vsprof.testbeds.lab import Lab
from vsprof.workloads.traffic.base import Sample, Traffic

FOLDER = "/run/vsprof-window"
PORTS = "ports"
"""The probe that reads the switch's port counters."""
FILES, ASKED = "files", "asked"
"""The probes that read what all readers among the collectors want, and that ask ovs-vswitchd for all askers."""
PROBES_S = 0.5
"""The most that all probes of a window take, by the testbed's clock."""
ENDS = (("begin", "began"), ("end", "ended"))
"""Of a window: what a probe printed there, and when it began to."""
NEWLINE = "\n"
NOTHING = ":"
"""To a shell, braces with nothing inside are an error."""
WARMUP_MOST = 5
"""How many times the least warm-up of modelled time one may last whose rate does not become steady."""
LOOK_S = 60
"""How often it is looked whether a window of modelled time goes on."""
ALLOWANCE_S = 120
"""How long the probes of a slow testbed may take beyond the window itself."""


@dataclass(frozen=True)
class Probe:
    """A pair of shell commands for the two ends of a window, and one before and behind it."""

    begin: str
    end: str
    prepare: str = ""
    finish: str = ""
    nesting: int = 0
    """See ``Collector.nesting``."""


@dataclass(frozen=True)
class Shared:
    """What one program reads for several collectors."""

    command: str
    nesting: int
    parts: Mapping[str, Callable[[str], str]]
    """What each collector gets, by its name, of what the program printed."""


def shared(collectors: Mapping[str, Collector]) -> dict[str, Shared]:
    """The probes that serve several collectors. Who is of two gets what the first read, and behind it the other's."""
    readers = {name: one for name, one in collectors.items() if isinstance(one, Reader)}
    askers = {name: one for name, one in collectors.items() if isinstance(one, Asker)}
    found = {}
    if readers:
        lines = {name: partial(reading.lines_of, one) for name, one in readers.items()}
        found[FILES] = Shared(reading.command(readers.values()), Reader.nesting, lines)
    if askers:
        found[ASKED] = Shared(ovs.command(askers), Asker.nesting, {name: partial(ovs.answers_of, name) for name in askers})
    return found


def probes(traffic: Traffic, collectors: Mapping[str, Collector]) -> dict[str, Probe]:
    """What a window reads: the switch's ports nearest to its ends, for all else is divided by their packets."""
    ports = traffic.topology.switch.port_counters()
    serving = shared(collectors)
    served = {name for one in serving.values() for name in one.parts}
    others = {name: one for name, one in collectors.items() if name not in served}
    counted = {name: Probe(one.begin(), one.end(), one.prepare(), one.finish(), one.nesting) for name, one in others.items()}
    return {
        **{name: Probe(one.command, one.command, nesting=one.nesting) for name, one in serving.items()},
        **counted,
        PORTS: Probe(ports, ports),
    }


def nested(wanted: Mapping[str, Probe]) -> dict[str, Probe]:
    """The same in the order for modelled time: what asks the switch is begun first, and ended last. ovs-vswitchd's main thread is woken to
    answer, and these were nearly all of the context switches that a window of OVS-DPDK had."""
    return dict(sorted(wanted.items(), key=lambda one: one[1].nesting))


def script(wanted: Mapping[str, Probe], seconds: float) -> str:
    """The script of a window of ``seconds``. It needs bash, whose EPOCHREALTIME reads the clock without a process."""
    return "\n".join([*_before(wanted), *_inside(wanted, seconds), *_behind(wanted)]) + "\n"


def _before(wanted: Mapping[str, Probe]) -> list[str]:
    lines = ["export LC_ALL=C", f"rm -rf {FOLDER}", f"mkdir -p {FOLDER}", f"cd {FOLDER}", "exec 2> errors.txt"]
    return lines + [probe.prepare for probe in wanted.values() if probe.prepare]


def _inside(wanted: Mapping[str, Probe], seconds: float, marks: Marks | None = None) -> list[str]:
    """The window's own marks run at its very ends, with no probe between. With marks, all is ended in the reverse of the order begun."""
    first, begin, end = (marks.probes, marks.begin, marks.end) if marks else ("", "", "")
    lines = [first]
    for name, probe in wanted.items():
        lines += [f"echo $EPOCHREALTIME > {name}.began", f"{{ {probe.begin or NOTHING}\n}} > {name}.begin"]
    lines += [begin, f"sleep {seconds}", end]
    # Ended in the order begun, all intervals are about equally long. In modelled time they are short enough to be nested.
    for name, probe in reversed(wanted.items()) if marks else wanted.items():
        lines += [f"echo $EPOCHREALTIME > {name}.ended", f"{{ {probe.end or NOTHING}\n}} > {name}.end"]
    return [line for line in lines if line]


def _behind(wanted: Mapping[str, Probe]) -> list[str]:
    return [f"{{ {probe.finish}\n}} >> {name}.end" for name, probe in wanted.items() if probe.finish]


def measure(host: Testbed, traffic: Traffic, collectors: Mapping[str, Collector], seconds: float, into: Path) -> None:
    """Measure one window and keep everything printed in the folder ``into``. Raises ``RunFailed``."""
    wanted = probes(traffic, collectors)
    host.push(script(wanted, seconds), f"{FOLDER}.sh")
    before = traffic.sample() if traffic.asks_endpoints() else None
    host.run(f"bash {FOLDER}.sh", timeout=seconds + ALLOWANCE_S)
    _keep(host, (before, traffic.sample()) if before else None, into, collectors)


def measure_modelled(
    host: Lab,
    traffic: Traffic,
    collectors: Mapping[str, Collector],
    clock: Clock,
    seconds: float,
    warmup: float,
    into: Path,
    counted: Path,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """The same in modelled time, which lasts no longer than it must: what takes a program long to begin or to end is done outside.

    ``counted``: the file that takes what the clock counted. ``meanwhile`` is called about once a second while the window lasts."""
    wanted = nested(probes(traffic, collectors))
    marks = clock.marks()
    parts = {"before": [*_before(wanted), marks.ready], "inside": _inside(wanted, seconds, marks), "behind": _behind(wanted)}
    # In one file: to send one costs a slow host most of a second.
    host.push("".join(f"{name}() {{\n{NEWLINE.join([*lines, ':'])}\n}}\n" for name, lines in parts.items()), f"{FOLDER}.sh")
    with host.shell() as shell:
        # One shell for all: a probe may have begun what it ends. To start perf beside guests that send takes twice as long.
        with host.guests_held():
            shell.ask(f". {FOLDER}.sh && before", ALLOWANCE_S)
        traffic.hold()
        with clock.modelled_time():
            traffic.go_on()
            clock.warm_up(warmup, WARMUP_MOST * warmup)
            before = traffic.sample() if traffic.asks_endpoints() else None
            shell.ask("inside", LOOK_S, clock.patience(seconds + PROBES_S), meanwhile)
            samples = (before, traffic.sample()) if before else None
        # Nothing is measured any more. Guests that went on sending would take this machine's CPUs from what is done now.
        with host.guests_held():
            shell.ask("behind", ALLOWANCE_S)
            _keep(host, samples, into, collectors)
            counted.parent.mkdir(parents=True)
            counted.write_text(clock.read_window())


def _keep(host: Testbed, samples: tuple[Sample, Sample] | None, into: Path, collectors: Mapping[str, Collector]) -> None:
    """``samples``: the endpoints' counters before and after; None where they were not asked."""
    host.pull(FOLDER, into)
    for path in (into / Path(FOLDER).name).iterdir():
        path.rename(into / path.name)
    (into / Path(FOLDER).name).rmdir()
    _share_out(collectors, into)
    described = dict(zip(("before", "after"), (sample.to_json() for sample in samples), strict=True)) if samples else None
    (into / "samples.json").write_text(json.dumps(described, indent=1))


def _share_out(collectors: Mapping[str, Collector], folder: Path) -> None:
    """Give each collector that another program served what it printed for it, and its stamps, as if it had read by itself."""
    serving = shared(collectors)
    for name in {name for one in serving.values() for name in one.parts}:
        by = [probe for probe, one in serving.items() if name in one.parts]
        for end, stamp in ENDS:
            texts = (serving[probe].parts[name]((folder / f"{probe}.{end}").read_text()) for probe in by)
            (folder / f"{name}.{end}").write_text("".join(texts))
            (folder / f"{name}.{stamp}").write_text((folder / f"{by[0]}.{stamp}").read_text())
    for probe in serving:
        for kind in (kind for pair in ENDS for kind in pair):
            (folder / f"{probe}.{kind}").unlink()


def recorded_seconds(folder: Path, probe: str) -> float:
    """Seconds between a probe's two stamps."""
    return float((folder / f"{probe}.ended").read_text()) - float((folder / f"{probe}.began").read_text())


def recorded_samples(folder: Path) -> tuple[Sample, Sample] | None:
    """The endpoints' counters before and after the window; None where they were not asked."""
    data = json.loads((folder / "samples.json").read_text())
    if data is None:
        return None
    return Sample.from_json(data["before"]), Sample.from_json(data["after"])
