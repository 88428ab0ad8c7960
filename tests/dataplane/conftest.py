# SPDX-License-Identifier: GPL-2.0-or-later
"""This host as a testbed, vhost-switch in it, and guests on its ports."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from frontend import USUAL, Frontend
from modes import DATAPATHS
from running import PROGRAM, Keeper, Switch, kept
from traffic import introduce
from vhost_user import Feature

from vsprof.testbeds.native import Native

BINARY = "VSPROF_VHOST_SWITCH"
"""Environment variable: a vhost-switch built for the lab's tree, to be tested instead of the one in it."""


@pytest.fixture(scope="module")
def native(native_can_run: None) -> Iterator[Native]:
    with Native() as host:
        if (lacking := host.hugepages_lacking()) is not None:
            pytest.skip(lacking)
        yield host


@pytest.fixture(scope="module")
def host(native: Native) -> Native:
    """A testbed that has a vhost-switch. Of one module: the next room's tests want this host, too."""
    if own := os.environ.get(BINARY):
        native.push(Path(own).read_bytes(), PROGRAM)
        native.run(f"chmod 755 {PROGRAM}")
    found = native.run(f"test -x {PROGRAM}", check=False).status == 0
    assert found, f"the image has no {PROGRAM}: build the image anew, or set {BINARY} to a binary built for it"
    return native


@pytest.fixture(scope="module", params=DATAPATHS, ids=list(DATAPATHS))
def datapath(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def keeper(host: Native) -> Iterator[Keeper]:
    one = Keeper(host)
    yield one
    one.stop()


@pytest.fixture
def switch(keeper: Keeper, datapath: str) -> Iterator[Switch]:
    """A switch with the datapath, without ports; after the test it must live, and all its mbufs must be free, once the ports are gone."""
    yield from kept(keeper, DATAPATHS[datapath])


@pytest.fixture
def ring() -> str:
    """The kind of the guests' rings: ``split``, unless a test is parametrized to have ``packed`` ones, too."""
    return "split"


@pytest.fixture
def guests(ring: str) -> Iterator[Callable[..., Frontend]]:
    """Makes guests (as ``Frontend``), and takes them away."""
    made: list[Frontend] = []

    def make(features: Sequence[Feature] = USUAL, **more: object) -> Frontend:
        # No legacy driver knows packed rings.
        packed = (Feature.RING_PACKED, Feature.VERSION_1) if ring == "packed" else ()
        made.append(Frontend((*features, *packed), **more))
        return made[-1]

    yield make
    for one in made:
        one.__exit__()


@pytest.fixture
def neighbours(switch: Switch, guests: Callable[..., Frontend]) -> tuple[Frontend, Frontend]:
    """Two guests that know each other, to whom nothing may happen."""
    a, b = guests(), guests()
    for name, guest in (("a", a), ("b", b)):
        switch.attach(guest, name)
        guest.post(100)
    introduce(a, 1, [b])
    introduce(b, 2, [a])
    return a, b
