# SPDX-License-Identifier: GPL-2.0-or-later
"""The front-end of these tests against testpmd's net_vhost: a back-end that is in use everywhere."""

from collections.abc import Iterator

import pytest
from frontend import USUAL, Frontend, Layout, Refused, eventually
from guest_memory import MIB, Memory
from running import Loop, fresh
from vhost_user import Feature
from virtqueue import Buffer

pytestmark = pytest.mark.dataplane
LEGACY = (Feature.PROTOCOL_FEATURES,)
FEATURES = {
    "usual": USUAL,
    "event-idx": (*USUAL, Feature.EVENT_IDX),
    "non-mergeable": (Feature.VERSION_1, Feature.INDIRECT_DESC, Feature.PROTOCOL_FEATURES),
    "legacy": LEGACY,
    "no-protocol-features": (Feature.VERSION_1, Feature.MRG_RXBUF),
}
LAYOUTS = [Layout(), Layout(header_apart=True), Layout(pieces=3), Layout(pieces=60, header_apart=True)]
INDIRECT = [Layout(indirect=True), Layout(pieces=7, header_apart=True, indirect=True)]


def numbered(count: int, size: int) -> list[bytes]:
    return [bytes([number]) * size for number in range(count)]


@pytest.fixture(scope="module")
def loop(native) -> Iterator[Loop]:
    running = Loop(native, fresh("l"))
    yield running
    running.stop()


def pair(loop: Loop, features: tuple[Feature, ...] = USUAL, **more: object) -> Iterator[tuple[Frontend, Frontend]]:
    with Frontend(features, **more) as a, Frontend(features, **more) as b:
        for guest, path in zip((a, b), loop.paths, strict=True):
            guest.connect(loop.local(path))
            guest.post(200)
        yield a, b


def forwarded(a: Frontend, b: Frontend, frames: list[bytes], layout: Layout = LAYOUTS[0]) -> None:
    # testpmd takes a while to see that a port is up: what comes before is lost.
    eventually(lambda: a.send([b"hello" * 12]) and b.receive(1, 0.05), "the first frame", seconds=5)
    b.receive(1000, 0.05)
    a.send_all(frames, layout)
    assert b.receive(len(frames)) == frames
    a.all_back()


@pytest.mark.parametrize("features", FEATURES.values(), ids=list(FEATURES))
def test_frames_come_through_whole_in_every_layout(loop, features):
    for a, b in pair(loop, features):
        for layout in LAYOUTS + (INDIRECT if Feature.INDIRECT_DESC in features else []):
            for size in (60, 1514, 9000 if Feature.MRG_RXBUF in features else 1600):
                forwarded(a, b, numbered(23, size), layout)
        assert a.tx.kicks < a.tx.next_available, "a poll-mode back-end wants no kicks"


def test_both_ways_at_once_with_chained_and_indirect_receive_buffers(loop):
    for a, b in pair(loop):
        a.post(12, 100, pieces=4)
        b.post(32, 100, pieces=5, indirect=True)
        forwarded(a, b, numbered(60, 300))
        forwarded(b, a, numbered(60, 300))


def test_a_buffer_may_lie_in_two_regions(loop):
    with Frontend(memory=Memory((2 * MIB, 4 * MIB), touching=True)) as a, Frontend() as b:
        a.connect(loop.local(loop.paths[0]))
        b.connect(loop.local(loop.paths[1]))
        b.post(8)
        forwarded(a, b, numbered(1, 60))
        frame = bytes(range(200))
        start = a.memory.regions[0].end - 100
        a.memory.write(start, bytes(12) + frame)
        a.tx.add([Buffer(start, 212)])
        a.tx.publish()
        assert b.receive(1) == [frame]


def test_a_back_end_that_connects_is_accepted_and_comes_back(native):
    loop = None
    try:
        with Frontend() as a, Frontend() as b:
            native.run("mkdir -p /run/vs")
            name = fresh("l")
            for guest, end in ((a, "a"), (b, "b")):
                guest.listen(native.socket(f"/run/vs/{name}.{end}"))
            loop = Loop(native, name, client=True)
            for _ in range(2):
                for guest in (a, b):
                    guest.accept()
                    guest.post(200)
                forwarded(a, b, numbered(5, 60))
                a.stop()
                b.die()
                a.reset()
                b.reset()
    finally:
        if loop:
            loop.stop()


def test_each_queue_pair_has_its_own_way(native):
    loop = Loop(native, fresh("l"), queues=2)
    try:
        for a, b in pair(loop, queue_pairs=2):
            b.post(64, pair=1)
            forwarded(a, b, numbered(5, 60))
            a.send(numbered(7, 100), pair=1)
            assert b.receive(7, pair=1) == numbered(7, 100)
            assert b.received() == []
            a.all_back()
    finally:
        loop.stop()


def test_memory_can_be_unplugged_and_plugged(loop):
    memory = Memory((2 * MIB, 4 * MIB, MIB))
    memory.buffers = 1
    with Frontend(memory=memory) as a, Frontend() as b:
        for guest, path in zip((a, b), loop.paths, strict=True):
            guest.connect(loop.local(path))
        b.post(200)
        for regions, buffers in (((0, 1), 1), ((0, 2), 2), ((0, 1, 2), 1)):
            memory.buffers = buffers
            a.share(regions)
            forwarded(a, b, numbered(5, 60))


def test_it_is_called_only_when_it_wants_to_be(loop):
    for a, b in pair(loop):
        forwarded(a, b, numbered(3, 60))
        assert b.rx.calls() == 0
        b.rx.want_calls(True)
        forwarded(a, b, numbered(3, 60))
        assert b.rx.calls() > 0


def test_a_stopped_ring_is_left_alone_and_goes_on_where_it_was(loop):
    for a, b in pair(loop):
        forwarded(a, b, numbered(3, 60))
        b.stop()
        a.send(numbered(3, 60))
        a.all_back()
        assert b.received() == []
        b.connect(loop.local(loop.paths[1]))
        forwarded(a, b, numbered(3, 60))


def test_what_is_not_offered_is_refused(loop):
    with Frontend((Feature.VERSION_1, Feature.SPEED_DUPLEX)) as guest, pytest.raises(Refused, match="lacks SPEED_DUPLEX"):
        guest.connect(loop.local(loop.paths[0]))
