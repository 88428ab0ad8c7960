#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Make tests/collectors/captured/toplev*.end: what the real toplev prints, fed with made-up counts, for there is no Intel processor here.

    python tests/collectors/recapture_toplev.py PACKAGES EVENTS MODEL FILE

runs the collector's own script with the toplev of PACKAGES (a folder with pmu-tools) and the lists of events in
EVENTS, as if on a processor of MODEL (`skx`, `spr`) with two cores of two threads each, and keeps the record in FILE. toplev
calls this file in place of perf: each event that it asks for gets a count that depends on its name only. So the form of
the output is toplev's own, and its numbers mean nothing. VSPROF_UNCOUNTED=0xc5 leaves events that have this text uncounted.
"""

import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

MODELS = {"skx": (85, 4, "Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz"), "spr": (143, 8, "Intel(R) Xeon(R) Gold 6430")}
CPUS = 4
CLOCK = ("event=0x3c", "cpu/slots", "cycles")
"""What the cycles of a processor are counted by: these get the largest counts."""


def cpuinfo(model: str) -> str:
    number, stepping, name = MODELS[model]
    entry = (
        "processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {number}\nmodel name\t: {name}\nstepping\t: {stepping}\n"
        "physical id\t: 0\nsiblings\t: 4\ncore id\t\t: {core}\ncpu cores\t: 2\nflags\t\t: fpu tsc\n\n"
    )
    return "".join(entry.format(cpu=cpu, number=number, name=name, stepping=stepping, core=cpu % 2) for cpu in range(CPUS))


def be_perf(words: list[str]) -> None:
    """Print as `perf stat -x;` does, to where toplev wants it."""
    if "--version" in words:
        print("perf version 6.1.187")
    if "-e" not in words:
        return
    asked = re.sub(r"[{}]", "", words[words.index("-e") + 1])
    running = 100 / max(1, words[words.index("-e") + 1].count("{"))
    with os.fdopen(int(words[words.index("--log-fd") + 1]), "w") as out:
        for event in re.findall(r"[^,/]+/[^/]*/|[^,/]+", asked):
            counted = os.environ.get("VSPROF_UNCOUNTED", "none") not in event
            count = 4_000_000 if any(text in event for text in CLOCK) else 100_000 + zlib.crc32(event.encode()) % 900_000
            for cpu in range(CPUS):
                value = str(count * (1 + cpu % 2)) if counted else "<not counted>"
                out.write(f"CPU{cpu};{value};;{event};{running * 1e7:.0f};{running:.2f};;\n")


def capture(packages: Path, events: Path, model: str, into: Path) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from vsprof.collectors import toplev  # noqa: PLC0415  # perf's place is taken without it

    folder = Path("/tmp/vsprof-toplev-capture")
    folder.mkdir(exist_ok=True)
    (folder / "cpuinfo").write_text(cpuinfo(model))
    toplev.PACKAGES, toplev.EVENTS, toplev.FOLDER = packages.absolute(), events.resolve(), str(folder / "out")
    # The processor that is not there: its name, and its PMU, which toplev would look for.
    script = toplev.script(2, 0.1).replace("-m toplev", f"-m toplev --force-cpuinfo {folder}/cpuinfo --no-check")
    script = script.replace("/proc/cpuinfo", f"{folder}/cpuinfo")
    environment = {**os.environ, "CPUINFO": f"{folder}/cpuinfo", "PERF": str(Path(__file__).resolve())}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    into.write_text(f"{done.stdout}--- messages\n{done.stderr}")


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[3] in MODELS:
        capture(*map(Path, sys.argv[1:3]), sys.argv[3], Path(sys.argv[4]))
    else:
        be_perf(sys.argv[1:])
