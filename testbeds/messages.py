# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of testbeds: the value seen, and the next move. One function a message."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from vsprof.terms.errors import BadInput, LabUnsound, PluginNotLoaded, RunFailed, SnapshotUnusable, VsprofError
from vsprof.terms.units import gib

# --- General ---------------------------------------------------------------------------------------------------------


def host_lacks(problems: list[str]) -> BadInput:
    return BadInput("this machine can't run the emulated lab:\n" + "\n".join(f"  - {p}" for p in problems))


def needs_linux_x86(seen: str) -> str:
    return f"found {seen}, need Linux x86_64: the lab emulates an x86-64 host with programs of Debian amd64"


def too_little_memory(free: int, needed: int) -> str:
    return f"{gib(free)} available, need {gib(needed)}: end other programs, or use a machine with more memory"


def too_little_disk(folder: Path, free: int, needed: int) -> str:
    return f"{gib(free)} free for {folder}, need {gib(needed)}: free some, or name another folder in VSPROF_CACHE"


def program_missing(name: str, package: str) -> str:
    return f"{name} not found: install the package {package} (on Debian and Ubuntu `make setup` does)"


def no_user_namespace(user: str, why: str) -> str:
    return (
        f"user {user!r} can't make a user namespace with sub-ids ({why}): install uidmap and give the user a range"
        f" (`sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}`), or run as root"
    )


def tree_build_failed(suite: str, attempts: int, log: Path, tail: str) -> VsprofError:
    return VsprofError(
        f"building a tree of Debian {suite} failed {attempts} times: if the mirror has no {suite}, or not all of it, name another one"
        f" (VSPROF_MIRROR); the whole log is {log}, its end:\n{tail}"
    )


def other_release(testbed: str, own: str, wanted: str) -> str:
    return (
        f"the testbed {testbed} runs Debian {own or '(of unknown name)'}, and the case asks for programs of {wanted}: only the lab has"
        " trees of other releases beside its own; use TESTBED=lab, or leave this release out"
    )


def other_kernel(testbed: str, own: str, wanted: str) -> str:
    return (
        f"the testbed {testbed} runs Linux {own or '(of unknown version)'}, and the case asks for the kernel of Debian {wanted}:"
        " only the lab boots another; use TESTBED=lab, or leave `kernel` out"
    )


def no_kernel(suite: str, why: VsprofError) -> VsprofError:
    return VsprofError(f"the kernel of Debian {suite} is unavailable: take it out of `kernel`, or remove the cause: {why}")


def no_slot_left(name: str, slots: int) -> RunFailed:
    return RunFailed(f"the lab can't get {name}: all of its {slots} slots are taken; ask for fewer releases in one case, or for no wire")


def no_wire(testbed: str) -> str:
    return f"testbed {testbed} has no wire between two network cards; the lab has: TESTBED=lab"


def no_wire_named(server: str, variable: str) -> str:
    return f"no wire between two network cards of {server} is known: name their PCI addresses in the inventory, as {variable}"


def bad_wire(server: str, variable: str, word: str) -> BadInput:
    return BadInput(
        f"{variable} of {server} has {word!r}: need two PCI addresses of cards that no other wire has, such as 0000:01:00.0,0000:01:00.1,"
        " the switch's card first"
    )


def cards_not_free(server: str, words: str) -> str:
    return f"{server} {_line(words) or 'does not say how its network cards are used'}; name cards that nothing else needs"


def too_few_wires(server: str, variable: str, named: int, wanted: int) -> RunFailed:
    return RunFailed(f"{variable} of {server} names {named} wire{'s' if named != 1 else ''}, and this topology needs {wanted}: name more")


def card_not_moved(interface: str, words: str) -> RunFailed:
    return RunFailed(f"the network card {interface} can't be given to a run: {_line(words) or 'nobody says why'}")


def interval_not_set(address: str, microseconds: int) -> RunFailed:
    return RunFailed(
        f"the network card {address} is a real one, whose interrupts vsprof does not throttle to one in {microseconds} us: leave"
        " irq_throttle_us at 0, and set its driver's own limit"
    )


def no_threaded_irqs(server: str) -> str:
    return f"{server} was not booted with interrupts in threads; add threadirqs to its kernel's command line"


def cards_missing(found: Sequence[str], wanted: int, seconds: float) -> RunFailed:
    return RunFailed(f"the lab's {wanted} network cards did not appear in {seconds:.0f} s, it has: {', '.join(found) or 'none'}; try again")


def card_not_bound(addresses: Sequence[str], words: str) -> RunFailed:
    return RunFailed(
        f"no driver took the network card {' or '.join(addresses)}: {words.strip() or 'it said nothing'};"
        " look with lspci -k who has it, and whether this kernel has the driver"
    )


def card_not_set(address: str, words: str) -> RunFailed:
    return RunFailed(
        f"the network card {address} can't be set to drop what its ring has no room for: {words.strip() or 'nobody says why'};"
        " is it the lab's own (igb)?"
    )


