# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processor model costs: one fixed piece of work in the lab on bare TCG, with instructions counted, and modelled.

The three take turns in one emulator, so that a slow moment of this machine meets all alike; and with them a second emulator that never
had the model, which tells whether it leaves anything behind when it is switched off. The work is a mix of what the lab runs: an
interpreter (branches, pointers), a checksum (arithmetic, streaming), small processes (page tables, kernel).
"""

import argparse
import json
import sys
from collections.abc import Callable

import numpy as np

from vsprof.analysis import stats
from vsprof.analysis.stats import Estimate
from vsprof.bench import table
from vsprof.collectors.uarch_model import BUILD, profiles
from vsprof.collectors.uarch_model.control import Control
from vsprof.terms import errors
from vsprof.testbeds.lab import Lab

PLUGIN = BUILD / "uarch_model.so"
STATES = ("count", "model", "off")
WITHOUT = "without the plug-in"
TURNS = 5
CPU = 1
"""Where the work runs: a CPU that nothing else is put on."""
WORK = r"""
x=$EPOCHREALTIME
python3 -S -c 'x = 0
for i in range(300000): x += i * i % 7' > /dev/null
head -c 24000000 /dev/zero | sha256sum > /dev/null
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do /bin/true; done
y=$EPOCHREALTIME
echo $(( ${y/./} - ${x/./} ))
"""
SETTLE = 2
"""Turns of the work before one that is timed: after a change of state code is translated again, and the caches held another's."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--cpu-profile", default=profiles.DEFAULT)
    asked = parser.parse_args(arguments)
    try:
        path = table.report("bench-model", measure(asked.turns, asked.cpu_profile, lambda text: print(text, file=sys.stderr)))
    except errors.VsprofError as error:
        print(f"bench-model: {error}", file=sys.stderr)
        return error.exit_status
    print(path)
    return 0


def measure(turns: int, cpu_profile: str, say: Callable[[str], None]) -> dict[str, tuple[Estimate, str]]:
    """All numbers of the benchmark. Raises ``VsprofError``."""
    seconds: dict[str, list[float]] = {state: [] for state in (*STATES, WITHOUT)}
    counted: list[dict[str, float]] = []
    with Lab(say=say, plugins=[PLUGIN]) as host, Lab(say=say) as other:
        control = connect(host, profiles.load(cpu_profile))
        host.push(WORK, "/root/work.sh")
        other.push(WORK, "/root/work.sh")
        for turn in range(1, turns + 1):
            for state in STATES:
                say(f"turn {turn} of {turns}: {state}")
                control.change(state, wake=lambda: host.run("true"))
                _settle(host)
                if state == "model":
                    control.ask("begin")
                seconds[state].append(_work(host))
                if state == "model":
                    control.ask("end")
                    counted.append(_counted(control))
            # Off is the last state of a turn, and so each time what the model leaves behind.
            _settle(other)
            seconds[WITHOUT].append(_work(other))
        control.close()
    return _numbers(seconds, counted)


def connect(host: Lab, profile: profiles.Profile) -> Control:
    """The plug-in of an opened lab, told which processor it is."""
    socket = host.plugin_socket(PLUGIN)
    assert socket is not None
    control = Control(socket)
    flat = socket.with_suffix(".profile")
    flat.write_text(profile.flat())
    control.ask(f"profile {flat}")
    return control


def _settle(host: Lab) -> None:
    for _ in range(SETTLE):
        _work(host)


def _work(host: Lab) -> float:
    """Seconds that the work took by the lab's clock, which is this machine's."""
    return int(host.run(f"taskset -c {CPU} bash /root/work.sh", timeout=300).stdout) / 1e6


def _counted(control: Control) -> dict[str, float]:
    """Instructions and data accesses on the work's CPU."""
    modes = json.loads(control.ask("window"))["cores"][CPU]["modes"].values()
    return {
        "instructions": sum(mode["instructions"] for mode in modes),
        "accesses": sum(mode.get("loads", 0) + mode.get("stores", 0) for mode in modes),
    }


def _numbers(seconds: dict[str, list[float]], counted: list[dict[str, float]]) -> dict[str, tuple[Estimate, str]]:
    spent = {state: _sample(values) for state, values in seconds.items()}
    instructions, accesses = ([one[what] for one in counted] for what in ("instructions", "accesses"))
    extra = [model - count for model, count in zip(seconds["model"], seconds["count"], strict=True)]
    return {
        "slowdown_vs_uninstrumented": (stats.ratio(spent["model"], spent["off"]), "ratio"),
        "slowdown_of_counting": (stats.ratio(spent["count"], spent["off"]), "ratio"),
        "slowdown_when_switched_off": (stats.ratio(spent["off"], spent[WITHOUT]), "ratio"),
        "minsn_per_s_per_vcpu": (_quotient(instructions, seconds["model"], 1e-6), "M instructions/s"),
        "minsn_per_s_uninstrumented": (_quotient(instructions, seconds["off"], 1e-6), "M instructions/s"),
        "ns_per_access": (_quotient(extra, accesses, 1e9), "ns"),
        "instructions": (stats.estimate(_sample(instructions)), "instructions"),
    }


def _sample(values: list[float]) -> stats.Sample:
    return [np.array([[value, 1.0]]) for value in values]


def _quotient(parts: list[float], pers: list[float], scale: float) -> Estimate:
    return stats.estimate([np.array([[part * scale, per]]) for part, per in zip(parts, pers, strict=True)])


if __name__ == "__main__":
    sys.exit(main())
