# SPDX-License-Identifier: GPL-2.0-or-later
"""The flows of a flood differ in their destination address, by which a switch's rules can tell them apart."""

from ipaddress import IPv4Address

FIRST = IPv4Address("10.253.0.0")
"""The first flow's, where there are several. frame-probe has the same (dataplane/probe/frame.c)."""
MOST = 1_000_000


def address(flow: int) -> str:
    """The destination address of flow number ``flow``, counted from 0."""
    return f"{FIRST + flow}"