def no_card_interrupts(address: str, words: str) -> RunFailed:
    return RunFailed(
        f"the interrupts of the network card {address} can't be set: {words.strip() or 'nobody says why'}; with DPDK they are there"
        " only where its driver is vfio-pci and the switch sleeps (rx: interrupt or adaptive)"
    )


def release_not_mounted(release: str, words: str) -> RunFailed:
    return RunFailed(
        f"the lab did not take up the tree of Debian {release}: {words.strip() or 'its disk did not appear'};"
        " try again, and if that does not help, `build/venv/bin/vsprof clean --cache`"
    )


def build_step_failed(command: list[str], status: int, words: str) -> VsprofError:
    return VsprofError(f"building the lab failed, exit status {status}: {_short(' '.join(command))}: {words.strip()[-1000:]}; a full disk?")


def emulator_failed(words: str) -> VsprofError:
    return VsprofError(f"the lab's emulator (QEMU) ended: {words or 'it printed nothing'}")


def lab_not_up() -> RunFailed:
    return RunFailed("the lab was interrupted while it resumed, so nothing can be asked of it: start it again")


def plugin_not_loaded(plugins: Iterable[str], words: str) -> PluginNotLoaded:
    return PluginNotLoaded(
        f"the lab's emulator (QEMU) does not start with the plug-in {', '.join(plugins)}: {words or 'it crashed, and printed nothing'};"
        " build the plug-in for this QEMU, or leave out its collector (--collectors)"
    )


def clock_needs_emulation(accel: str) -> BadInput:
    return BadInput(f"the clock is modelled by the emulator alone, and accel is {accel!r}: leave out one of --clock and --accel")


def emulator_stuck(waiting_for: str, seconds: float, console: str) -> VsprofError:
    return VsprofError(f"waited {seconds:.0f} s for {waiting_for}; the lab's console ends with:\n{console}")


def lab_not_ready(why: str) -> VsprofError:
    return VsprofError(f"the lab booted, but is not ready to measure: {why}; `build/venv/bin/vsprof clean --cache` and try again")


def lab_unsound(faults: list[str]) -> LabUnsound:
    return LabUnsound(f"the lab is unsound: {'; '.join(faults)}")


def snapshot_unusable(folder: Path, why: VsprofError) -> SnapshotUnusable:
    return SnapshotUnusable(f"the snapshot {folder} did not resume ({why})")


def no_control_channel(seconds: float, words: str) -> VsprofError:
    return VsprofError(f"no SSH answer from the host in {seconds:.0f} s: {words or 'the connection was not even refused'}")


def not_frozen(frozen: bool, seconds: float) -> RunFailed:
    wanted = "stand still" if frozen else "go on"
    return RunFailed(f"the testbed's processes did not all {wanted} in {seconds:.0f} s: is one of them stuck in the kernel?")


def frozen() -> RunFailed:
    return RunFailed("nothing runs on a testbed that is frozen: call thaw() first")


def command_timed_out(command: str, seconds: float, doing: str = "") -> RunFailed:
    """``doing``: what the emulator does meanwhile, where there is one."""
    return RunFailed(f"on the testbed, no end after {seconds:.0f} s: {_short(command)}{f'; {doing}' if doing else ''}")


def command_failed(command: str, status: int, words: str) -> RunFailed:
    return RunFailed(f"on the testbed, exit status {status}: {_short(command)}: {words.strip() or 'it printed nothing'}")


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 200 else line[:200] + " …"


def monitor_failed(who: str, command: str, why: str) -> RunFailed:
    return RunFailed(f"{who} did not carry out {command}: {why}")


def kernel_lacks(module: str, words: str) -> str:
    said = " ".join(words.split())
    return f"this kernel has no {module}, built in or as a module" + (f" ({said})" if said else "")


# --- Servers ---------------------------------------------------------------------------------------------------------

PAGE = "docs/testbeds/remote.md"


def no_inventory() -> BadInput:
    return BadInput(f"no inventory: name the file that lists your servers (INVENTORY=servers.ini, or --inventory); {PAGE} shows one")


def inventory_missing(path: Path) -> BadInput:
    return BadInput(f"no inventory at {path}: give the path of a file in Ansible's form; {PAGE} shows one")


def inventory_unreadable(path: Path, why: str) -> BadInput:
    return BadInput(f"Ansible finds no server in the inventory {path}: {_line(why) or 'it lists none'}; {PAGE} shows one")


def no_such_server(name: str, path: Path, known: Iterable[str]) -> BadInput:
    return BadInput(f"no server {name!r} in {path}: use one of {', '.join(known)}")


def several_servers(path: Path, known: Iterable[str]) -> BadInput:
    return BadInput(f"{path} lists {', '.join(known)}: choose the one to measure on (SERVER=, or --server)")


def unreachable(name: str, why: str) -> VsprofError:
    return VsprofError(
        f"{name} can't be reached over SSH: {_line(why)}; try `ssh` yourself, then fix the inventory's ansible_host, _port, _user"
    )


