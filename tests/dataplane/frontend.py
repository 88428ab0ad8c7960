# SPDX-License-Identifier: GPL-2.0-or-later
"""A vhost-user front-end: a guest's network card without a guest, that knows where each of its descriptors is.

::

    with Frontend() as guest:
        guest.connect(path)                    # or: guest.listen(path), …, guest.accept()
        guest.send([frame], Layout(pieces=3))
        assert guest.receive(1) == [frame]
        guest.all_back()                       # every descriptor sent has come back
        guest.stop()                           # politely; `die` is the other way

``rx`` and ``tx`` are its virtqueues (of the first pair; all: ``queues``), to be misused as a test wants: split, or packed where it asks for
that feature.
"""

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from guest_memory import Memory, user
from packed_virtqueue import PackedVirtqueue
from vhost_user import Connection, Feature, ProtocolFeature, Refused, Request, mask, memory_table, u64, vring_address, vring_state
from virtqueue import Buffer, Chain, Virtqueue

USUAL = (Feature.VERSION_1, Feature.MRG_RXBUF, Feature.INDIRECT_DESC, Feature.PROTOCOL_FEATURES)
NUM_BUFFERS = 10
"""Where in the virtio-net header the number of buffers of a received frame is, if there is one."""
SECONDS = 5.0
"""How long anything may take that should happen at once."""
LONGEST = 9216
"""Of a frame, in bytes without FCS: what a receive buffer holds when frames may not spread over several."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a frame is laid out in descriptors: cut in ``pieces``, the virtio-net header in front of the first or in one of its own."""

    pieces: int = 1
    header_apart: bool = False
    indirect: bool = False

    def cut(self, header: bytes, frame: bytes) -> list[bytes]:
        size = -(-len(frame) // self.pieces) or 1
        parts = [frame[at : at + size] for at in range(0, len(frame), size)] or [b""]
        return [header, *parts] if self.header_apart else [header + parts[0], *parts[1:]]


PLAIN = Layout()


class Frontend:
    """A guest with ``queue_pairs`` pairs of rings of ``queue_size`` descriptors, that asks for ``features``.

    The rings are in the first region of its memory, the buffers in the last, unless a test puts them elsewhere.
    """

    def __init__(
        self, features: Sequence[Feature] = USUAL, *, queue_pairs: int = 1, queue_size: int = 256, memory: Memory | None = None
    ) -> None:
        self.wanted = (*features, Feature.MQ) if queue_pairs > 1 else tuple(features)
        self.memory = memory or Memory()
        ring = PackedVirtqueue if Feature.RING_PACKED in features else Virtqueue
        self.queues: list[Any] = [
            ring(self.memory, index, queue_size, event_idx=Feature.EVENT_IDX in features) for index in range(2 * queue_pairs)
        ]
        self.features = 0
        self.header_bytes = 12 if {Feature.VERSION_1, Feature.MRG_RXBUF} & set(features) else 10
        self._connection: Connection | None = None
        self._listener: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.die()
        if self._listener is not None:
            self._listener.close()
        for queue in self.queues:
            queue.close()
        self.memory.close()

    @property
    def rx(self) -> Any:
        return self.queues[0]

    @property
    def tx(self) -> Any:
        return self.queues[1]

    # Getting to know each other.

    def connect(self, path: Path | str, *, start: bool = True) -> None:
        """Connect to a back-end that listens on ``path``; bring everything up unless told otherwise. Raises ``Refused``."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._connection = Connection(sock)
        try:
            sock.connect(str(path))
        except OSError as error:
            raise Refused(f"connect to {path}: {error}") from error
        if start:
            self.start()

    def listen(self, path: Path | str) -> None:
        """Wait for a back-end that connects to ``path``."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(1)

    def accept(self, seconds: float = SECONDS, *, start: bool = True) -> None:
        """Take the back-end that connects within ``seconds``. Raises ``Refused``."""
        assert self._listener is not None, "listen first"
        self._listener.settimeout(seconds)
        try:
            self._connection = Connection(self._listener.accept()[0])
        except TimeoutError:
            raise Refused(f"no back-end connected within {seconds} s") from None
        if start:
            self.start()

    def start(self) -> None:
        """Negotiate, share the memory, and start all rings. Raises ``Refused``, also when a feature that is wanted is not offered."""
        self.negotiate()
        self.share()
        for queue in self.queues:
            self.start_ring(queue)

    def negotiate(self) -> None:
        talk = self.connection
        talk.set(Request.SET_OWNER)
        offered = talk.get_u64(Request.GET_FEATURES)
        if missing := [bit.name for bit in self.wanted if not offered >> bit & 1]:
            raise Refused(f"the back-end offers {offered:#x}, which lacks {', '.join(missing)}")
        self.features = mask(self.wanted)
        if Feature.PROTOCOL_FEATURES in self.wanted:
            understood = talk.get_u64(Request.GET_PROTOCOL_FEATURES) & mask([ProtocolFeature.MQ, ProtocolFeature.REPLY_ACK])
            talk.set(Request.SET_PROTOCOL_FEATURES, u64(understood))
            talk.acknowledged = bool(understood >> ProtocolFeature.REPLY_ACK & 1)
        talk.set(Request.SET_FEATURES, u64(self.features))

    def share(self, regions: Sequence[int] | None = None) -> None:
        """Tell the back-end all of the memory, or only the regions with these numbers: told again, it is as if the others were unplugged."""
        told, files = self.memory.table(regions)
        self.connection.set(Request.SET_MEM_TABLE, memory_table(told), files)

    def start_ring(self, queue: Virtqueue) -> None:
        """A ring that was stopped goes on where it was; one whose back-end went away, with the first that it did not give back."""
        talk, index = self.connection, queue.index
        talk.set(Request.SET_VRING_NUM, vring_state(index, queue.size))
        talk.set(Request.SET_VRING_BASE, vring_state(index, queue.base))
        talk.set(Request.SET_VRING_ADDR, vring_address(index, *(user(part) for part in queue.parts)))
        talk.set(Request.SET_VRING_KICK, u64(index), [queue.kick_fd])
        talk.set(Request.SET_VRING_CALL, u64(index), [queue.call_fd])
        if Feature.PROTOCOL_FEATURES in self.wanted:
            talk.set(Request.SET_VRING_ENABLE, vring_state(index, 1))

    @property
    def connection(self) -> Connection:
        assert self._connection is not None, "connect, or accept, first"
        return self._connection

    # Traffic.

    def send(self, frames: Sequence[bytes], layout: Layout = PLAIN, *, pair: int = 0, publish: bool = True, header: bytes = b"") -> int:
        """Make frames available to the back-end, as many as the ring has room for, and return how many."""
        queue = self.queues[2 * pair + 1]
        self._tidy(queue)
        sent = 0
        for frame in frames:
            parts = layout.cut(header or bytes(self.header_bytes), frame)
            if queue.room < (1 if layout.indirect else len(parts)):
                break
            queue.add([self._filled(part) for part in parts], indirect=layout.indirect)
            sent += 1
        if publish:
            queue.publish()
        return sent

    def send_all(self, frames: Sequence[bytes], layout: Layout = PLAIN, *, pair: int = 0, seconds: float = SECONDS) -> None:
        """Send every one, waiting for room. Raises ``AssertionError`` if that takes longer than ``seconds``."""
        sent = 0
        end = time.monotonic() + seconds
        while sent < len(frames):
            sent += self.send(frames[sent:], layout, pair=pair)
            assert time.monotonic() < end, f"the back-end took {sent} of {len(frames)} frames in {seconds} s"

    def post(self, count: int, size: int = 0, *, pieces: int = 1, indirect: bool = False, pair: int = 0, publish: bool = True) -> None:
        """Make ``count`` receive buffers available, each of ``pieces`` descriptors of ``size`` bytes.

        Unless told, a buffer is 2 KiB where frames may spread over several, and else holds the longest frame.
        """
        queue = self.queues[2 * pair]
        size = size or (2048 if self.mergeable else LONGEST)
        for _ in range(count):
            queue.add([Buffer(self.memory.take(size), size, writable=True) for _ in range(pieces)], indirect=indirect)
        if publish:
            queue.publish()

    @property
    def mergeable(self) -> bool:
        return Feature.MRG_RXBUF in self.wanted

    def received(self, *, pair: int | None = None, repost: bool = True) -> list[bytes]:
        """The frames that came so far, by one queue pair or by all. Their buffers are made available again, if ``repost``."""
        queues = self.queues[::2] if pair is None else [self.queues[2 * pair]]
        return [frame for queue in queues for frame in self._received(queue, repost)]

    def receive(self, count: int, seconds: float = SECONDS, *, pair: int | None = None, repost: bool = True) -> list[bytes]:
        """The next ``count`` frames, or as many as come within ``seconds``; more, if more came at once."""
        frames: list[bytes] = []
        end = time.monotonic() + seconds
        while len(frames) < count and time.monotonic() < end:
            new = self.received(pair=pair, repost=repost)
            frames += new
            if not new:
                time.sleep(0.0005)
        return frames

    def outstanding(self) -> int:
        """Chains sent that have not come back."""
        for queue in self.queues[1::2]:
            self._tidy(queue)
        return sum(len(queue.in_flight) for queue in self.queues[1::2])

    def all_back(self, seconds: float = SECONDS) -> None:
        """Wait until every chain sent has come back. Raises ``AssertionError`` if one does not within ``seconds``."""
        eventually(lambda: not self.outstanding(), "every descriptor sent to come back", lambda: f"{self.outstanding()} are out", seconds)

    # Leaving.

    def stop(self) -> None:
        """As a driver that is unloaded: each ring is stopped, which the back-end acknowledges, then the socket is closed."""
        for queue in self.queues:
            self.stop_ring(queue)
        self._close()

    def stop_ring(self, queue: Virtqueue) -> None:
        """From the answer on the back-end may not touch the ring, nor what is in it."""
        answer = self.connection.get(Request.GET_VRING_BASE, vring_state(queue.index, 0))
        queue.base = int.from_bytes(answer[4:8], "little")

    def die(self) -> None:
        """As a guest that is killed: the socket closes, whatever is in flight."""
        for queue in self.queues:
            queue.begin_again()
        self._close()

    def reset(self) -> None:
        """Empty rings, as after a boot: what was in flight is forgotten. Only while not connected."""
        assert self._connection is None
        for queue in self.queues:
            for chain in queue.in_flight.values():
                self._give(chain)
            queue.reset()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _filled(self, part: bytes) -> Buffer:
        buffer = Buffer(self.memory.take(len(part)), len(part))
        self.memory.write(buffer.address, part)
        return buffer

    def _tidy(self, queue: Virtqueue) -> None:
        for chain, _ in queue.collect():
            self._give(chain)

    def _give(self, chain: Chain) -> None:
        for buffer in chain.buffers:
            self.memory.give(buffer.address, buffer.length)

    def _received(self, queue: Virtqueue, repost: bool) -> list[bytes]:
        frames = []
        chains = []
        waiting = iter(queue.collect())
        for first in waiting:
            parts = [first]
            count = self._buffers_of(first)
            while len(parts) < count:
                # A device gives all buffers of a frame back at once.
                following = next(waiting, None)
                assert following, f"ring {queue.index}: a frame of {count} buffers, of which {len(parts)} came back"
                parts.append(following)
            frames.append(b"".join(self._written(*part) for part in parts)[self.header_bytes :])
            chains += [chain for chain, _ in parts]
        for chain in chains:
            if repost:
                queue.add(chain.buffers, indirect=chain.table is not None)
            else:
                self._give(chain)
        if chains and repost:
            queue.publish()
        return frames

    def _buffers_of(self, first: tuple[Chain, int]) -> int:
        """Over how many buffers the frame is spread that begins in this one."""
        if self.header_bytes == 10:
            return 1
        count = int.from_bytes(self._written(*first)[NUM_BUFFERS:12], "little")
        if not self.mergeable:
            # The standard wants a 1 here (5.1.6.4 of virtio 1.2); librte_vhost leaves a 0.
            assert count <= 1, f"num_buffers is {count} in the virtio-net header, though buffers can't be merged"
            return 1
        assert count, "num_buffers is 0 in the virtio-net header"
        return count

    def _written(self, chain: Chain, length: int) -> bytes:
        room = sum(buffer.length for buffer in chain.buffers)
        assert length <= room, f"{length} bytes written, it says, into {room}"
        return b"".join(self.memory.read(buffer.address, buffer.length) for buffer in chain.buffers)[:length]


def eventually(
    true: Callable[[], object],
    what: str,
    seen: Callable[[], object] = lambda: "",
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until ``true`` holds. Raises ``AssertionError`` with what was seen last if it does not within ``seconds`` of the clock."""
    end = clock() + seconds
    while not true():
        if clock() > end:
            raise AssertionError(f"waited {seconds} s for {what}; {seen()}")
        time.sleep(0.002)
