# SPDX-License-Identifier: GPL-2.0-or-later
"""A queue that goes from one worker to another: two workers, on two CPUs, while a neighbour's port comes, goes and pauses."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Self

import pytest
from frontend import SECONDS, Frontend, eventually
from guest_memory import MIB, Memory
from modes import DATAPATHS
from running import Switch, kept
from traffic import exchange, frames, introduce, mac, quiet
from vhost_user import Request, u64

pytestmark = pytest.mark.dataplane
HOLD = ("--hold-us", "1000000")
"""Longer than a guest of ours ever takes: a frame is lost by a fault alone."""
PAUSES, COMINGS = 150, 12
SENT = 60
"""Frames at a time: as many as a worker holds at most for a receiver without any room."""


@pytest.fixture
def switch(keeper, datapath) -> Iterator[Switch]:
    yield from kept(keeper, (*DATAPATHS[datapath], *HOLD), workers=2, apart=True)


class Pair:
    """Two guests that exchange frames, each in its order and none twice, as long as the block runs."""

    def __init__(self, one: Frontend, other: Frontend, numbers: tuple[int, int]) -> None:
        self._ends, self._numbers = (one, other), numbers
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None
        self.rounds = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join(4 * SECONDS)
        assert not self._thread.is_alive(), "the exchange did not end"
        if self._error is not None and error[0] is None:
            raise self._error

    def _run(self) -> None:
        (one, other), (here, there) = self._ends, self._numbers
        try:
            while not self._end.is_set():
                exchange(one, other, frames(SENT, mac(here), mac(there)))
                exchange(other, one, frames(SENT, mac(there), mac(here)))
                self.rounds += 1
        except BaseException as error:
            self._error = error


def attached(switch: Switch, guests: Callable[..., Frontend], name: str, posted: int) -> Frontend:
    guest = switch.attach(guests(memory=Memory((MIB, MIB))), name)
    guest.post(posted)
    return guest


@contextlib.contextmanager
def told(switch: Switch, names: str) -> Iterator[None]:
    """What the ports counted is told with an error: where a frame was lost."""
    try:
        yield
    except AssertionError as error:
        error.add_note("\n".join(f"{switch.port(name)}" for name in names))
        raise


def unharmed(switch: Switch, names: str) -> None:
    for name in names:
        # The last pause may not be over yet.
        switch.await_up(name)
        port = switch.port(name)
        assert port["broken_rings"] == 0, f"port {name}: {port}"


@pytest.mark.long
@pytest.mark.parametrize("posted", [100, 4], ids=["with-room", "held"])
def test_a_neighbour_that_pauses_again_and_again_harms_nobody(switch, guests, posted):
    """SET_VRING_CALL pauses a port for a moment: its queue leaves the layout, and those behind it go to the other worker, and back."""
    pausing = attached(switch, guests, "p", posted)
    a, b, c, d = (attached(switch, guests, name, posted) for name in "abcd")
    for number, guest in enumerate((a, b, c, d), start=1):
        introduce(guest, number, [other for other in (pausing, a, b, c, d) if other is not guest])
    with told(switch, "pabcd"), Pair(a, b, (1, 2)) as one, Pair(c, d, (3, 4)) as other:
        for _ in range(PAUSES):
            pausing.connection.set(Request.SET_VRING_CALL, u64(pausing.tx.index), [pausing.tx.call_fd])
    assert one.rounds
    assert other.rounds
    unharmed(switch, "pabcd")
    quiet(pausing, a, b, c, d)


def test_of_two_pairs_each_worker_has_one_that_sends(switch, guests):
    """Ports come sender, receiver, sender, receiver: dealt out in turn, both senders' queues would be one worker's."""
    a, b, c, d = (attached(switch, guests, name, 100) for name in "abcd")
    at_first = sum(by_worker(switch))
    # A frame to an unknown address goes to everybody, and would be taken for the other pair's.
    introduce(b, 2, [a, c, d])
    introduce(d, 4, [a, b, c])
    # A frame is counted when its burst is through, a moment after the guest has it.
    eventually(lambda: sum(by_worker(switch)) == at_first + 2, "both introductions to be counted", lambda: (at_first, by_worker(switch)))
    before = by_worker(switch)
    for sender, receiver, number in ((a, b, 1), (c, d, 3)):
        sender.send_all(frames(23, mac(number), mac(number + 1)))
        assert len(receiver.receive(23)) == 23
    eventually(lambda: by_worker(switch) == [was + 23 for was in before], "23 frames of each worker", lambda: (before, by_worker(switch)))
    quiet(a, b, c, d)


def by_worker(switch: Switch) -> list[int]:
    """Frames that each has received."""
    return [switch.ask(f"/vhost_switch/lcore,{lcore}")["rx_packets"] for lcore in switch.ask("/vhost_switch/lcores")]


@pytest.mark.parametrize("posted", [100, 4], ids=["with-room", "held"])
def test_neighbours_that_come_and_go_harm_nobody(switch, guests, posted):
    first = attached(switch, guests, "p", posted)
    a, b = (attached(switch, guests, name, posted) for name in "ab")
    introduce(a, 1, [first, b])
    introduce(b, 2, [first, a])
    with told(switch, "ab"), Pair(a, b, (1, 2)) as pair:
        for _ in range(COMINGS):
            switch.control("remove-port p")
            with Frontend(memory=Memory((MIB, MIB))) as coming:
                switch.attach(coming, "p")
                coming.post(posted)
    assert pair.rounds
    unharmed(switch, "ab")
    quiet(a, b)
