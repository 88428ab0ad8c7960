# SPDX-License-Identifier: GPL-2.0-or-later
"""On which NUMA node OVS-DPDK's threads and memory are, in its own words and in the kernel's."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds import numa


def found(polls: str, pools: Mapping[str, str], devices: Mapping[str, str], mappings: Iterable[numa.Mapping]) -> dict[str, Any]:
    """By port, the node of the thread that polls it, of its mbufs, and of what librte_vhost keeps of it, all in DPDK's words; and in
    the kernel's, the hugepages of all mbufs by node.

    ``polls``: ``dpif-netdev/pmd-rxq-show``. ``pools``: by port, ``netdev-dpdk/get-mempool-info``. ``devices``: by port, the database's
    ``status:numa``. ``mappings``: of the daemon's memory.
    """
    polled = polled_by(polls)
    ports = {name: {"pmd": polled.get(name), "mbufs": node_of_pool(pool), "vhost": _number(devices[name])} for name, pool in pools.items()}
    places = {place for pool in pools.values() for place in pages_of_pool(pool)}
    return {"ports": ports, "mbuf_hugepages": numa.by_node([one for one in mappings if one.begin in places])}


def check(nodes: Mapping[str, Any], pmd: int, memory: int) -> None:
    """Raise ``RunFailed`` where something of what was ``found`` is not on the node that it was asked to be on."""
    for name, port in nodes["ports"].items():
        for what, asked in {"pmd": pmd, "mbufs": memory, "vhost": memory}.items():
            if port[what] != asked:
                raise testbeds_messages.elsewhere(f"OVS-DPDK's {what} of port {name}", asked, f"{port[what]}")
    if (pages := nodes["mbuf_hugepages"]).keys() != {memory}:
        raise testbeds_messages.elsewhere("OVS-DPDK's mbufs", memory, testbeds_messages.pages(pages))


def polled_by(text: str) -> dict[str, int]:
    """The NUMA node of the thread that polls each port, out of ``dpif-netdev/pmd-rxq-show``."""
    found, node = {}, 0
    for line in text.splitlines():
        if thread := re.match(r"pmd thread numa_id (\d+) ", line):
            node = int(thread[1])
        elif port := re.match(r"\s+port: (\S+)\s", line):
            found[port[1]] = node
    return found


def node_of_pool(text: str) -> int | None:
    """The NUMA node of a port's pool of mbufs, out of ``netdev-dpdk/get-mempool-info``; None where it doesn't say."""
    said = re.search(r"^\s*socket_id=(\d+)$", text, re.MULTILINE)
    return int(said[1]) if said else None


def pages_of_pool(text: str) -> set[int]:
    """Addresses of the hugepages in which the mbufs of a port's pool are, out of ``netdev-dpdk/get-mempool-info``."""
    chunks = re.findall(r"^\s*memory chunk at \S+ addr=(0x[0-9a-f]+), .* len=(\d+)$", text, re.MULTILINE)
    size = numa.PAGE_BYTES
    return {page * size for begin, length in chunks for page in range(int(begin, 16) // size, -(-(int(begin, 16) + int(length)) // size))}


def _number(text: str) -> int | None:
    """A number as the database quotes it."""
    digits = text.strip('"')
    return int(digits) if digits.isdigit() else None
