# SPDX-License-Identifier: GPL-2.0-or-later
"""23 frames in, 23 out, bytes equal, in every mode: each pair of options' values is together in one of the modes at least."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from frontend import USUAL
from modes import MODES, Mode
from running import Switch, kept
from traffic import exchange, frame, frames, introduce, mac, same
from vhost_user import Feature

pytestmark = pytest.mark.dataplane
SIZES = (60, 1514)
ENDS = {"switch": ("a", "b", "c"), "wire": ("a", "b"), "loop": ("a",)}
"""Who takes part in the exchange, by kind of forwarding. In a loop a guest is both ends."""
IDLE_SECONDS = 0.4


@pytest.fixture(scope="module", params=MODES, ids=str)
def mode(request: pytest.FixtureRequest) -> Mode:
    return request.param


@pytest.fixture
def ring(mode: Mode) -> str:
    return mode.ring


@pytest.fixture
def switch(keeper, mode) -> Iterator[Switch]:
    yield from kept(keeper, mode.options(), workers=mode.workers)


def test_23_in_23_out_bytes_equal(switch, mode, guests):
    ends = {name: guests(queue_pairs=mode.queues) for name in ENDS[mode.forward]}
    for name, guest in ends.items():
        switch.attach(guest, name, server=mode.socket == "server", queues=mode.queues)
        guest.post(100)
        if mode.queues > 1:
            guest.post(100, pair=1)
    a, b, *others = [*ends.values(), *ends.values()][: max(2, len(ends))]
    if mode.forward == "switch":
        introduce(a, 1, [b, *others])
        introduce(b, 2, [a, *others])
    before = {name: switch.port(name) for name in ends}
    for size in SIZES:
        exchange(a, b, frames(23, mac(1), mac(2), size))
        exchange(b, a, frames(23, mac(2), mac(1), size))
    for other in others:
        same(other.receive(1, 0.02), [], "a guest to whom nothing was sent")
    each = 92 // len(ends.keys() & {"a", "b"})
    for name in ends.keys() & {"a", "b"}:
        after = switch.port(name)
        moved = {key: after[key] - before[name][key] for key in after if key.startswith(("rx_", "tx_"))}
        octets = each * sum(SIZES) // len(SIZES)
        want = {"rx_packets": each, "tx_packets": each, "rx_bytes": octets, "tx_bytes": octets}
        assert {key: value for key, value in moved.items() if value} == want, f"port {name}"
    assert all(switch.port(name)["in_flight"] == 0 for name in ends)
    if mode.queues > 1:
        by_the_second = frames(23, mac(1), mac(2))
        a.send_all(by_the_second, pair=1)
        same(b.receive(23), by_the_second)
        a.all_back()
        assert switch.ask("/vhost_switch/queue,a,1")["rx_packets"] == 23
    lcores = [switch.ask(f"/vhost_switch/lcore,{lcore}") for lcore in switch.ask("/vhost_switch/lcores")]
    assert len(lcores) == mode.workers
    assert sum(one["rx_packets"] for one in lcores) >= 92


def test_no_frame_is_slept_through(switch, mode, guests):
    # They ask for kicks in two different ways.
    a = b = guests()
    if mode.forward != "loop":
        b = guests((*USUAL, Feature.EVENT_IDX))
    for name, guest in dict(zip("ab", (a, b)[: len(ENDS[mode.forward])], strict=False)).items():
        switch.attach(guest, name, server=mode.socket == "server")
        guest.post(100)
    for pause in (0, 0.0001, 0.0003, 0.001, 0.003, 0.01) * 4:
        # Long enough to fall asleep, not long enough, and just about.
        time.sleep(pause)
        exchange(a, b, [frame(mac(1), mac(2))], seconds=1)
        exchange(b, a, [frame(mac(2), mac(1))], seconds=1)
    if mode.rx == "poll":
        assert not a.tx.kicks, "it polls, and asked for kicks"
        return
    assert a.tx.kicks, "it asked for no kick, and sleeps?"
    before = cpu_seconds(switch.process.pid)
    time.sleep(IDLE_SECONDS)
    used = cpu_seconds(switch.process.pid) - before
    # Clock ticks are 10 ms: this is coarse, and enough to tell sleep from polling.
    assert used < 0.2 * IDLE_SECONDS, f"{used:.2f} s of CPU in {IDLE_SECONDS} s without a frame"


def cpu_seconds(pid: int) -> float:
    """Of all threads, user and kernel."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
