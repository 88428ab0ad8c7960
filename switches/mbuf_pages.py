# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages of a DPDK switch's own memory, in which its mbufs are: hugepages, or the processor's smallest, as a factor."""

from collections.abc import Mapping

from vsprof.testbeds.pages import MBUFS, SIZES, SMALL

OPTIONS = {MBUFS: SIZES}


def small(chosen: Mapping[str, str]) -> bool:
    return chosen[MBUFS] == SMALL


def eal(mib: int) -> list[str]:
    """EAL's options for ``mib`` in small pages, all of them from the beginning on: without hugepages it never takes more later."""
    # The last is part of the first. Without seeing it Open vSwitch adds `--in-memory`, which EAL refuses beside it.
    return ["--no-huge", "-m", str(mib), "--legacy-mem"]
