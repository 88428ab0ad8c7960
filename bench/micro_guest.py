# SPDX-License-Identifier: GPL-2.0-or-later
"""Microbenchmarks in a virtual machine of the lab: for a machine that is a virtual one itself.

There a page walk has two dimensions, and a processor that falls asleep or wakes another leaves its virtual machine. What the hypervisor
then does nobody sees from inside; but how long an exit takes can be timed, by CPUID, which always is one. So the lab's guest gets exits
that take as long: ``cost.vm_entry``, which is this machine's then and not the profile's. All else is the model's.

The guest's memory is in pages of 4 KiB on both levels. Where a hypervisor has larger ones, large pages of its guests need fewer entries of
the TLB than small ones.
"""

import base64
import contextlib
import shlex
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from vsprof.bench import messages, micro_times, microbenchmarks
from vsprof.bench.micro_times import LAB_TRIES, Timed, Took
from vsprof.collectors.uarch_model.profiles import Profile
from vsprof.testbeds.emulator import likeness
from vsprof.testbeds.lab import Lab
from vsprof.workloads.endpoints.base import RUN
from vsprof.workloads.endpoints.vm import Vm

EXIT = Timed("exit", "exits", 0, 200, hypervisor=True)
ENTRY = "cost.vm_entry"
PROGRAM = "/run/micro"
PIECE = 32768
"""Bytes that its agent is given at once."""
SECONDS = 600
CPU, PARTNER = 1, 0
"""The guest's: its agent, too, is on the first."""

Say = Callable[[str], None]


class Guest(Vm):
    """Two virtual CPUs, each alone on one of the lab's, no interface, and the kernel's arguments of ``like``."""

    vcpus = 2
    slots = ()

    def __init__(self, host: Lab, like: likeness.Likeness) -> None:
        housekeeping = micro_times.LAB_HOUSEKEEPING
        super().__init__(host, 1, vcpu=micro_times.LAB_CPU, backend_cpus=[housekeeping], housekeeping_cpu=housekeeping)
        self._like = like

    def settle(self) -> None:
        self._await_agent()
        self._pin()

    def put(self, path: Path, to: str) -> None:
        """A program of this machine's."""
        handle = self.ask("guest-file-open", path=to, mode="w")
        content = path.read_bytes()
        for begin in range(0, len(content), PIECE):
            piece = base64.b64encode(content[begin : begin + PIECE]).decode()
            self.ask("guest-file-write", handle=handle, **{"buf-b64": piece})
        self.ask("guest-file-close", handle=handle)
        self.run(f"chmod 755 {to}")

    def _kernel_arguments(self) -> str:
        return super()._kernel_arguments().replace(likeness.ITSELF.kernel, self._like.kernel)

    def _memory(self) -> str:
        return "memory-backend-ram,prealloc=on"

    def _cpus(self, threads: Mapping[int, str]) -> dict[int, int]:
        first, last = self._vcpu_tids
        return {**super()._cpus(threads), first: micro_times.LAB_PARTNER, last: micro_times.LAB_CPU}


def needed() -> bool:
    """Whether this machine is a virtual one."""
    return "hypervisor" in Path("/proc/cpuinfo").read_text().partition("\n\n")[0].split()


def modelled(
    wanted: Sequence[Timed], exit_ns: float, profile: Profile, quantum_us: float, rounds: int, say: Say
) -> tuple[dict[str, list[Took]], int]:
    """Each item's processes in the lab's guest, one lab a round; and the cost of an entry by which its exits take ``exit_ns``.

    Raises ``VsprofError``, ``RunFailed`` where exits take longer by themselves.
    """
    entry = _entry(exit_ns, profile, quantum_us, say)
    found: dict[str, list[Took]] = {item.name: [] for item in wanted}
    for number in range(1, rounds + 1):
        say(f"model, in a guest, round {number} of {rounds}")
        for name, took in _round(wanted, profile.override({ENTRY: entry}), quantum_us, say).items():
            found[name].append(took)
    return found, entry


def _entry(exit_ns: float, profile: Profile, quantum_us: float, say: Say) -> int:
    say("model, in a guest: an exit")
    takes = statistics.median(_round([EXIT], profile, quantum_us, say)[EXIT.name].nanoseconds)
    entry = round(profile.values[ENTRY] + (exit_ns - takes) * profile.frequency_hz / 1e9)
    if entry < 0:
        raise messages.quicker_exits(exit_ns, takes)
    return entry


def _round(wanted: Sequence[Timed], profile: Profile, quantum_us: float, say: Say) -> dict[str, Took]:
    """All programs are begun before, and wait: see ``micro_times``."""
    with micro_times.clocked(profile, quantum_us, say) as (host, model), _guest(host) as guest:
        for item in wanted:
            guest.run(_begin(item))
        with model.modelled_time():
            for item in wanted:
                guest.run(f"echo go > /run/{item.name}.in; until [ -e /run/{item.name}.end ]; do sleep 0.01; done", seconds=SECONDS)
        return {item.name: micro_times.read(item, guest.run(f"cat /run/{item.name}.out")) for item in wanted}


@contextlib.contextmanager
def _guest(host: Lab) -> Iterator[Guest]:
    host.run(f"mkdir -p {RUN}")
    guest = Guest(host, likeness.this_machine())
    with contextlib.ExitStack() as undo:
        undo.callback(guest.stop)
        guest.start()
        guest.settle()
        guest.put(microbenchmarks.PROGRAM, PROGRAM)
        yield guest


def _begin(item: Timed) -> str:
    """Fails with what the program said if that ends before it is ready. Its output goes to a file, or the agent would wait for its end."""
    at = f"/run/{item.name}"
    environment = " ".join(f"{name}={text}" for name, text in micro_times.ENVIRONMENT.items())
    command = f"{environment} {PROGRAM} {shlex.join(item.words(CPU, PARTNER, LAB_TRIES))} <&7 > {at}.out 2>&1; touch {at}.end"
    return (
        f"rm -f {at}.*; mkfifo {at}.in; sh -c {shlex.quote(f'exec 7<> {at}.in; {command}')} < /dev/null > /dev/null 2>&1 & "
        f"until grep -qs ready {at}.out || [ -e {at}.end ]; do sleep 0.05; done; [ ! -e {at}.end ] || {{ cat {at}.out >&2; exit 1; }}"
    )


def natively(say: Say) -> float:
    """Nanoseconds that an exit takes on this machine. Raises ``RunFailed`` where it can't be timed."""
    say("native: an exit")
    found, why = micro_times.natively([EXIT], 1, say)
    if why:
        raise messages.no_exit(why[EXIT.name])
    return micro_times.shortest(found[EXIT.name][0])
