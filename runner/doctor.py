# SPDX-License-Identifier: GPL-2.0-or-later
"""What this host can measure, and for each thing that it can't: why, and what to do."""

import os
import subprocess
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vsprof.runner import messages, offers
from vsprof.terms import errors, units
from vsprof.terms.placement import CpuPlan
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds import tuning
from vsprof.testbeds.emulator import cache, image, needs, snapshot
from vsprof.testbeds.emulator.machine import Shape
from vsprof.testbeds.lab import Lab
from vsprof.testbeds.native import HUGEPAGES, Native

NATIVE = "native: "
"""What the names of checks on this host's own switches begin with."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. ``serves``: what it is good for. ``remedy`` is empty where ``ok``."""

    name: str
    ok: bool
    seen: str
    serves: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def examine(*, with_lab: bool = False) -> list[Check]:
    """Look at this host; with ``with_lab`` resume the lab, too, and look inside (it must have been built)."""
    checks = [*_lab_needs(), _image(), _snapshot(), _kvm(), _pmu(), *_native(), *_native_switches()]
    return [*checks, *_inside_lab()] if with_lab else checks


def render(checks: list[Check], columns: int = 80) -> str:
    """For people: what follows, then what is ready and what is missing, a line each (more where it is long), and what to do about it, each
    reason once."""
    runs = all(check.ok for check in checks if check.serves == "lab")
    natively = [check.name.removeprefix(NATIVE) for check in checks if check.name.startswith(NATIVE) and check.ok]
    lab = "The emulated lab runs here: `make profile-vm2vm`." if runs else "The emulated lab can't run here yet: see below."
    native = [f"On this host itself run {', '.join(natively)}: `make profile-vm2vm TESTBED=native`."] if natively else []
    missing = [check for check in checks if not check.ok]
    remedies = list(dict.fromkeys(check.remedy for check in missing if check.remedy))
    parts = [
        [lab, *native],
        ["Ready", *_lines([check for check in checks if check.ok], remedies, columns)],
        ["Missing", *_lines(missing, remedies, columns)],
        ["What to do", *(_wrapped(f"[{place}]", remedy, columns) for place, remedy in enumerate(remedies, 1))],
    ]
    texts = [textwrap.fill(line, columns, break_on_hyphens=False) for line in parts[0]]
    return "\n\n".join(["\n".join(texts), *("\n".join(part) for part in parts[1:] if len(part) > 1)]) + "\n"


def _lines(checks: list[Check], remedies: list[str], columns: int) -> list[str]:
    widest = max((len(check.name) for check in checks), default=0)
    return [_line(check, remedies, widest, columns) for check in checks]


def _line(check: Check, remedies: list[str], widest: int, columns: int) -> str:
    """Its name, in a column for the ``widest``, what was seen, and at the right of the first line where to read what to do."""
    place = f"[{remedies.index(check.remedy) + 1}]" if check.remedy and not check.ok else ""
    serves = f"({check.serves})" if check.serves != "lab" else ""
    text = " ".join(filter(None, [check.seen, serves]))
    room = columns - len(place) - 1 if place else columns
    head = f"  {check.name:<{widest}} "
    first, *rest = textwrap.wrap(text, room, break_on_hyphens=False, initial_indent=head, subsequent_indent=" " * len(head)) or [head]
    return "\n".join([f"{first:<{room}} {place}" if place else first.rstrip(), *rest])


def _wrapped(place: str, text: str, columns: int) -> str:
    return textwrap.fill(text, columns, break_on_hyphens=False, initial_indent=f"  {place} ", subsequent_indent=" " * (len(place) + 3))


def _lab_needs() -> Iterable[Check]:
    for need in needs.for_building().needs:
        yield Check(need.what, need.problem is None, need.seen, "lab", need.problem or "")


def _image() -> Check:
    path = image.path()
    built = cache.intact(path)
    return Check(
        "lab image",
        built,
        f"{path.name} {'ready' if built else 'not built yet'}",
        "speed",
        "" if built else messages.built_at_first_run("3-5 minutes"),
    )


def _snapshot() -> Check:
    path = snapshot.folder(image.Image(image.path()), Shape())
    saved = cache.intact(path)
    return Check(
        "lab snapshot", saved, "ready" if saved else "not saved yet", "speed", "" if saved else messages.built_at_first_run("a minute")
    )


