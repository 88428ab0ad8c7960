# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of this host as a testbed: what it lacks, what had to be shared, and what was left as it is."""

from __future__ import annotations

from collections.abc import Iterable

from terms.errors import BadInput, RunFailed


def needs_root() -> BadInput:
    return BadInput("the testbed native makes namespaces and takes hugepages, which only root may: use sudo, or TESTBED=lab")


def no_namespaces(words: str) -> BadInput:
    return BadInput(f"no private network and mounts for the testbed native: {words or 'the keeper ended without a word'}; use TESTBED=lab")


def no_cgroup() -> BadInput:
    return BadInput("no cgroup v2 is mounted, by which the testbed native ends all its processes: mount one, or use TESTBED=lab")


def keeper_gone() -> RunFailed:
    return RunFailed("the keeper of the testbed's namespaces (testbeds/private.sh) ended during the run: all of it is gone; run again")


def hugepages_lacking(found: int, needed: int) -> str:
    return f"{found} free hugepages of 2 MiB, need {needed}: memory is short or in pieces; end other programs, or try after a boot"


def cpu_shared(core: int, duties: Iterable[str]) -> str:
    return f"this host has too few cores: the core of CPU {core} is shared by {', '.join(duties)}; their numbers can't be told apart by CPU"


def not_tuned(what: str, seen: str, wanted: str) -> str:
    return f"{what}: {seen}, better {wanted} for measuring; `--tune` sets it for the time of the run and puts it back"


def not_settable(what: str, seen: str, wanted: str) -> str:
    return f"{what}: {seen}, better {wanted} for measuring; the kernel did not take it from `--tune`: set it by its own means"


def in_use() -> BadInput:
    return BadInput("somebody else uses this host as a testbed now (the lock /run/vsprof-native.lock is held): wait for its end")


def tuned_by_run(wanted: str) -> str:
    return f"better {wanted} for measuring: TUNE=1 (`--tune`) sets it for the time of a run and puts it back"


def boot_with(words: str) -> str:
    return f"boot with `{words}` on the kernel's command line, if this host is for measuring alone"


def left_out(switch: str, why: str) -> str:
    return f"{switch} left out: {why}"


def stands_in(switch: str) -> str:
    return f"{switch} stands in for it, under its own name: what is said of the one does not hold for the other"


def no_guests(why: str) -> str:
    return f"no virtual machine boots here ({why})"


def guests_emulated(why: str) -> str:
    return f"the virtual machines' code is emulated by QEMU (TCG), for KVM boots none here ({why}): their own speed is no processor's"


def lab_chosen(why: str) -> str:
    return f"testbed: lab, for this host can't run both kinds of Open vSwitch: {why}"


def native_preferred() -> str:
    return "testbed: native, as the experiment prefers; TESTBED=lab for the emulated host"


def lab_in_its_place(why: str) -> str:
    return f"testbed: lab, though the experiment prefers native: {why}"


def native_chosen() -> str:
    return "testbed: native, for this host can run both kinds of Open vSwitch"
