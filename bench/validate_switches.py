# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the processor model right about switches? Two of them forward packets that circulate, natively and in the lab.

On both sides run the same script, the same programs (the lab's own tree), the same number of packets; counted is the user
mode of the one CPU that forwards. The kernel's datapath is a user's program, too: a kernel in User-Mode Linux.
"""

import io
import shlex
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vsprof.bench import messages, native, perf
from vsprof.bench.model import PLUGIN, connect
from vsprof.collectors.uarch_model import BUILD, numbers
from vsprof.collectors.uarch_model import messages as uarch_model_messages
from vsprof.collectors.uarch_model.control import Control
from vsprof.collectors.uarch_model.profiles import Profile
from vsprof.testbeds.lab import Lab

HERE = Path(__file__).resolve().parent
COMMON = ("switch_common.sh", "sample_packets.py")
"""What the scripts need beside them."""
METRICS = ("instructions", "l1d_misses", "l2_misses", "llc_misses", "dtlb_walks", "branch_misses", "cycles")
CPU = 1
"""Where the switch forwards: a CPU that nothing else is put on, natively and in the lab."""
NATIVE_SECONDS, LAB_SECONDS, WARM_SECONDS = 2, 10, 3
WINDOWS = 3
HUGEPAGES = 340
"""Of 2 MiB: 512 MiB for OVS-DPDK, 128 MiB for testpmd, and some that DPDK tries and gives back."""
UP_SECONDS, WINDOW_SECONDS = 600, 120
"""The most that a start and a window may take, even in the lab on a busy machine."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Switch:
    """A script that makes a switch forward; see the scripts for their actions."""

    name: str
    native: str = f"{CPU} 0 0"
    """What its action ``up`` is told natively, where two CPUs must do."""
    lab: str = f"{CPU} 2 0"
    polls: bool = False
    """Whether it polls. What polls in vain cost is taken out, at the price that they have while no packet comes."""
    one_cpu: bool = False
    """Whether it needs the second CPU for nothing."""
    folders: tuple[str, ...] = ()
    by: str = ""
    """The name of its script in ``switch_*.sh``, where it is not the switch's own."""

    @property
    def script(self) -> Path:
        return HERE / f"switch_{self.by or self.name}.sh"


def in_user_mode_linux(name: str, datapath: str) -> Switch:
    """``datapath`` as switch_user_mode_linux.sh knows it."""
    native, lab = (f"{folder} {CPU} {datapath}" for folder in ("/mnt/uml", "/root/uml"))
    return Switch(name, native, lab, one_cpu=True, folders=("uml",), by="user_mode_linux")


OVS_DPDK, KERNEL_OVS = Switch("ovs_dpdk", polls=True), in_user_mode_linux("kernel_ovs", "ovs")
SWITCHES = (OVS_DPDK, KERNEL_OVS)


@dataclass(frozen=True)
class Window:
    """What happened in a second: packets forwarded, polls, those in vain, and the processor's events."""

    packets: float
    polls: float
    idle: float
    events: Mapping[str, float]

    @property
    def facts(self) -> dict[str, float]:
        """What is no event: packets a second, and by how many they came, on which their cost depends."""
        found = self.polls - self.idle
        return {"packets": self.packets, **({"packets_per_poll": self.packets / found} if found else {})}


def per_packet(traffic: Window, rest: Window | None) -> dict[str, float]:
    """Events per packet, without those of the polls in vain; ``rest``: a window in which all polls were."""
    idle = {name: rate / rest.idle for name, rate in rest.events.items()} if rest else {}
    return {name: (rate - traffic.idle * idle.get(name, 0.0)) / traffic.packets for name, rate in traffic.events.items()}


FACTS = {"packets": "packets per second", "packets_per_poll": "packets per poll"}
"""What ``Window.facts`` has, in words."""


def _with_cpi(found: dict[str, float]) -> dict[str, float]:
    return found | {"cpi": found["cycles"] / found["instructions"]} if {"cycles", "instructions"} <= found.keys() else found


# --- What the scripts print -------------------------------------------------------------------------------------


def read_windows(printed: str) -> list[tuple[Window, str]]:
    """Windows, each with what was printed inside; their events are still to be read from it. Raises ``RunFailed``."""
    found, begin, inside = [], None, []
    for line in printed.splitlines():
        if not line.startswith("microseconds="):
            inside.append(line)
            continue
        counts = {name: int(value) for name, _, value in (word.partition("=") for word in line.split())}
        if begin is None:
            begin, inside = counts, []
        else:
            found.append((_window(begin, counts), "\n".join(inside)))
            begin = None
    if begin is not None or not found:
        raise messages.no_counts(printed)
    return found


def _window(begin: Mapping[str, int], end: Mapping[str, int]) -> Window:
    seconds = (end["microseconds"] - begin["microseconds"]) / 1e6
    return Window(*((end[name] - begin[name]) / seconds for name in ("packets", "polls", "idle")), {})


# --- Natively ---------------------------------------------------------------------------------------------------


def hardware_events(profile: Profile) -> dict[str, list[str]]:
    """The events of this processor whose sum is a metric."""
    known = {"cycles": ["cycles"], "instructions": ["instructions"], **profile.events}
    return {metric: known[metric] for metric in METRICS if metric in known}


def natively(
    switch: Switch, tree: Path, folders: Mapping[str, Path], events: Mapping[str, Sequence[str]], say: Say
) -> list[dict[str, float]]:
    """Per window its facts, and of ``events`` each metric per packet. Raises ``RunFailed``."""
    say(f"native: {switch.name}")
    shared = {"bench": HERE, **{name: folders[name] for name in switch.folders}}
    seconds = UP_SECONDS + WINDOWS * (1 + switch.polls) * max(1, len(events)) * (NATIVE_SECONDS + 2)
    with native.hugepages(HUGEPAGES):
        return read_native(switch, native.run(tree, native_script(switch, events), shared, seconds), events)


def native_script(switch: Switch, events: Mapping[str, Sequence[str]]) -> str:
    """All that runs in the tree. An event has windows of its own: sharing the few counters, it would be a projection."""
    call = f"/mnt/bench/{switch.script.name}"
    sleep = ["sleep", str(NATIVE_SECONDS)]
    windows = [shlex.join([call, "window", *perf.command(names, cpu=CPU), *sleep]) for names in events.values()]
    windows = WINDOWS * (windows or [shlex.join([call, "window", *sleep])])
    rest = [f"{call} idle", *windows] if switch.polls else []
    # The namespaces take away whatever should be left of it when a line fails.
    return "\n".join([f"{call} up {switch.native}", *windows, *rest, f"{call} down", ""])


def read_native(switch: Switch, printed: str, events: Mapping[str, Sequence[str]]) -> list[dict[str, float]]:
    """As ``natively``, from what the script printed."""
    windows = read_windows(printed)
    size = max(1, len(events))
    rounds = [windows[at : at + size] for at in range(0, len(windows), size)]
    traffic, rest = rounds[:WINDOWS], rounds[WINDOWS:] if switch.polls else [None] * WINDOWS
    return [_read_round(*pair, events) for pair in zip(traffic, rest, strict=True)]


def _read_round(
    traffic: list[tuple[Window, str]], rest: list[tuple[Window, str]] | None, events: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    found = traffic[0][0].facts
    for at, (metric, names) in enumerate(events.items()):
        here, there = (_counted(metric, names, *windows[at]) if windows else None for windows in (traffic, rest))
        if here is not None and (rest is None or there is not None):
            found |= per_packet(here, there)
    return _with_cpi(found)


def _counted(metric: str, names: Sequence[str], window: Window, printed: str) -> Window | None:
    """The window with what perf counted in it; None if it could not."""
    count = perf.read(printed, names)
    return None if count is None else replace(window, events={metric: count.events / count.seconds})


# --- In the lab -------------------------------------------------------------------------------------------------


def modelled(switches: Iterable[Switch], folders: Mapping[str, Path], profile: Profile, say: Say) -> dict[str, list[dict[str, float]]]:
    """By switch: per window its facts, and each metric per packet. Raises ``VsprofError``."""
    found = {}
    with Lab(say=say, plugins=[PLUGIN]) as host:
        control = connect(host, profile)
        host.push((BUILD / "mark").read_bytes(), "/root/mark")
        host.run("chmod 755 /root/mark")
        for switch in switches:
            say(f"model: {switch.name}")
            found[switch.name] = _in_lab(host, control, switch, folders)
        control.close()
    return found


def _in_lab(host: Lab, control: Control, switch: Switch, folders: Mapping[str, Path]) -> list[dict[str, float]]:
    call = install(host, switch.script, {name: folders[name] for name in switch.folders})
    host.run(f"{call} up {switch.lab}", timeout=UP_SECONDS)
    traffic = _model_windows(host, control, call)
    rest: Sequence[Window | None] = [None] * WINDOWS
    if switch.polls:
        host.run(f"{call} idle", timeout=UP_SECONDS)
        rest = _model_windows(host, control, call)
    host.run(f"{call} down")
    return [_with_cpi(busy.facts | per_packet(busy, idle)) for busy, idle in zip(traffic, rest, strict=True)]


def _model_windows(host: Lab, control: Control, call: str) -> list[Window]:
    # The state of the caches goes from window to window, as on a processor.
    control.change("model", wake=lambda: host.run("true"))
    host.run(f"sleep {WARM_SECONDS}", timeout=WINDOW_SECONDS)
    marked = f"sh -c '/root/mark begin; sleep {LAB_SECONDS}; /root/mark end'"
    found = []
    for _ in range(WINDOWS):
        ((window, _),) = read_windows(host.run(f"{call} window {marked}", timeout=WINDOW_SECONDS).stdout)
        found.append(replace(window, events=_modelled_events(control)))
    control.change("off", wake=lambda: host.run("true"))
    return found


def _modelled_events(control: Control) -> dict[str, float]:
    """The metrics' rates in the window that was closed last."""
    if why := numbers.distrust(control.ask_json("status")):
        raise uarch_model_messages.plugin_refused("window", why)
    window = control.ask_json("window")
    user: Mapping[str, Any] = window["cores"][CPU]["modes"]["host_user"]
    return {metric: user.get(metric, 0) / window["seconds"] for metric in METRICS}


def install(host: Lab, script: Path, folders: Mapping[str, Path]) -> str:
    """A switch's script in the lab, with what it needs; how to call it there. Raises ``RunFailed``."""
    for path in (*(HERE / name for name in COMMON), script):
        host.push(path.read_text(), f"/root/{path.name}")
    host.run(f"chmod 755 /root/{script.name}")
    for name, folder in folders.items():
        host.push(_archive(folder), "/root/archive")
        host.run(f"mkdir -p /root/{name} && tar -C /root/{name} -xf /root/archive", timeout=120)
    return f"/root/{script.name}"


def _archive(folder: Path) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        archive.add(folder, ".")
    return written.getvalue()
