# SPDX-License-Identifier: GPL-2.0-or-later
"""What the lab's kernel takes its processor for, and so which mitigations it has: none by itself, or those of another machine.

Retpolines and AMD's safe return make every indirect call and every return of a kernel a mispredicted one. Where the lab's times are set
against those of a machine that has them, the lab's kernel must have them, too. What shows in code is followed: retpolines, return
thunks, page tables of the kernel's own, and a VERW at each exit. What a processor does by itself (IBRS) or by microcode is not modelled.

By itself the lab has CPUs without a tick (nohz_full), for which the kernel accounts for time at each entry and exit, and no groups of
processes by session (autogroup), which make a thread's switch longer. Where another machine's kernel differs, the lab's follows it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"
"""A folder of text files, one for each way in which processors leak: see Linux, Documentation/admin-guide/hw-vuln."""
# By file: what its text has where the kernel's code differs, and the kernel's argument that makes it so; and the one where it is not so.
BY_CODE = (
    ("spectre_v2", "Retpolines", "spectre_v2=retpoline", "spectre_v2=off"),
    ("spec_rstack_overflow", "Safe RET", "spec_rstack_overflow=safe-ret", "spec_rstack_overflow=off"),
    ("retbleed", "untrained return thunk", "retbleed=unret", "retbleed=off"),
    ("meltdown", "PTI", "pti=on", "pti=off"),
    ("mds", "Clear CPU buffers", "mds=full", "mds=off"),
    ("tsa", "Clear CPU buffers", "tsa=on", "tsa=off"),
)


NO_TICK = "/sys/devices/system/cpu/nohz_full"
"""The list of CPUs without a tick; no such file where the kernel can't have any."""
AUTOGROUP = "/proc/sys/kernel/sched_autogroup_enabled"
"""1 where CPUs are shared out by session; no such file where the kernel can't."""


@dataclass(frozen=True)
class Likeness:
    """A processor in QEMU's words, appended to its model, and the kernel's arguments about mitigations."""

    processor: str
    kernel: str
    ticks: bool = False
    """Whether all CPUs have a tick."""
    sessions: bool = False
    """Whether CPUs are shared out by session, and then by thread (autogroup)."""

    @property
    def name(self) -> str:
        """Of a snapshot's folder, in part; empty for ``ITSELF``."""
        return "" if self == ITSELF else f"-like-{hashlib.sha256(repr(self).encode()).hexdigest()[:8]}"


ITSELF = Likeness("", "mitigations=off")
"""Emulation leaks nothing across privilege levels, and mitigations only cost instructions."""


def of(cpuinfo: str, vulnerabilities: Mapping[str, str], *, ticks: bool = False, sessions: bool = False) -> Likeness:
    """``cpuinfo``: as /proc/cpuinfo; ``vulnerabilities``: the texts below ``VULNERABILITIES`` by file; the others: see ``Likeness``."""
    first = dict(line.split(":", 1) for line in cpuinfo.partition("\n\n")[0].splitlines() if ":" in line)
    about = {key.strip(): value.strip() for key, value in first.items()}
    processor = ""
    # Safe returns are for AMD's families 23 to 25 alone. An Intel processor would have no nested KVM here, for QEMU emulates AMD's.
    if about.get("vendor_id") == "AuthenticAMD":
        processor = f",family={about['cpu family']},model={about['model']}"
    arguments = [there if has in vulnerabilities.get(name, "") else gone for name, has, there, gone in BY_CODE]
    return Likeness(processor, " ".join(arguments), ticks, sessions)


def in_words(vulnerabilities: Mapping[str, str]) -> str:
    """The mitigations that change a kernel's code, as the kernel names them: ``Retpolines, Safe RET``."""
    found = [has for name, has, _, _ in BY_CODE if has in vulnerabilities.get(name, "")]
    return ", ".join(dict.fromkeys(found)) or "no mitigations in its code"


def own_vulnerabilities() -> dict[str, str]:
    """The files below ``VULNERABILITIES``; none where the kernel has no such folder."""
    return {one.name: one.read_text().strip() for one in sorted(Path(VULNERABILITIES).glob("*"))}


def this_machine() -> Likeness:
    """The one that this program runs on."""
    no_tick, autogroup = Path(NO_TICK), Path(AUTOGROUP)
    ticks = not no_tick.exists() or no_tick.read_text().strip() in ("", "(null)")
    sessions = autogroup.exists() and autogroup.read_text().strip() == "1"
    return of(Path("/proc/cpuinfo").read_text(), own_vulnerabilities(), ticks=ticks, sessions=sessions)
