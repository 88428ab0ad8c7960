# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings that vsprof prints: the value seen, and the next move. Those of CPU profiles are in
profile_messages.py, those of the event catalogue in event_messages.py, those of the analysis in analysis_messages.py.

One function a message, so that all texts can be read (and mended) in one place. Code elsewhere raises what
these functions return; it writes no texts of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from terms.units import gib


class VsprofError(Exception):
    """Something failed; the command ends with exit status 1."""

    exit_status = 1


class BadInput(VsprofError):
    """What the user asked for can't be done as asked; exit status 2, and nothing was written."""

    exit_status = 2


class RunFailed(VsprofError):
    """One run failed; it is recorded as failed and the campaign goes on."""


class PluginNotLoaded(BadInput):
    """The lab's emulator does not start with a plug-in that a collector needs."""


class SnapshotUnusable(VsprofError):
    """The lab's snapshot is whole and yet does not resume."""


class LabUnsound(VsprofError):
    """The lab answers, but one of its CPUs can't do what a run needs. ``registers``: of each CPU's local APIC, where it was asked."""

    registers: Sequence[str] = ()


# --- What the user asked for ------------------------------------------------------------------------------------


def unknown_value(kind: str, value: object, known: Iterable[object]) -> BadInput:
    return BadInput(f"unknown {kind} {str(value)!r}: use one of {', '.join(map(str, known))}")


# --- The machine that runs the lab ------------------------------------------------------------------------------


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


def image_build_failed(attempts: int, log: Path, tail: str) -> VsprofError:
    return VsprofError(f"building the lab's image failed {attempts} times; the whole log is {log}, its end:\n{tail}")


def build_step_failed(command: list[str], status: int, words: str) -> VsprofError:
    return VsprofError(f"building the lab failed, exit status {status}: {_short(' '.join(command))}: {words.strip()[-1000:]}; a full disk?")


def emulator_failed(words: str) -> VsprofError:
    return VsprofError(f"the lab's emulator (QEMU) ended: {words or 'it printed nothing'}")


def plugin_not_loaded(plugins: Iterable[str], words: str) -> PluginNotLoaded:
    return PluginNotLoaded(
        f"the lab's emulator (QEMU) does not start with the plug-in {', '.join(plugins)}: {words or 'it crashed, and printed nothing'};"
        " build the plug-in for this QEMU, or leave out its collector (--collectors)"
    )


def clock_needs_emulation(accel: str) -> BadInput:
    return BadInput(f"the clock is modelled by the emulator alone, and accel is {accel!r}: leave out one of --clock and --accel")


def no_own_windows() -> str:
    return "it counts in windows of its own alone, and in modelled time there are none: all collectors count in the same ones"


def counts_in_modelled_time() -> str:
    return "the model counts in modelled time alone, and here it is the emulator's: leave out --clock emulated"


def not_in_modelled_time(what: str) -> str:
    return f"{what} takes longer than modelled time can last: to have it in the emulator's time, add --clock emulated"


def counted_in_two_times() -> str:
    return "the flood began and ended in the emulator's time: of modelled time, the windows have each hop's packet rate"


def reports_too_long(seconds: float) -> str:
    return f"iperf3 reports every {seconds:g} s, which is longer than a window of modelled time"


def bad_quantum(seen: object, least: float, most: float) -> BadInput:
    return BadInput(f"quantum_us: {seen!r}: give a number of microseconds from {least:g} to {most:g}")


def bad_seed(seen: object, most: int) -> BadInput:
    return BadInput(f"seed: {seen!r}: give a whole number from 0 to {most}")


def plugin_gone(why: str) -> RunFailed:
    return RunFailed(f"the processor model (a plug-in of the lab's emulator) does not answer: {why}")


def clock_stands_still(seconds: float, cpus: Iterable[str]) -> RunFailed:
    return RunFailed(f"modelled time has not moved for {seconds:.0f} s: {'; '.join(cpus)}")


def plugin_refused(command: str, why: str) -> RunFailed:
    return RunFailed(f"the processor model refused {command!r}: {why}")


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


# --- A run ------------------------------------------------------------------------------------------------------


def command_timed_out(command: str, seconds: float) -> RunFailed:
    return RunFailed(f"on the testbed, no end after {seconds:.0f} s: {_short(command)}")


