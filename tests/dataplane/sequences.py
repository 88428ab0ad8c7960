# SPDX-License-Identifier: GPL-2.0-or-later
"""Random conversations of a guest's side with its switch: messages of vhost-user in any order, with sane contents and others, while the
guest writes into its rings. What one conversation does is made by its number alone, so that it can be had again.
"""

import contextlib
import os
import random
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from frontend import Frontend
from guest_memory import Memory, user
from vhost_user import (
    NEED_REPLY,
    NO_FD,
    Feature,
    ProtocolFeature,
    Refused,
    Request,
    fill,
    mask,
    memory_table,
    u64,
    vring_address,
    vring_state,
)

FEATURES = (
    Feature.CSUM, Feature.MRG_RXBUF, Feature.MQ, Feature.INDIRECT_DESC, Feature.EVENT_IDX, Feature.PROTOCOL_FEATURES, Feature.VERSION_1,
    Feature.RING_PACKED, Feature.IN_ORDER,
)  # fmt: skip
SIZES = (0, 1, 2, 64, 100, 128, 256, 1024, 32768, 65535, 2**31)
INDICES = (0, 0, 1, 1, 2, 3, 15, 16, 255, 2**32 - 1)
STEPS = 40
REPLY_SECONDS = 0.5


class Conversation:
    """One guest's, on the path of a port; ``said`` is what it has said so far, in words."""

    def __init__(self, number: int | str, path: Path, *, spared: bool = False) -> None:
        """``spared``: without what librte_vhost's own rings are known not to stand (docs/security.md): memory tables that can't be mapped,
        and a call descriptor that waits."""
        self.said: list[str] = []
        self._spared = spared
        self._chosen = random.Random(number)
        self._path = path
        self._guest = Frontend(memory=Memory((1 << 16, 1 << 17)))
        self._files: list[int] = []
        self._index_told = 0

    def hold(self) -> None:
        """Say all of it."""
        ways: list[tuple[int, Callable[[], None]]] = [
            (3, self._features), (4, self._memory), (4, self._size), (5, self._addresses), (3, self._base), (4, self._kick), (4, self._call),
            (5, self._enable), (2, self._stop), (1, self._asked), (1, self._log), (1, self._anything), (1, self._again), (6, self._rings),
            (4, self._frames), (2, self._whole), (1, self._half), (1, self._waiting),
        ]  # fmt: skip
        try:
            # The switch may hang up on any of it.
            with contextlib.suppress(Refused, OSError):
                self._again()
                if self._chosen.random() < 0.7:
                    self._whole()
            for _ in range(self._chosen.randrange(1, STEPS)):
                (way,) = self._chosen.choices([way for _, way in ways], [weight for weight, _ in ways])
                with contextlib.suppress(Refused, OSError, AssertionError):
                    way()
        finally:
            self._guest.__exit__()
            for file in self._files:
                os.close(file)

    def _post(self, request: int, payload: bytes = b"", fds: tuple[int, ...] = ()) -> None:
        flags = NEED_REPLY if self._chosen.random() < 0.3 else 0
        self.said.append(f"{request!r} {payload[:40].hex()}{f' with {len(fds)} files' if fds else ''}{' acknowledged' if flags else ''}")
        self._guest.connection.post(request, payload, fds, flags)
        # Answers are read, lest the switch wait for room for the next; whether there is one is its business.
        self._guest.connection.sock.settimeout(0.002)
        with contextlib.suppress(TimeoutError):
            if self._guest.connection.sock.recv(4096) == b"":
                self._again()

    def _again(self) -> None:
        self.said.append("connects")
        with contextlib.suppress(OSError):
            self._guest.die()
        self._guest.connect(self._path, start=False)
        self._guest.connection.sock.settimeout(REPLY_SECONDS)

    def _whole(self) -> None:
        """What a sane guest says, from the first message to the last."""
        self._again()
        self.said.append("starts as a guest does")
        self._guest.start()

    def _features(self) -> None:
        bits = self._chosen.sample(FEATURES, self._chosen.randrange(len(FEATURES)))
        if self._chosen.random() < 0.3:
            understood = mask(self._chosen.sample(list(ProtocolFeature), self._chosen.randrange(len(ProtocolFeature) + 1)))
            self._post(Request.SET_PROTOCOL_FEATURES, u64(understood))
        self._post(Request.SET_FEATURES, u64(mask(bits) if bits else self._guest.features))

    def _memory(self) -> None:
        regions, files = self._guest.memory.table()
        what = self._chosen.randrange(2 if self._spared else 6)
        if what == 1:
            regions, files = regions[:1], files[:1]
        elif what == 2:
            regions = [(start, self._chosen.choice((4096, size // 2, size * 2)), there, 0) for start, size, there, _ in regions]
        elif what == 3:
            regions = [(start, size, there, self._chosen.choice((0, 4096, 2**63))) for start, size, there, _ in regions]
        elif what == 4:
            files = [self._file() for _ in files]
        elif what == 5:
            regions, files = regions * self._chosen.choice((1, 4)), files[:1]
        self._post(Request.SET_MEM_TABLE, memory_table(regions), tuple(files))

    def _index(self) -> int:
        return self._chosen.choice(INDICES)

    def _size(self) -> None:
        self._post(Request.SET_VRING_NUM, vring_state(self._index(), self._chosen.choice(SIZES)))

    def _addresses(self) -> None:
        parts = [user(part) for part in self._guest.queues[self._chosen.randrange(2)].parts]
        if self._chosen.random() < 0.5:
            parts[self._chosen.randrange(3)] = self._address()
        self._post(Request.SET_VRING_ADDR, vring_address(self._index(), *parts))

    def _address(self) -> int:
        region = self._chosen.choice(self._guest.memory.regions)
        near_the_end = user(region.end) - self._chosen.randrange(4096)
        return self._chosen.choice((user(region.start) + self._chosen.randrange(region.size), near_the_end, self._chosen.getrandbits(64)))

    def _base(self) -> None:
        self._post(
            Request.SET_VRING_BASE, vring_state(self._index(), self._chosen.choice((0, 1, 255, 65535, self._chosen.getrandbits(32))))
        )

    def _kick(self) -> None:
        self._with_file(Request.SET_VRING_KICK)

    def _call(self) -> None:
        self._with_file(Request.SET_VRING_CALL)

    def _half(self) -> None:
        """A message without its payload; what comes next is taken for that, or the switch has hung up."""
        self.said.append("half a message")
        self._guest.connection.post(Request.SET_FEATURES, size=8)

    def _waiting(self) -> None:
        """A call descriptor that is full, and waits, whatever the switch has made of it."""
        call = os.eventfd(0, os.EFD_NONBLOCK)
        self._files.append(call)
        self._post(Request.SET_VRING_CALL, u64(self._chosen.randrange(2)), (call,))
        if not self._spared:
            fill(call)
            os.set_blocking(call, True)

    def _with_file(self, request: Request) -> None:
        index = self._index() & 0xFF
        if self._chosen.random() < 0.2:
            self._post(request, u64(index | NO_FD))
        else:
            self._post(request, u64(index), tuple(self._file() for _ in range(self._chosen.choice((1, 1, 1, 1, 2, 8)))))

    def _file(self) -> int:
        """A descriptor of some kind; most often the usual one."""
        kind = self._chosen.randrange(8)
        if kind < 4:
            made = os.eventfd(0, os.EFD_NONBLOCK)
        elif kind == 4:
            made = os.eventfd(0)
            os.eventfd_write(made, 2**63)
        elif kind == 5:
            made = os.memfd_create("other")
        elif kind == 6:
            made, other = os.pipe()
            os.close(other)
        else:
            one, other = socket.socketpair()
            other.close()
            made = one.detach()
        self._files.append(made)
        return made

    def _enable(self) -> None:
        self._post(Request.SET_VRING_ENABLE, vring_state(self._index(), self._chosen.choice((0, 1, 1, 1, 2))))

    def _stop(self) -> None:
        self._post(Request.GET_VRING_BASE, vring_state(self._index(), 0))

    def _asked(self) -> None:
        self._post(self._chosen.choice((Request.GET_FEATURES, Request.GET_PROTOCOL_FEATURES, Request.GET_QUEUE_NUM, Request.SET_OWNER)))

    def _log(self) -> None:
        self._post(Request.SET_LOG_BASE, struct.pack("=QQ", self._chosen.getrandbits(20), 0), (self._file(),))

    def _anything(self) -> None:
        self._post(self._chosen.randrange(50), self._chosen.randbytes(self._chosen.randrange(80)))

    def _rings(self) -> None:
        """Into some part of some ring; indices above all, or nothing else would be looked at."""
        self.said.append("writes into a ring")
        parts = self._guest.queues[self._chosen.randrange(2)].parts
        at = self._chosen.choice(parts) + self._chosen.choice((0, 2, 4, 8, 12, 14, self._chosen.randrange(512)))
        self._guest.memory.write(
            at, self._chosen.choice((b"\0\0", b"\1\0", b"\xff\xff", self._chosen.randbytes(self._chosen.randrange(1, 32))))
        )

    def _frames(self) -> None:
        """Chains of some kind, by hand: what else lies in the ring is not known."""
        self.said.append("makes chains available")
        queue, memory = self._chosen.choice(self._guest.queues), self._guest.memory
        descriptors, available, _ = queue.parts
        count = self._chosen.randrange(1, 40)
        for number in range(count):
            flags = self._chosen.choice((0, 0, 0, 0, 1, 2, 2, 4, 5, 7))
            where = memory.regions[-1].start + self._chosen.randrange(memory.regions[-1].size)
            length = self._chosen.choice((0, 12, 64, 76, 76, 76, 1530, 4096, 65536, 2**32 - 1))
            memory.write(descriptors + 16 * number, struct.pack("=QIHH", where, length, flags, self._chosen.randrange(queue.size)))
            memory.write(available + 4 + 2 * number, struct.pack("=H", number))
        self._index_told = (self._index_told + count) & 0xFFFF
        memory.write(available + 2, struct.pack("=H", self._index_told))
        os.eventfd_write(queue.kick_fd, 1)
