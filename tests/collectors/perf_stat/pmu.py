#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A stand-in for perf on a machine with a PMU, for machines that have none: it prints what perf stat is documented to print.

It shows that groups are grown, packed, rotated and distrusted as they should; it shows nothing about any real PMU. What it has is
in pmu.json beside it: ``counters`` general ones, of which the last may be ``dead``; ``factor`` on every count; ``percent`` of the
time that a counter runs; ``unknown`` names; ``refused`` codes that are counted by themselves alone.
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

HAS = {"counters": 4, "dead": False, "factor": 1.0, "percent": 100.0, "unknown": [], "alone": []}
HAS |= json.loads(Path(__file__).with_name("pmu.json").read_text())
FIXED = ("event=0x76", "event=0xc0")
"""cycles and instructions have counters of their own."""
MODES = {"u": 1000, "uH": 1000, "kH": 100, "G": 10, "HG": 1110, "": 1110}
CPUS = (0, 1)


def events(spec):
    return re.findall(r"[^,{}/]+(?:/[^/]*/\w*)?", spec)


def general(names):
    return [name for name in names if name not in ("task-clock", "cycles", "instructions") and not any(f in name for f in FIXED)]


def values(names, program):
    """One value an event; None: not counted."""
    used = general(names)
    if len(used) > HAS["counters"] or (len(names) > 1 and any(word in name for word in HAS["alone"] for name in used)):
        return [None] * len(names)
    counts = []
    for name in names:
        modifier = name.rpartition("/")[2] if "/" in name else ""
        count = 1_000_000 if program.endswith("counted") else 1000 * MODES[modifier]
        dead = HAS["dead"] and len(used) == HAS["counters"] and name == used[-1] and len(counts) == len(names) - 1
        counts.append(41 if dead else count * HAS["factor"])
    return counts


def lines(names, program, cpus, as_json):
    for name, value in zip(names, values(names, program), strict=True):
        shown = (re.search(r"name=([^,/]+)", name) or [name, name])[1]
        text, ran = ("<not counted>", 0) if value is None else (f"{value:f}", 1_000_000_000)
        for cpu in cpus:
            if as_json:
                where = {} if cpu is None else {"cpu": str(cpu)}
                yield json.dumps({**where, "counter-value": text, "unit": "", "event": shown, "event-runtime": ran,
                                  "pcnt-running": HAS["percent"], "metric-value": 0.0, "metric-unit": ""})  # fmt: skip
            else:
                yield f"{'' if cpu is None else f'CPU{cpu};'}{text};;{shown};{ran};{HAS['percent']:.2f};;"


def main(words):
    if words == ["--version"]:
        print("perf version 6.1.0")
        return 0
    spec = words[words.index("-e") + 1]
    names = events(spec)
    for name in names:
        if any(unknown in name for unknown in HAS["unknown"]):
            print(f"event syntax error: '{name}'", file=sys.stderr)
            return 129
    if "--control" in words:
        return controlled(words, names)
    program = words[words.index("-e") + 2 :]
    status = subprocess.run(program, check=False).returncode
    for line in lines(names, program[0], CPUS if "-A" in words else [None], as_json=False):
        print(line, file=sys.stderr)
    return status


def controlled(words, names):
    control, ack = (os.open(path, os.O_RDWR) for path in words[words.index("--control") + 1].removeprefix("fifo:").split(","))
    out = words[words.index("-o") + 1]

    def ended(*_):
        Path(out).write_text("# started on a day\n\n" + "\n".join(lines(names, "", CPUS if "-A" in words else [None], as_json=True)) + "\n")
        os._exit(0)

    signal.signal(signal.SIGINT, ended)
    while True:
        for _ in os.read(control, 1000).splitlines():
            os.write(ack, b"ack\n")


sys.exit(main(sys.argv[1:]))