def command_failed(command: str, status: int, words: str) -> RunFailed:
    return RunFailed(f"on the testbed, exit status {status}: {_short(command)}: {words.strip() or 'it printed nothing'}")


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 200 else line[:200] + " …"


def monitor_failed(who: str, command: str, why: str) -> RunFailed:
    return RunFailed(f"{who} did not carry out {command}: {why}")


def too_few_hugepages(found: int, needed: int) -> RunFailed:
    return RunFailed(
        f"got {found} hugepages of 2 MiB, need {needed}: memory is short or in pieces; end other programs, or try after a boot"
    )


def native_failed(status: int, words: str) -> RunFailed:
    return RunFailed(f"natively, exit status {status}: {words.strip()[-1500:] or 'it printed nothing'}")


def fetch_failed(package: str, words: str) -> VsprofError:
    return VsprofError(f"Debian's package {package} can't be fetched: {words.strip()[-1000:]}; is a mirror in reach?")


def no_counts(words: str) -> RunFailed:
    return RunFailed(f"a benchmark's script did not print its counts in pairs: {_short(words) or '(nothing)'}; call it by hand to see why")


def too_few_cpus(cpus: int) -> BadInput:
    return BadInput(f"the testbed has {cpus} CPU, need 2: one moves frames, one does all else; use 2 or 4 (`vsprof run --cpus 4`)")


def switch_failed(what: str, log: str) -> RunFailed:
    return RunFailed(f"the switch failed: {what}; its log ends with:\n{log or '(nothing)'}")


def died(name: str, log: str) -> RunFailed:
    return RunFailed(f"{name} ended during the run; its log ends with:\n{log.strip()[-1500:] or '(nothing)'}")


def no_stack(endpoint: str) -> str:
    return f"{endpoint} has no network stack (access virtio-user), which this traffic's programs need: it can be flooded, and no more"


def no_pace(endpoint: str) -> str:
    return f"{endpoint} floods by testpmd, which sends as fast as it can and at no given rate; the kernel's pktgen could"


def port_not_counted() -> str:
    return "the switch does not count this port (OVS-DPDK does not, where it is server of the port's socket)"


def end_not_asked() -> str:
    return "in modelled time the endpoints are not asked what they count"


def kernel_lacks(module: str, words: str) -> str:
    said = " ".join(words.split())
    return f"this kernel has no {module}, built in or as a module" + (f" ({said})" if said else "")


def checksums_broken(version: str, mended: list[str]) -> str:
    return (
        f"Open vSwitch {version} clears the IP header's checksum of each TCP segment whose own checksum it leaves to a net_virtio_user, "
        f"and the host drops it; {', '.join(mended)} and later ones don't. offloads: off leaves none to be made"
    )


def receives_nothing(cpu: int, name: str, words: str) -> RunFailed:
    said = " ".join(words.split()) or "the kernel says no more"
    return RunFailed(
        f"CPU {cpu} can't be made to receive what comes in by {name} ({said}): a kernel keeps this work (RPS) "
        "away from isolated CPUs (isolcpus, nohz_full). Take virtual machines for endpoints, which need none of it"
    )


def no_connection(sender: str, receiver: str, seconds: float) -> RunFailed:
    return RunFailed(
        f"{sender} got no TCP connection to {receiver} in {seconds:.0f} s, though they reach each other (ping): where a path breaks "
        "checksums, TCP alone is lost. Try the endpoints' option offloads: off, and look at raw/ for the switch's log"
    )


def endpoint_failed(name: str, what: str, words: str) -> RunFailed:
    return RunFailed(f"{name}: {what}{': ' + words.strip()[-1500:] if words.strip() else ''}")


def no_path(sender: str, receiver: str, seconds: float) -> RunFailed:
    return RunFailed(f"{sender} got no answer from {receiver} through the switch in {seconds:.0f} s: look at raw/ for the switch's log")


# --- An experiment ----------------------------------------------------------------------------------------------


def unknown_experiment(name: str, known: Iterable[str]) -> BadInput:
    return BadInput(f"no experiment {name!r}: use one of {', '.join(known)}, or the path of a YAML file")


def bad_yaml(path: Path, why: str) -> BadInput:
    return BadInput(f"{path} is not YAML that describes an experiment: {why}")


def case_twice(case_ids: list[str]) -> BadInput:
    return BadInput(f"the varied values give {', '.join(case_ids)} twice: `auto` may stand for a value that is listed too")


