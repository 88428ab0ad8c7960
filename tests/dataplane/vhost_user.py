# SPDX-License-Identifier: GPL-2.0-or-later
"""The messages of the vhost-user protocol, as its front-end (the guest's side) sends them over a Unix socket.

Numbers and layouts are those of QEMU's docs/interop/vhost-user.rst and of virtio 1.2 (feature bits).
"""

import contextlib
import os
import socket
import struct
from collections.abc import Sequence
from enum import IntEnum

HEADER = struct.Struct("=III")
"""Request, flags, size of the payload in bytes."""
VERSION, REPLY, NEED_REPLY = 1, 4, 8
NO_FD = 0x100
"""In the payload of SET_VRING_KICK and SET_VRING_CALL: no eventfd comes with it, the ring is polled."""
SECONDS = 5.0
"""How long a reply may take."""
MOST_REGIONS = 8


class Request(IntEnum):
    GET_FEATURES = 1
    SET_FEATURES = 2
    SET_OWNER = 3
    SET_MEM_TABLE = 5
    SET_LOG_BASE = 6
    SET_VRING_NUM = 8
    SET_VRING_ADDR = 9
    SET_VRING_BASE = 10
    GET_VRING_BASE = 11
    SET_VRING_KICK = 12
    SET_VRING_CALL = 13
    GET_PROTOCOL_FEATURES = 15
    SET_PROTOCOL_FEATURES = 16
    GET_QUEUE_NUM = 17
    SET_VRING_ENABLE = 18


class Feature(IntEnum):
    """Bits that the two sides negotiate."""

    CSUM = 0
    GUEST_CSUM = 1
    HOST_TSO4 = 11
    MRG_RXBUF = 15
    MQ = 22
    INDIRECT_DESC = 28
    EVENT_IDX = 29
    PROTOCOL_FEATURES = 30
    VERSION_1 = 32
    RING_PACKED = 34
    IN_ORDER = 35
    SPEED_DUPLEX = 63


class ProtocolFeature(IntEnum):
    MQ = 0
    REPLY_ACK = 3


def mask(bits: Sequence[int]) -> int:
    return sum(1 << bit for bit in set(bits))


class Refused(Exception):
    """The back-end did not take a message: it said so, hung up, or kept silent."""


class Connection:
    """One end of the socket; every request that may be acknowledged is, once both sides have agreed to that."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.acknowledged = False
        sock.settimeout(SECONDS)

    def get(self, request: Request, payload: bytes = b"") -> bytes:
        """Send a request that has an answer, and return the answer's payload. Raises ``Refused``."""
        self.post(request, payload)
        return self.reply(request)

    def get_u64(self, request: Request) -> int:
        return int(struct.unpack("=Q", self.get(request))[0])

    def set(self, request: Request, payload: bytes = b"", fds: Sequence[int] = ()) -> None:
        """Send a request that has no answer of its own. Raises ``Refused`` if the back-end says that it failed."""
        self.post(request, payload, fds, NEED_REPLY if self.acknowledged else 0)
        if self.acknowledged and (status := struct.unpack("=Q", self.reply(request))[0]):
            raise Refused(f"{request.name}: the back-end answered {status}")

    def post(self, request: int, payload: bytes = b"", fds: Sequence[int] = (), flags: int = 0, size: int | None = None) -> None:
        """Send it and wait for nothing. ``size``: what the header says instead of the payload's true length."""
        message = HEADER.pack(request, VERSION | flags, len(payload) if size is None else size) + payload
        try:
            socket.send_fds(self.sock, [message], list(fds))
        except OSError as error:
            raise Refused(f"request {request}: {error}") from error

    def reply(self, request: int) -> bytes:
        """The payload of the answer to ``request``. Raises ``Refused``."""
        answered, flags, size = HEADER.unpack(self._read(HEADER.size, request))
        payload = self._read(size, request)
        if answered != request or not flags & REPLY:
            raise Refused(f"request {request}: the answer is one to {answered}, flags {flags:#x}")
        return payload

    def open(self) -> bool:
        """Whether the back-end still listens: false as soon as it has hung up."""
        try:
            return self.sock.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.close()

    def _read(self, size: int, request: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                data += (part := self.sock.recv(size - len(data)))
            except OSError as error:
                raise Refused(f"request {request}: no answer: {error or type(error).__name__}") from error
            if not part:
                raise Refused(f"request {request}: the back-end hung up")
        return data


def u64(value: int) -> bytes:
    return struct.pack("=Q", value)


def vring_state(index: int, number: int) -> bytes:
    """Of SET_VRING_NUM, SET_VRING_BASE, SET_VRING_ENABLE and GET_VRING_BASE."""
    return struct.pack("=II", index, number)


def vring_address(index: int, descriptors: int, available: int, used: int) -> bytes:
    """Where a ring's three parts are, in the front-end's own (user) addresses; no log of writes."""
    return struct.pack("=IIQQQQ", index, 0, descriptors, used, available, 0)


def memory_table(regions: Sequence[tuple[int, int, int, int]]) -> bytes:
    """Of SET_MEM_TABLE; a region is its guest physical address, size, user address, and offset in its file."""
    return struct.pack("=II", len(regions), 0) + b"".join(struct.pack("=QQQQ", *region) for region in regions)


def drain(eventfd: int) -> int:
    """How often an eventfd was signalled since it was last read."""
    try:
        return os.eventfd_read(eventfd)
    except BlockingIOError:
        return 0


def fill(eventfd: int) -> None:
    """Up to the last number: one more would have to wait, or be refused."""
    drain(eventfd)
    os.eventfd_write(eventfd, 2**64 - 2)
