# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of the benchmarks: the value seen, and the next move. One function a message."""

from collections.abc import Sequence

from vsprof.terms.errors import BadInput, RunFailed, VsprofError

# --- General ---------------------------------------------------------------------------------------------------------


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 200 else line[:200] + " …"


def too_few_hugepages(found: int, needed: int) -> RunFailed:
    return RunFailed(
        f"got {found} hugepages of 2 MiB, need {needed}: memory is short or in pieces; end other programs, or try after a boot"
    )


def native_failed(status: int, words: str) -> RunFailed:
    return RunFailed(f"natively, exit status {status}: {words.strip()[-1500:] or 'it printed nothing'}")


def fetch_failed(package: str, words: str) -> VsprofError:
    return VsprofError(f"Debian's package {package} can't be fetched: {words.strip()[-1000:]}; is a mirror in reach?")


def campaign_failed(name: str, status: int, words: str) -> RunFailed:
    return RunFailed(f"{name}: exit status {status}: {words.strip()[-1500:] or 'it printed no error'}")


def no_counts(words: str) -> RunFailed:
    return RunFailed(f"a benchmark's script did not print its counts in pairs: {_short(words) or '(nothing)'}; call it by hand to see why")


# --- Benchmarks ------------------------------------------------------------------------------------------------------


def nothing_delivered(seconds: float) -> RunFailed:
    return RunFailed(f"no packet arrived in a window of {seconds:g} s, so there is no ratio: try again with less beside it")


def telemetry_silent(program: str, error: Exception) -> RunFailed:
    return RunFailed(f"{program} does not answer DPDK's telemetry ({error!r}): did it end? Try again with fewer --contenders")


def nothing_in_slice(tries: int, seconds: float) -> RunFailed:
    return RunFailed(
        f"no packet arrived in {tries} slices of {seconds:.3f} s: the switch or an endpoint hangs, or other programs keep both CPUs busy;"
        " end them, or try it alone (--contenders)"
    )


def rounds_ended(number: int, why: str) -> str:
    return f"in round {number}: {why}; what follows is of the rounds before, and of what this one had measured"


def measuring_ended(why: str) -> str:
    return f"{why}; what follows is of what was measured before"


def in_no_ratio(names: Sequence[str], partners: Sequence[str]) -> str:
    return f"--contenders: found {', '.join(names)}, of which there is no ratio with the others: name one of {', '.join(partners)}, too"


def no_such_collectors(unknown: Sequence[str], known: Sequence[str]) -> str:
    return f"--collectors: found {', '.join(unknown)}, use auto or some of {', '.join(known)}"


def perf_silent(seconds: float) -> RunFailed:
    return RunFailed(f"perf did not end within {seconds:g} s: do other programs keep both CPUs busy?")


CPUS_MOVED_ALWAYS = "the hypervisor moved this machine's CPUs during every turn: try again when it is quiet"


def not_measured(collector: str, why: str) -> str:
    return f"{collector} not measured: {why}"


# --- Validation ------------------------------------------------------------------------------------------------------


def left_out(why: object) -> str:
    return f"left out: {why}"


def not_natively(why: object) -> str:
    return f"does not run natively: {why}"


def not_counted_here() -> str:
    return "no event of it was counted by this processor (too few hugepages, or perf refused)"


def no_profile_here(cpu_model: str, profile: str) -> str:
    return f"no CPU profile describes this machine's processor ({cpu_model}): the model is {profile}, the default"


def another_profile(cpu_model: str, profile: str) -> str:
    return f"{profile} was asked for, which does not describe this machine's processor ({cpu_model})"


def copied_otherwise() -> str:
    return "the C library copied by other code natively than in the lab: the times are of two programs"


def another_frequency(native_ghz: float, profile_ghz: float) -> str:
    return f"additions show {native_ghz:.3f} GHz natively; the profile has {profile_ghz:.3f} GHz, and all of its times are by that"


def not_in_lab(why: object) -> str:
    return f"has no modelled time: {why}"


def cpus_far_apart() -> str:
    return (
        "natively the two CPUs had no cache in common (a hypervisor chooses where they lie), as they have in the lab: the native time is "
        "too long"
    )


def in_a_guest(items: Sequence[str], exit_ns: float, entry: int) -> str:
    return (
        f"This machine is a virtual one, and its hypervisor has a part in {', '.join(items)}: in the lab these run in a guest. "
        f"An exit takes {exit_ns:,.0f} ns here (CPUID), and so the guest's do: cost.vm_entry is {entry:,} cycles for them, "
        "whatever the profile has."
    )


def not_in_a_guest(items: Sequence[str], why: object) -> str:
    return (
        f"This machine is a virtual one, and its hypervisor has a part in {', '.join(items)}; in the lab these ran without one, for no "
        f"guest of it could run them: {why}"
    )


def no_exit(why: object) -> RunFailed:
    return RunFailed(f"it can't be timed how long an exit from this virtual machine takes: {why}")


def quicker_exits(here_ns: float, lab_ns: float) -> RunFailed:
    return RunFailed(f"an exit takes {here_ns:.0f} ns on this machine, but {lab_ns:.0f} ns in the lab's guest with no cost of an entry")


def not_on_this_host(bench: str, why: str) -> BadInput:
    return BadInput(f"{bench} runs on this host: {why}")


def no_tmpfs() -> RunFailed:
    return RunFailed("no tmpfs can be mounted for the results: be root")


def no_end(seconds: int) -> RunFailed:
    return RunFailed(f"no end after {seconds} s")


def fails_by_itself(status: int, words: str) -> RunFailed:
    return RunFailed(f"the campaign fails by itself, status {status}: {words}")
