# SPDX-License-Identifier: GPL-2.0-or-later
"""Does the model count the same work alike? One program, twice, each time with a model that knows nothing yet.

What the program itself executes between its marks is fixed. So its instructions in user mode must agree exactly; its
misses may differ by what an interrupt in between threw out of the caches.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vsprof.bench.microbenchmarks import install, items, run_modelled
from vsprof.bench.model import PLUGIN, connect
from vsprof.collectors.uarch_model.profiles import Profile
from vsprof.testbeds.lab import Lab

ITEMS = ("chase_llc", "pages_walk", "stream_l2")
COUNTERS = ("instructions", "l1d_misses", "llc_misses", "dtlb_walks")


@dataclass(frozen=True)
class Run:
    """Counters in user mode, and how often the kernel interrupted the program."""

    user: Mapping[str, float]
    interrupts: int


def measure(profile: Profile, say: Callable[[str], None]) -> dict[str, tuple[Run, Run]]:
    """Each item's two runs. Raises ``VsprofError``."""
    found = {}
    with Lab(say=say, plugins=[PLUGIN]) as host:
        control = connect(host, profile)
        install(host)
        for item in items(profile):
            if item.name in ITEMS:
                say(f"twice: {item.name}")
                first, second = (_read(run_modelled(host, control, item)["modes"]) for _ in range(2))
                found[item.name] = (first, second)
        control.close()
    return found


def _read(modes: Mapping[str, Mapping[str, float]]) -> Run:
    interrupts = modes.get("host_kernel", {}).get("interrupts", 0)
    return Run({name: modes["host_user"].get(name, 0) for name in COUNTERS}, int(interrupts))


def explain(first: Run, second: Run) -> str:
    """Why two runs differ, as far as it was seen; nothing if they don't."""
    if first.user == second.user:
        return ""
    if first.user["instructions"] == second.user["instructions"]:
        return (
            f"the same instructions; interrupts between the marks ({first.interrupts} and {second.interrupts}) and the frames of"
            " memory that the kernel gave decide which lines stay in the caches"
        )
    return (
        f"not the same instructions: a block that a fault or an interrupt ({first.interrupts} and {second.interrupts} of them)"
        " breaks off is counted again when it is begun again"
    )
