# SPDX-License-Identifier: GPL-2.0-or-later
"""How long the microbenchmarks (micro/) take: natively by this machine's clock, in the lab by the modelled processor's.

One static binary runs on both sides, and takes its times itself, by CLOCK_MONOTONIC. Natively the machine is noisy: of many short tries
of a few processes the shortest counts. In the lab nothing else has the CPU, and the tries' median does.
"""

import contextlib
import os
import platform
import random
import shlex
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vsprof.bench import like_kernel, messages, microbenchmarks, native
from vsprof.bench.microbenchmarks import IN_LAB, LINE, PROGRAM
from vsprof.collectors.uarch_model import COLLECTOR as Model
from vsprof.collectors.uarch_model.profiles import Profile
from vsprof.terms import errors
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds.base import MODELLED
from vsprof.testbeds.emulator import likeness
from vsprof.testbeds.lab import Lab

NATIVE_ROUNDS, LAB_ROUNDS = 6, 3
"""A bootstrap's interval takes six to be a 95 % one; the lab's rounds hardly differ."""
NATIVE_PROCESSES, NATIVE_TRIES, LAB_TRIES = 3, 200, 5
"""Of an item in a round, and in a process."""
ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512BW,-AVX512VL"}
"""The lab's processor has no AVX-512. One that has it shall copy by the same code."""
LAB_CPU, LAB_PARTNER, LAB_HOUSEKEEPING = 1, 2, 0
"""CPUs that nothing else is put on, and the housekeeping CPU."""
NATIVE_SECONDS, LAB_SECONDS = 30, 1800
"""The most that one item may take. A millisecond of modelled time takes a tenth of a second, and more on a busy machine."""
NEAR = 3.0
"""How many times the profile's latency a line may take where CPUs have a cache in common. Six times as long were seen without one."""
NEAR_SECONDS, NEAR_PAUSE = 90, 0.5
FOLDER = "/run/micro-times"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Timed:
    """A microbenchmark, how often it is done in a try, and how often what is told of it happens then (one iteration each, if 0)."""

    name: str
    kind: str
    argument: int
    iterations: int
    housekeeping: bool = False
    """In the lab on the housekeeping CPU. The others have no tick (nohz_full) unless this machine's have one, and then do more in each
    system call."""
    hypervisor: bool = False
    """A hypervisor has a part in what it takes. Where this machine has one, so has the lab's side: see micro_guest.py."""

    def words(self, cpu: int, partner: int, tries: int) -> list[str]:
        """What the program is told."""
        return ["time", *map(str, (cpu, partner, self.kind, self.argument, self.iterations, tries))]


@dataclass(frozen=True)
class Took:
    """What the processes of one round said."""

    nanoseconds: Sequence[float]
    """Of an iteration, in each try."""
    memcpy: str
    """Which of the C library's ways to copy it had."""


ADDS = "adds"


