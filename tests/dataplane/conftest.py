# SPDX-License-Identifier: GPL-2.0-or-later
"""This host as a testbed, vhost-switch in it, and guests on its ports."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from frontend import Frontend, eventually
from modes import DATAPATHS
from running import PROGRAM, Switch, fresh

from testbeds.native import Native

BINARY = "VSPROF_VHOST_SWITCH"
"""Environment variable: a vhost-switch built for the lab's tree, to be tested instead of the one in it."""


@pytest.fixture(scope="package")
def native(native_can_run: None) -> Iterator[Native]:
    with Native() as host:
        if (lacking := host.hugepages_lacking()) is not None:
            pytest.skip(lacking)
        yield host


@pytest.fixture(scope="package")
def host(native: Native) -> Native:
    """A testbed that has a vhost-switch."""
    if own := os.environ.get(BINARY):
        native.push(Path(own).read_bytes(), PROGRAM)
        native.run(f"chmod 755 {PROGRAM}")
    elif native.run(f"test -x {PROGRAM}", check=False).status:
        pytest.skip(f"the image has no {PROGRAM}: build the image anew, or set {BINARY} to a binary built for it")
    return native


@pytest.fixture(scope="package", params=DATAPATHS, ids=list(DATAPATHS))
def datapath(request: pytest.FixtureRequest) -> str:
    return request.param


class Keeper:
    """At most one running switch at a time: two that poll would share a CPU."""

    def __init__(self, host: Native) -> None:
        self._host = host
        self._switch: Switch | None = None
        self._options: object = None

    def get(self, options: tuple[str, ...], **more: object) -> Switch:
        """The one that runs, if it has these options, else a new one."""
        if self._switch is None or (options, more) != self._options or not self._switch.alive():
            self.stop()
            self._switch, self._options = Switch(self._host, fresh(), options, **more), (options, more)
        return self._switch

    def stop(self) -> None:
        # That it ends well is a test of its own; here it only takes time.
        if self._switch is not None:
            self._switch.kill()
        self._switch = None


@pytest.fixture(scope="package")
def keeper(host: Native) -> Iterator[Keeper]:
    kept = Keeper(host)
    yield kept
    kept.stop()


@pytest.fixture
def switch(keeper: Keeper, datapath: str) -> Iterator[Switch]:
    """A switch with the datapath, without ports; after the test it must live, and all its mbufs must be free, once the ports are gone."""
    yield from kept(keeper, DATAPATHS[datapath])


def kept(keeper: Keeper, options: tuple[str, ...], **more: object) -> Iterator[Switch]:
    running = keeper.get(options, **more)
    before = running.available()
    yield running
    assert running.alive(), f"the switch ended with status {running.status()}\n{running.log()}"
    for name in running.ports():
        running.control(f"remove-port {name}")
    running.control("flush-macs")
    eventually(lambda: running.available() == before, f"{before} mbufs to be free", lambda: f"{running.available()} are\n{running.log()}")


@pytest.fixture
def guests() -> Iterator[Callable[..., Frontend]]:
    """Makes guests (as ``Frontend``), and takes them away."""
    made: list[Frontend] = []

    def make(*options: object, **more: object) -> Frontend:
        made.append(Frontend(*options, **more))
        return made[-1]

    yield make
    for one in made:
        one.__exit__()