def bad_experiment(path: Path | str, reasons: list[str]) -> BadInput:
    return BadInput(f"{path} can't be used:\n" + "\n".join(f"  - {r}" for r in reasons) + "\nsee docs/experiments.md for every key")


def bad_traffic(kind: str, reasons: list[str]) -> BadInput:
    return BadInput(f"traffic {kind} can't be used:\n" + "\n".join(f"  - {r}" for r in reasons))


def traffic_twice(labels: list[str]) -> BadInput:
    return BadInput(f"traffic names {', '.join(labels)} twice: one kind can be sent once with each load")


def fixed_and_varied(names: list[str]) -> BadInput:
    return BadInput(f"{', '.join(names)} is both fixed and varied: keep one")


def missing_factors(names: list[str]) -> BadInput:
    return BadInput(f"neither fixed nor varied: {', '.join(names)}: give each one value in fixed, or several in vary")


def no_case_left() -> BadInput:
    return BadInput("except leaves no case to run: remove one of its entries")


def nothing_offered(testbed: str, reasons: list[str]) -> BadInput:
    listed = "\n".join(f"  - {reason}" for reason in reasons)
    return BadInput(f"the testbed {testbed} can run no case of this experiment (the testbed lab can):\n{listed}")


def access_not_of_switch(access: str, switch: str, offered: Iterable[str]) -> BadInput:
    return BadInput(f"{switch} has no access {access!r}: it offers {', '.join(offered)}; choose another switch, or list the pair in except")


def out_of_range(name: str, value: object, low: int, high: int, note: str = "") -> BadInput:
    return BadInput(f"{name} is {value!r}, need a whole number from {low} to {high}{note}")


# --- Results ----------------------------------------------------------------------------------------------------


def can_not_write(path: Path, why: OSError) -> VsprofError:
    return VsprofError(f"can't write {path}: {why.strerror or why}; what was measured before is kept: make room and `make resume`")


def in_use(what: str, by: Sequence[str]) -> BadInput:
    return BadInput(f"{what} is in use by {', '.join(by) or 'another process'}: wait for its end, or stop it")


def no_lock_file(path: Path) -> BadInput:
    return BadInput(f"{path} is no ordinary file, so it can't be the lock that it should be: remove it")


def can_not_read(path: Path, why: Exception) -> str:
    return f"{path} can't be read: {why}"


def not_as_kept(path: Path) -> str:
    return f"{path} is not what was kept there: its checksum is another"


def done_again(run_id: str, why: str) -> str:
    return f"run {run_id} was done and is done again: {why}"


def no_result(name: str, known: list[str]) -> BadInput:
    listed = ", ".join(known[-5:]) if known else "there is none yet: `make profile-vm2vm` makes one"
    return BadInput(f"no result {name!r} (a folder with a manifest.json); the newest are: {listed}")


def bad_manifest(path: Path, why: Exception) -> BadInput:
    return BadInput(f"{path} is damaged ({why}): restore it, or run the experiment again")


def collector_unavailable(name: str, why: str) -> BadInput:
    return BadInput(f"collector {name} can't work here: {why}; leave it out of `collectors`, or use auto")


# --- The command line, and doctor's advice ----------------------------------------------------------------------


def not_a_number(name: str, text: str) -> BadInput:
    return BadInput(f"{name} is {text!r}, need a whole number")


def empty_list(what: str, text: str) -> BadInput:
    return BadInput(f"{what} is {text!r}, need at least one")


def built_at_first_run(time: str) -> str:
    return f"made by the first `make profile-vm2vm`, in {time}"


def kvm_not_tried() -> str:
    return "run an experiment once (that builds a guest kernel), then `make doctor` again"


def no_kvm() -> str:
    return "guests can't run natively here; the lab needs no KVM of this host"


def no_pmu() -> str:
    return "no hardware counters here (a virtual machine without a virtual PMU?); the lab needs none"


def no_module(name: str) -> str:
    return f"`modprobe {name}` as root, if this kernel has it; the lab has its own kernel"


def no_hugepages() -> str:
    return "a kernel with CONFIG_HUGETLBFS; the lab has its own"


def few_cpus(found: int) -> str:
    return f"found {found}, a native switch needs 2: one moves frames, one does all else"


def rebuild_lab() -> str:
    return "`build/venv/bin/vsprof clean --cache`, and run the experiment again"