def items(profile: Profile) -> list[Timed]:
    """The microbenchmarks, sized for the profile's caches and TLBs. A try takes some tenths of a millisecond on a processor of today.

    Memory is in pages of 4 KiB: a virtual machine's large pages are no larger than those that its hypervisor has.
    """
    p = profile.values
    l1i, l1, l2, llc = (p[f"{name}.sets"] * p[f"{name}.ways"] * LINE for name in ("l1i", "l1d", "l2", "llc"))
    beyond_l2, beyond_all = max(4 * l2, llc // 8), 4 * llc
    return [
        Timed(ADDS, "adds", 0, 500_000),
        Timed("chase_l1", "chase_4k", l1 // 2, 100_000),
        Timed("chase_l2", "chase_4k", l2 // 2, 50_000),
        Timed("chase_llc", "chase_4k", beyond_l2, 30_000),
        Timed("chase_memory", "chase_4k", beyond_all, 5_000),
        Timed("scattered_llc", "scattered", beyond_l2, 10_000),
        Timed("asked_llc", "asked", beyond_l2, 9_984),
        # So few pages that their lines fit into L1D.
        Timed("pages_stlb", "pages", 4 * p["dtlb.4k.entries"], 50_000),
        Timed("pages_walk", "pages", 4 * p["stlb.entries"], 15_000, hypervisor=True),
        Timed("stream_l2", "lines", l2 // 2, 40_000),
        Timed("stream_llc", "lines", beyond_l2, 40_000),
        Timed("stream_memory", "lines", beyond_all, 40_000),
        Timed("code_l1", "code", l1i // 2, 20_480),
        Timed("code_l2", "code", 2 * l1i, 20_480),
        Timed("branch_random", "random", 0, 50_000),
        Timed("branch_pattern", "pattern", 4, 100_000),
        Timed("syscall", "syscalls", 0, 2_000, housekeeping=True),
        Timed("memcpy_64", "memcpy", 64, 50_000),
        Timed("memcpy_512", "memcpy", 512, 20_000),
        Timed("memcpy_1500", "memcpy", 1500, 10_000),
        Timed("memcpy_9000", "memcpy", 9000, 2_000),
        Timed("movsb_64", "movsb", 64, 20_000),
        Timed("movsb_1500", "movsb", 1500, 10_000),
        Timed("futex_same_cpu", "switch", 0, 200, housekeeping=True),
        Timed("futex_other_cpu", "wake", 0, 50, hypervisor=True),
        Timed("line_other_cpu", "line", 0, 500),
        Timed("wake_up", "sleep", 100, 10, hypervisor=True),
    ]  # fmt: skip


LINE_ITEM = Timed("line_other_cpu", "line", 0, 100)
"""Shorter than the one that is timed: it is asked again and again."""


def read(item: Timed, printed: str) -> Took:
    """What the program printed. Raises ``RunFailed`` on anything else."""
    said = dict(line.split(maxsplit=1) for line in printed.splitlines() if line.startswith(("took ", "memcpy ")))
    if set(said) != {"took", "memcpy"}:
        raise messages.no_counts(printed)
    return Took([int(one) / item.iterations for one in said["took"].split()], said["memcpy"])


# --- Natively ---------------------------------------------------------------------------------------------------


def natively(wanted: Sequence[Timed], rounds: int, say: Say) -> tuple[dict[str, list[Took]], dict[str, str]]:
    """Each item's processes, in random order, round by round; and why those that can't run here can't. Raises ``VsprofError``."""
    microbenchmarks.build()
    found: dict[str, list[Took]] = {item.name: [] for item in wanted}
    why: dict[str, str] = {}
    for number in range(1, rounds + 1):
        say(f"native: round {number} of {rounds}")
        taken: dict[str, list[Took]] = {}
        for item in random.sample([*wanted] * NATIVE_PROCESSES, NATIVE_PROCESSES * len(wanted)):
            try:
                took = _native(item)
                taken.setdefault(item.name, []).append(took)
            except errors.RunFailed as error:
                why[item.name] = str(error)
        for name, every in taken.items():
            found[name].append(Took([one for process in every for one in process.nanoseconds], every[0].memcpy))
    return found, why


def _native(item: Timed, cpu: int | None = None, partner: int | None = None) -> Took:
    """On the last CPU, with its partner on the first, if these are not given: a machine's own work is on the first ones, as a rule."""
    cpus = sorted(os.sched_getaffinity(0))
    on = [cpus[-1] if cpu is None else cpu, cpus[0] if partner is None else partner]
    command = [str(PROGRAM), *item.words(*on, NATIVE_TRIES)]
    try:
        ran = subprocess.run(
            command,
            input="go\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=NATIVE_SECONDS,
            env={**os.environ, **ENVIRONMENT},
            preexec_fn=native.before_others,
        )
    except subprocess.TimeoutExpired as error:
        raise testbeds_messages.command_timed_out(shlex.join(command), NATIVE_SECONDS) from error
    if ran.returncode != 0:
        raise messages.native_failed(ran.returncode, ran.stderr)
    return read(item, ran.stdout)


def between_cpus(cpu: int | None = None, partner: int | None = None) -> float:
    """Nanoseconds that a line takes now from one of the two CPUs to the other; unless told, of those that all is timed on. Raises
    ``RunFailed``."""
    return shortest(_native(LINE_ITEM, cpu, partner))


def wait_until_near(profile: Profile, say: Say) -> float:
    """Until the two CPUs have a cache in common, as the modelled ones have; but not for ever. What ``between_cpus`` found last.

    A hypervisor moves a virtual machine's CPUs about, and one that lies in another core complex is several times as far.
    """
    end = time.monotonic() + NEAR_SECONDS
    while not is_near(found := between_cpus(), profile) and time.monotonic() < end:
        say(f"native: waiting for CPUs that have a cache in common; a line takes {found:.0f} ns now")
        time.sleep(NEAR_PAUSE)
    return found


def is_near(nanoseconds: float, profile: Profile) -> bool:
    """Whether a line that takes so long comes from a cache that both CPUs have."""
    return nanoseconds <= NEAR * profile.values["llc.latency_modified"] / profile.frequency_hz * 1e9


def shortest(took: Took) -> float:
    """Nanoseconds of an iteration in the shortest try."""
    return min(took.nanoseconds)


# --- In the lab -------------------------------------------------------------------------------------------------


def modelled(wanted: Sequence[Timed], profile: Profile, quantum_us: float, rounds: int, say: Say) -> tuple[dict[str, list[Took]], str]:
    """Each item's processes in modelled time, one lab a round; and the lab's kernel. Raises ``VsprofError``."""
    found: dict[str, list[Took]] = {item.name: [] for item in wanted}
    for number in range(1, rounds + 1):
        with clocked(profile, quantum_us, say) as (host, model):
            microbenchmarks.install(host)
            kernel = kernel_of(host)
            for name, took in _round(host, model, wanted, lambda text, n=number: say(f"model, round {n} of {rounds}: {text}")).items():
                found[name].append(took)
    return found, kernel


@contextlib.contextmanager
def clocked(profile: Profile, quantum_us: float, say: Say) -> Iterator[tuple[Lab, Model]]:
    """A lab that can run by the clock of ``profile``, and the model that drives it. Its kernel is like this machine's."""
    like, kernel = likeness.this_machine(), like_kernel.choose(platform.release(), say)
    with Lab(say=say, plugins=[Model.emulator_plugin], clock=MODELLED, like=like) as host, contextlib.ExitStack() as undo:
        host.boot(kernel)
        model = Model(host, quantum_us=quantum_us)
        # As it was loaded: it need not be one of those that have a name.
        model.profile = profile
        undo.callback(model.teardown)
        model.setup()
        yield host, model


def _round(host: Lab, model: Model, wanted: Sequence[Timed], say: Say) -> dict[str, Took]:
    """All programs are begun before, and wait: what a beginning takes would take long in modelled time."""
    host.run(f"rm -rf {FOLDER} && mkdir -p {FOLDER}")
    host.push("".join(f"{name}={shlex.quote(text)}\n" for name, text in ENVIRONMENT.items()) + BEGIN, f"{FOLDER}/begin")
    with host.shell() as shell:
        shell.ask(f". {FOLDER}/begin", LAB_SECONDS)
        for item in wanted:
            say(f"{item.name} begins")
            shell.ask(
                f"begin {item.name} {shlex.join(item.words(LAB_HOUSEKEEPING if item.housekeeping else LAB_CPU, LAB_PARTNER, LAB_TRIES))}",
                LAB_SECONDS,
            )
        with model.modelled_time():
            for item in wanted:
                say(item.name)
                shell.ask(f"finish {item.name}", LAB_SECONDS)
    return {item.name: read(item, host.run(f"cat {FOLDER}/{item.name}.out").stdout) for item in wanted}


# begin NAME WORDS…: start the program, and wait until it is ready; finish NAME: let it go on, and wait for its end.
BEGIN = rf"""
export {" ".join(ENVIRONMENT)}
declare -A input process
begin() {{
    local name=$1 fifo
    shift
    mkfifo {FOLDER}/$name.in
    exec {{fifo}}<> {FOLDER}/$name.in
    {IN_LAB} "$@" <&$fifo > {FOLDER}/$name.out 2>&1 &
    process[$name]=$! input[$name]=$fifo
    until grep -q ready {FOLDER}/$name.out; do kill -0 ${{process[$name]}} || return 1; sleep 0.02; done
}}
finish() {{
    echo go >&${{input[$1]}}
    wait ${{process[$1]}}
}}
"""


def median(took: Took) -> float:
    """Nanoseconds of an iteration in the middle one of the tries."""
    return statistics.median(took.nanoseconds)


def own_kernel() -> str:
    """This machine's, with what it mitigates by code: it is part of what a system call costs."""
    return f"{platform.release()} ({likeness.in_words(likeness.own_vulnerabilities())})"


def kernel_of(host: Lab) -> str:
    """The lab's, in the same words."""
    release, *lines = host.run(f"uname -r; cd {likeness.VULNERABILITIES} && grep -H . *").stdout.splitlines()
    return f"{release} ({likeness.in_words(dict(line.split(':', 1) for line in lines))})"


def copies_differ(native_tries: Mapping[str, list[Took]], lab_tries: Mapping[str, list[Took]]) -> bool:
    """Whether the C library copied by other code on one side."""
    return len({took.memcpy for side in (native_tries, lab_tries) for every in side.values() for took in every}) > 1
