# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a switch takes for a packet that circulates: natively by this machine's clock, in the lab by the modelled processor's.

On both sides run the same script and the same programs (the lab's own tree), and on both the time that counts is that between two
samples, by the number of packets between them. Natively the machine is noisy: of many short windows of a start the shortest counts.
"""

import contextlib
import itertools
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vsprof.bench import messages, micro_times, native
from vsprof.bench.validate_switches import CPU, HERE, HUGEPAGES, KERNEL_OVS, OVS_DPDK, UP_SECONDS, Switch, in_user_mode_linux, install
from vsprof.collectors.uarch_model import COLLECTOR as Model
from vsprof.collectors.uarch_model.profiles import Profile
from vsprof.terms import errors
from vsprof.testbeds.lab import Lab

NATIVE_STARTS, MOST_STARTS, LAB_STARTS = 4, 8, 2
NATIVE_WINDOWS, NATIVE_SECONDS = 40, 0.05
LAB_WINDOWS, LAB_SECONDS = 3, 0.02
"""Of modelled time, of which a second takes this machine some 100."""
HOOKS = Path("/proc/sys/net/bridge")
"""There where ``br_netfilter`` is loaded, or a part of the kernel."""
SAMPLE_SECONDS = 1800
"""The most that all windows of a start may take: the lab is slow, and slower where this machine has other work."""
SAMPLE = re.compile(r"^microseconds=(\d+) packets=(\d+) ", re.MULTILINE)

Say = Callable[[str], None]


SWITCHES = (
    Switch("testpmd_io"),
    Switch("vhost_switch"),
    OVS_DPDK,
    # Where this machine's kernel has netfilter's hooks in bridges, the lab's shall have them: four calls for each packet.
    Switch("linux_bridge", native=f"{CPU}", lab=f"{CPU} {'hooks' if HOOKS.exists() else ''}", one_cpu=True),
    KERNEL_OVS,
    # The same kernel on both sides: what its error is for linux_bridge beyond this one is a difference of the two kernels.
    in_user_mode_linux("bridge_uml", "bridge"),
)


def windows(printed: str) -> list[float]:
    """Nanoseconds a packet between each sample and the next. Raises ``RunFailed`` without two, or where no packet came."""
    samples = [(int(at), int(packets)) for at, packets in SAMPLE.findall(printed)]
    pairs = list(itertools.pairwise(samples))
    if not pairs or any(second[1] <= first[1] for first, second in pairs):
        raise messages.no_counts(printed)
    return [1000 * (second[0] - first[0]) / (second[1] - first[1]) for first, second in pairs]


# --- Natively ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """The shortest window of one start, in nanoseconds a packet, and whether the CPUs had a cache in common before it and behind it."""

    nanoseconds: float
    near: bool


def natively(switch: Switch, tree: Path, folders: Mapping[str, Path], profile: Profile, say: Say) -> list[Start]:
    """As many starts as there are to be with CPUs near each other, if they are that often enough. Raises ``RunFailed``."""
    found: list[Start] = []
    with native.hugepages(HUGEPAGES), native.softirqs_first(CPU):
        while sum(one.near for one in found) < NATIVE_STARTS and len(found) < MOST_STARTS:
            say(f"native: {switch.name}, start {len(found) + 1}")
            found.append(_start(switch, tree, folders, profile, say))
    return found


def _start(switch: Switch, tree: Path, folders: Mapping[str, Path], profile: Profile, say: Say) -> Start:
    if switch.one_cpu:
        return Start(_start_natively(switch, tree, folders), near=True)
    before = micro_times.wait_until_near(profile, say)
    took = _start_natively(switch, tree, folders)
    return Start(took, all(micro_times.is_near(one, profile) for one in (before, micro_times.between_cpus())))


def _start_natively(switch: Switch, tree: Path, folders: Mapping[str, Path]) -> float:
    """The shortest window."""
    shared = {"bench": HERE, **{name: folders[name] for name in switch.folders}}
    call = f"/mnt/bench/{switch.script.name}"
    # The namespaces take away whatever should be left of it when a line fails.
    actions = (f"up {switch.native}", "insist", f"sample {NATIVE_WINDOWS + 1} {NATIVE_SECONDS}", "down")
    script = "\n".join([*(f"{call} {action}" for action in actions), ""])
    seconds = UP_SECONDS + NATIVE_WINDOWS * (NATIVE_SECONDS + 1)
    return min(windows(native.run(tree, script, shared, seconds)))


def counted(starts: Sequence[Start]) -> list[float]:
    """The times of those whose CPUs were near each other; where there are none, of all."""
    return [one.nanoseconds for one in starts if one.near] or [one.nanoseconds for one in starts]


# --- In the lab -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InLab:
    """What came out of the lab: by switch the median window of each start, in nanoseconds a packet; or why there is none."""

    kernel: str
    times: Mapping[str, Sequence[float]]
    why: Mapping[str, str]


def modelled(switches: Iterable[Switch], folders: Mapping[str, Path], profile: Profile, quantum_us: float, say: Say) -> InLab:
    """All switches in one lab; one that fails there leaves the others. Raises ``VsprofError`` where there is no lab."""
    times: dict[str, list[float]] = {}
    why: dict[str, str] = {}
    with micro_times.clocked(profile, quantum_us, say) as (host, model):
        kernel = micro_times.kernel_of(host)
        for switch in switches:
            try:
                call = install(host, switch.script, {name: folders[name] for name in switch.folders})
                for number in range(1, LAB_STARTS + 1):
                    say(f"model: {switch.name}, start {number} of {LAB_STARTS}")
                    took = statistics.median(_in_lab(host, model, switch, call))
                    times.setdefault(switch.name, []).append(took)
            except errors.RunFailed as error:
                say(f"model: {switch.name}: {error}")
                why[switch.name] = str(error)
    return InLab(kernel, times, why)


def _in_lab(host: Lab, model: Model, switch: Switch, call: str) -> list[float]:
    printed = f"/run/{switch.name}.samples"
    host.run(f"{call} up {switch.lab}", timeout=UP_SECONDS)
    with contextlib.ExitStack() as undo:
        undo.callback(host.run, f"{call} down", timeout=UP_SECONDS)
        # Python's own beginning lies before the first sample: by then caches are warm.
        with host.shell() as shell, model.modelled_time():
            shell.ask(f"{call} sample {LAB_WINDOWS + 1} {LAB_SECONDS} > {printed}", SAMPLE_SECONDS)
        return windows(host.run(f"cat {printed}").stdout)
