# SPDX-License-Identifier: GPL-2.0-or-later
"""A host's network cards as ports of switches that use DPDK: DPDK drives them, or the kernel does and hands the frames on (AF_XDP)."""

import re
from typing import Any

from vsprof.switches import links
from vsprof.switches.base import Port, Switch
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds import wire

DPDK, AF_XDP = "dpdk", "af_xdp"
QUEUES = {"card_queues": ("1", "2", "4")}
"""Of a card, so many receive queues, over which it spreads what comes by a hash of addresses and ports (receive-side scaling, RSS)."""
OPTIONS = {"card_driver": (DPDK, AF_XDP), **QUEUES}
"""For a switch to declare, among its ``card_options``, too."""
# 44 is AF_XDP (Linux, include/linux/socket.h), which Python has no name for.
HAS_AF_XDP = "python3 -S -c 'import socket; socket.socket(44, socket.SOCK_RAW)'"
SOCKET = re.compile(r"^\d+\s+\d+\s+(\S+):q0\b(?:.*\n\t)*?.*\bzc:([01])", re.MULTILINE)
"""One of `ss --xdp --extended`, over several lines: its interface, and whether the card puts frames where the program reads them."""


def by_dpdk(switch: Switch) -> list[str]:
    """The PCI addresses of those that DPDK drives. Of PCI's devices it touches these alone: others are in use."""
    return switch.cards if switch.chosen["card_driver"] == DPDK else []


def af_xdp_lacking(switch: Switch) -> str | None:
    """Why the host's kernel can't hand frames on, or None."""
    tried = switch.host.run(HAS_AF_XDP, check=False)
    return testbeds_messages.kernel_lacks("AF_XDP", tried.stderr) if tried.status != 0 else None


def lacking(switch: Switch) -> str | None:
    return af_xdp_lacking(switch) if switch.chosen["card_driver"] == AF_XDP else None


def bind(switch: Switch) -> None:
    """To be called before DPDK starts, which chooses by the drivers how devices address memory. Raises ``RunFailed``."""
    if cards := by_dpdk(switch):
        wire.give_dpdk(switch.host, *cards)


def add(switch: Switch, name: str, number: int) -> Port:
    """Make a port of this one of its cards. Raises ``RunFailed``."""
    host, card, queues = switch.host, switch.cards[number], int(switch.chosen["card_queues"])
    if switch.chosen["card_driver"] == AF_XDP:
        interface = f"{name}-xdp"
        links.take_card(host, wire.give_kernel(host, card), card, interface, switch.plan.movers, queues)
        # Without busy polling, which is DPDK's default: it polls for what is received alone. Where a card's ring for sending has an
        # interrupt of its own, as igb's, nothing leaves any more once that is full (seen under Linux 7.3, without copies).
        return switch.add_device(name, f"net_af_xdp{number},iface={interface},queue_count={queues},busy_budget=0", queues)
    port = switch.add_device(name, card, queues)
    wire.drop_when_full(host, card)
    return port


def facts(switch: Switch) -> dict[str, Any]:
    """By interface, whether AF_XDP copies each frame; nothing where no card is reached through it."""
    if switch.chosen["card_driver"] != AF_XDP or not switch.cards:
        return {}
    return {"af_xdp": copies(switch.host.run("ss --xdp --extended").stdout)}


def copies(listed: str) -> dict[str, str]:
    """By interface of the sockets that ``ss`` listed, whether the kernel copies each frame."""
    return {name: "zero copy" if zero == "1" else "copy" for name, zero in SOCKET.findall(listed)}