def _kvm() -> Check:
    """KVM is believed only when a guest has booted under it."""
    if not cache.intact(image.path()):
        return Check(
            "KVM",
            False,
            f"/dev/kvm {'exists' if Path('/dev/kvm').exists() else 'is missing'}; not tried, no guest kernel yet",
            "native",
            messages.kvm_not_tried(),
        )
    built = image.Image(image.path())
    boots, seen = needs.kvm_boots(built.kernel, built.emulator())
    return Check("KVM", boots, seen, "native", "" if boots else messages.no_kvm())


def _pmu() -> Check:
    try:
        tried = subprocess.run(
            ["perf", "stat", "-x", ";", "-e", "instructions:u", "true"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return Check("PMU", False, "perf is not installed", "native", testbeds_messages.program_missing("perf", "linux-perf"))
    first = next((line for line in tried.stderr.splitlines() if "instructions" in line), "").split(";")[0]
    # Even `true` executes tens of thousands of instructions: a handful would be a dead counter.
    counts = first.isdigit() and int(first) > 1000
    return Check("PMU", counts, f"instructions: {first or 'nothing'}", "native", "" if counts else messages.no_pmu())


def _native() -> Iterable[Check]:
    for module in ("openvswitch", "vhost_net"):
        there = Path(f"/sys/module/{module}").exists()
        yield Check(f"module {module}", there, "loaded" if there else "not loaded", "native", "" if there else messages.no_module(module))
    pages = int(HUGEPAGES.read_text()) if HUGEPAGES.exists() else None
    seen = "this kernel has none of 2 MiB" if pages is None else f"{pages} of 2 MiB; native takes more for itself while it runs"
    yield Check("hugepages", pages is not None, seen, "native", "" if pages is not None else messages.no_hugepages())
    cpus = os.cpu_count() or 1
    yield Check(
        "CPUs",
        cpus >= 2,
        f"{cpus}, {units.gib(needs.available_memory())} memory available",
        "native",
        "" if cpus >= 2 else messages.few_cpus(cpus),
    )


def _native_switches() -> Iterable[Check]:
    """What of each switch this host can run as a testbed: asked by opening it, which leaves nothing behind."""
    if why := Native.needs():
        yield Check("testbed native", False, "not root", "native", why)
        return
    if not cache.intact(image.path()):
        yield Check(
            "testbed native", False, "not tried, the lab's image has its programs", "native", messages.built_at_first_run("3-5 minutes")
        )
        return
    try:
        with Native() as host:
            offered, plan = offers.accesses(host), host.plan()
    except errors.VsprofError as error:
        yield Check("testbed native", False, "does not open", "native", str(error))
        return
    yield from _tuning(plan)
    for switch, (accesses, why) in offered.items():
        yield Check(f"{NATIVE}{switch}", bool(accesses), ", ".join(accesses) or "none", "native", why)


def _tuning(plan: CpuPlan) -> Iterable[Check]:
    """What disturbs a measurement on this host: what a run can set for its time, and what only a boot can change."""
    settings = tuning.look(tuning.measured(plan))
    for setting in settings:
        if setting.wanted:
            remedy = messages.tuned_by_run(setting.wanted) if setting.differs else ""
            yield Check(setting.what, not setting.differs, setting.seen, "native", remedy)
    isolated = next((setting.seen for setting in settings if setting.path == tuning.ISOLATED), "")
    remedy = "" if isolated else messages.boot_with(tuning.advice(plan), plan.housekeeping)
    yield Check("isolated CPUs", bool(isolated), isolated or "none", "native", remedy)


INSIDE = {
    "module openvswitch": "[ -d /sys/module/openvswitch ] && echo loaded",
    "module vhost_net": "[ -e /dev/vhost-net ] && echo loaded",
    "nested KVM": "[ -e /dev/kvm ] && cat /sys/module/kvm_amd/parameters/nested",
    "hugepages": "grep -h . /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "perf software events": "perf stat -x, -a -e context-switches sleep 0.1 2>&1 | cut -d, -f1,3",
    "bpftrace": "bpftrace --version",
    "BTF": "ls /sys/kernel/btf/vmlinux",
    "kernel OVS": "/usr/lib/openvswitch-switch/ovs-vswitchd --version | head -n 1",
    "OVS-DPDK": "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk --version | tail -n 1",
    "guest image": "ls -s --block-size=M /var/lib/vsprof/guest/guest.cpio",
}


def _inside_lab() -> Iterable[Check]:
    with Lab() as lab:
        for name, command in INSIDE.items():
            asked = lab.run(command, check=False)
            seen = " ".join((asked.stdout or asked.stderr).split())
            yield Check(f"in the lab: {name}", asked.status == 0, seen, "lab", "" if asked.status == 0 else messages.rebuild_lab())