def not_root(name: str, user: str) -> BadInput:
    return BadInput(f"logged in on {name} as {user}, need root to measure there: set ansible_user=root in the inventory")


def not_prepared(name: str) -> BadInput:
    return BadInput(f"{name} has no guest image, so it is not prepared: run `make host INVENTORY=…` first")


def server_in_use(name: str) -> VsprofError:
    return VsprofError(f"somebody else measures on {name} at this moment: wait for its end, two campaigns would disturb each other")


def not_opened(name: str, words: str) -> RunFailed:
    return RunFailed(f"the namespace for a run could not be made on {name}: {_line(words) or 'it printed nothing'}; is it rebooting?")


def kvm_not_here(seen: str) -> BadInput:
    return BadInput(f"ACCEL=kvm can't work on this machine: {seen}; leave ACCEL out, the lab is emulated then")


def _line(words: str) -> str:
    return " ".join(words.split())[-600:]


# --- This machine ----------------------------------------------------------------------------------------------------


def needs_root() -> BadInput:
    return BadInput("the testbed native makes namespaces and takes hugepages, which only root may: use sudo, or TESTBED=lab")


def no_namespaces(words: str) -> BadInput:
    return BadInput(f"no private network and mounts for the testbed native: {words or 'the keeper ended without a word'}; use TESTBED=lab")


def no_cgroup() -> BadInput:
    return BadInput("no cgroup v2 is mounted, by which the testbed native ends all its processes: mount one, or use TESTBED=lab")


def keeper_gone() -> RunFailed:
    return RunFailed("the keeper of the testbed's namespaces (testbeds/private.sh) ended during the run: all of it is gone; run again")


def server_hugepages_lacking(found: int, needed: int) -> str:
    return (
        f"{found} free hugepages of 2 MiB, need {needed}: set `server_hugepages={needed}` for this server in the inventory, and call "
        "`make host` again"
    )


def no_such_folder(folder: Path) -> BadInput:
    return BadInput(f"{folder} is no folder that can be written: name one with 2 GB of room")


def no_image_file(file: Path) -> BadInput:
    return BadInput(f"{file} is no file that `vsprof image save` wrote, with the name that it gave: vsprof-lab-…-….tar.gz")


def image_of_another(file: Path, seen: str, wanted: str) -> BadInput:
    return BadInput(f"{file.name} is the lab of another vsprof ({seen}; this one's is {wanted}): save the image again with this version")


def image_file_damaged(file: Path, seen: str) -> BadInput:
    return BadInput(f"{file} is not what its name says (its SHA-256 is {seen[:16]}…): copy it again")


def hugepages_lacking(found: int, needed: int) -> str:
    return f"{found} free hugepages of 2 MiB, need {needed}: memory is short or in pieces; end other programs, or try after a boot"


def cpu_shared(core: int, duties: Iterable[str]) -> str:
    return f"this host has too few cores: the core of CPU {core} is shared by {', '.join(duties)}; their numbers can't be separated by CPU"


def not_tuned(what: str, seen: str, wanted: str) -> str:
    return f"{what}: {seen}, better {wanted} for measuring; `--tune` sets it for the time of the run and puts it back"


def not_settable(what: str, seen: str, wanted: str) -> str:
    return f"{what}: {seen}, better {wanted} for measuring; the kernel did not take it from `--tune`: set it by its own means"


def in_use() -> BadInput:
    return BadInput("somebody else uses this host as a testbed now (the lock /run/vsprof-native.lock is held): wait for its end")


# --- NUMA nodes ------------------------------------------------------------------------------------------------------


def elsewhere(what: str, asked: int, seen: str) -> RunFailed:
    return RunFailed(f"{what}: asked for NUMA node {asked}, found {seen}: its numbers would be another case's")


def pages(by_node: Mapping[int, int]) -> str:
    """`117 hugepages on node 1, 3 on node 0`; most first."""
    counted = sorted(by_node.items(), key=lambda one: -one[1])
    return (
        ", ".join(f"{count}{'' if place else ' hugepages'} on node {node}" for place, (node, count) in enumerate(counted)) or "no hugepage"
    )


# --- Pages -----------------------------------------------------------------------------------------------------------


def larger_pages(whose: str, kib: int) -> RunFailed:
    return RunFailed(
        f"{whose}: asked for pages of 4K, and {kib} KiB of its shared memory are in larger ones: its numbers would be another case's. "
        "Is /sys/kernel/mm/transparent_hugepage/shmem_enabled `never` or `advise` on its host?"
    )


# --- Options ---------------------------------------------------------------------------------------------------------


def no_idle_states() -> str:
    return "its kernel reports no idle states (/sys/devices/system/cpu/cpu0/cpuidle), as in most virtual machines: leave deepest_idle out"


def no_such_idle_state(deepest: str, there: Iterable[str]) -> str:
    return f"its CPUs have no idle state {deepest}, but {', '.join(there)}"


def emulated_idle_states() -> str:
    return "the emulator's CPUs have no idle states: deepest_idle needs modelled time"
