# SPDX-License-Identifier: GPL-2.0-or-later
"""DPDK's own guest: between two wires stands a testpmd with two virtio-user ports, that sends on whatever comes.

a -- switch -- testpmd -- switch -- b
"""

from collections.abc import Iterator

import pytest
from frontend import Frontend
from modes import DATAPATHS
from running import FOLDER, Switch, fresh, kept
from traffic import exchange, frames, mac

from vsprof.workloads.endpoints.testpmd import Testpmd

pytestmark = pytest.mark.dataplane
PATHS = {
    "mergeable": "",
    "non-mergeable": ",mrg_rxbuf=0",
    "vector": ",mrg_rxbuf=0,in_order=1,vectorized=1",
    "in-order": ",in_order=1",
    "packed": ",packed_vq=1",
}
SIZES = (60, 61, 512, 1024, 1514)


@pytest.fixture
def wires(keeper, datapath) -> Iterator[Switch]:
    yield from kept(keeper, ("--forward", "wire", *DATAPATHS[datapath]))


@pytest.fixture(params=PATHS.values(), ids=list(PATHS))
def ends(request, wires, host, guests) -> Iterator[tuple[Frontend, Frontend]]:
    """Guests a and b."""
    name, path = fresh("t"), request.param
    made = []
    for guest, end in (("a", "left"), ("b", "right")):
        made.append(wires.attach(guests(), guest))
        made[-1].post(100)
        wires.control(f"add-port {end},path={FOLDER}/{name}.{end},server=1")
    devices = [f"net_virtio_user{number},path={FOLDER}/{name}.{end}{path}" for number, end in enumerate(("left", "right"))]
    testpmd = Testpmd(host, name, devices, [host.plan().housekeeping])
    try:
        for end in ("left", "right"):
            wires.await_up(end)
        testpmd.tell("start")
        yield tuple(made)
    finally:
        testpmd.stop()


def test_23_in_23_out_through_a_testpmd(ends):
    a, b = ends
    for size in SIZES:
        exchange(a, b, frames(23, mac(1), mac(2), size))
        exchange(b, a, frames(23, mac(2), mac(1), size))
