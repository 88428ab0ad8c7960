# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest's side could say to harm its switch: messages of vhost-user that no front-end sends.

Each is a function of a guest that is up; its name says what it does. The back-end may hang up on any of them.
"""

import contextlib
import os
import random
import struct
import time

from frontend import Frontend
from guest_memory import user
from vhost_user import NEED_REPLY, NO_FD, Feature, Refused, Request, fill, memory_table, u64, vring_address, vring_state

NOWHERE = 0xDEAD_0000_0000
ROOM_S, WAITS_ENOUGH = 1e-3, 50
"""For how long the switch waits for room for an answer (ROOM_MOST_US of vhost.c), or the least of it; and how many such waits show it."""


def told(guest: Frontend, request: int, payload: bytes = b"", fds: tuple[int, ...] = (), **more: int) -> None:
    guest.connection.post(request, payload, fds, **more)


def unknown_request(guest):
    told(guest, 4711, u64(1))


def request_zero(guest):
    told(guest, 0)


def payload_of_4_gib(guest):
    told(guest, Request.SET_FEATURES, u64(0), size=2**32 - 1)


def payload_too_short(guest):
    told(guest, Request.SET_VRING_ADDR, b"\0" * 3)


def payload_too_long(guest):
    told(guest, Request.SET_VRING_NUM, bytes(4000))


def wrong_version(guest):
    guest.connection.sock.send(struct.pack("=III", Request.GET_FEATURES, 2, 0))


def garbage_instead(guest):
    guest.connection.sock.send(random.Random(7).randbytes(4096))


def features_not_offered(guest):
    told(guest, Request.SET_FEATURES, u64(2**64 - 1))


def no_regions(guest):
    told(guest, Request.SET_MEM_TABLE, memory_table([]))


def too_many_regions(guest):
    regions, files = guest.memory.table()
    told(guest, Request.SET_MEM_TABLE, struct.pack("=II", 2**31, 0) + memory_table(regions * 4)[8:], (files[0],) * 8)


def regions_without_files(guest):
    told(guest, Request.SET_MEM_TABLE, memory_table(guest.memory.table()[0]))


def region_of_size_zero(guest):
    told(guest, Request.SET_MEM_TABLE, memory_table([(0, 0, 0, 0)]), (guest.memory.regions[0].fd,))


def region_that_wraps(guest):
    told(guest, Request.SET_MEM_TABLE, memory_table([(2**64 - 4096, 8192, 2**64 - 4096, 2**64 - 4096)]), (guest.memory.regions[0].fd,))


def region_of_no_memory(guest):
    told(guest, Request.SET_MEM_TABLE, memory_table([(0, 4096, 0, 0)]), (guest.tx.kick_fd,))


def ring_of_size_zero(guest):
    told(guest, Request.SET_VRING_NUM, vring_state(1, 0))


def ring_of_odd_size(guest):
    told(guest, Request.SET_VRING_NUM, vring_state(1, 100))


def ring_of_65536(guest):
    told(guest, Request.SET_VRING_NUM, vring_state(1, 65536))


def ring_255(guest):
    told(guest, Request.SET_VRING_NUM, vring_state(255, 256))
    told(guest, Request.SET_VRING_ENABLE, vring_state(0xFFFF_FFFF, 1))


def ring_nowhere(guest):
    told(guest, Request.SET_VRING_ADDR, vring_address(1, NOWHERE, NOWHERE, NOWHERE))


def ring_past_the_end(guest):
    _, files = guest.memory.table()
    assert files
    end = guest.memory.table()[0][-1][2] + guest.memory.regions[-1].size
    told(guest, Request.SET_VRING_ADDR, vring_address(1, end - 64, end - 8, end - 16))


def _parts(guest, **elsewhere: int) -> bytes:
    """Where the ring from the guest is, but for those parts that are told."""
    usual = dict(zip(("descriptors", "available", "used"), (user(part) for part in guest.tx.parts), strict=True))
    return vring_address(1, *(usual | elsewhere).values())


def _end(guest) -> int:
    """Of the first region, where the rings are."""
    _, size, start, _ = guest.memory.table()[0][0]
    return start + size


def used_ring_past_the_end(guest):
    told(guest, Request.SET_VRING_ADDR, _parts(guest, used=_end(guest) - 64))


def available_ring_past_the_end(guest):
    told(guest, Request.SET_VRING_ADDR, _parts(guest, available=_end(guest) - 64))


def used_ring_grown_past_the_end(guest):
    """There was room for it, when its addresses were told."""
    told(guest, Request.GET_VRING_BASE, vring_state(1, 0))
    told(guest, Request.SET_VRING_NUM, vring_state(1, 2))
    told(guest, Request.SET_VRING_ADDR, _parts(guest, used=_end(guest) - 64))
    told(guest, Request.SET_VRING_KICK, u64(1), (guest.tx.kick_fd,))
    told(guest, Request.SET_VRING_NUM, vring_state(1, 32768))
    told(guest, Request.SET_VRING_CALL, u64(1), (guest.tx.call_fd,))


def running_ring_grown(guest):
    told(guest, Request.SET_VRING_NUM, vring_state(1, 32768))
    told(guest, Request.SET_VRING_CALL, u64(1), (guest.tx.call_fd,))


def call_after_a_refused_memory_table(guest):
    """An answer is asked for, so that the back-end does not hang up."""
    told(guest, Request.SET_MEM_TABLE, memory_table([(0, 4096, 0, 0)]), (guest.tx.kick_fd,), flags=NEED_REPLY)
    told(guest, Request.SET_VRING_CALL, u64(1), (guest.tx.call_fd,))
    told(guest, Request.SET_VRING_KICK, u64(1), (guest.tx.kick_fd,))


def features_changed_while_it_runs(guest):
    told(guest, Request.SET_FEATURES, u64(guest.features & ~(1 << Feature.MRG_RXBUF)), flags=NEED_REPLY)
    told(guest, Request.SET_FEATURES, u64(guest.features | 1 << Feature.EVENT_IDX), flags=NEED_REPLY)


def _wants_interrupts(guest) -> None:
    for queue in (guest.rx, guest.tx):
        queue.want_calls(True)


def call_that_is_full_and_waits(guest):
    _wants_interrupts(guest)
    call = os.eventfd(0, 0)
    os.eventfd_write(call, 2**64 - 2)
    for ring in (0, 1):
        told(guest, Request.SET_VRING_CALL, u64(ring), (call,))
    os.close(call)


def call_that_is_a_full_pipe(guest):
    _wants_interrupts(guest)
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, bytes(4096))
    os.set_blocking(write, True)
    for ring in (0, 1):
        told(guest, Request.SET_VRING_CALL, u64(ring), (write,))
    # The pipe stays: with nobody to read, a write would fail instead of wait.
    guest.pipe = (read, write)


def call_that_waits_again(guest):
    """O_NONBLOCK, which the switch sets, is of the file and not of the descriptor: who gave it can take it away again."""
    _wants_interrupts(guest)
    # Acknowledged: the switch has set it.
    for queue in (guest.rx, guest.tx):
        guest.connection.set(Request.SET_VRING_CALL, u64(queue.index), [queue.call_fd])
    for queue in (guest.rx, guest.tx):
        fill(queue.call_fd)
        os.set_blocking(queue.call_fd, True)


def half_a_message(guest):
    told(guest, Request.SET_FEATURES, b"", size=8)


def answers_that_nobody_reads(guest):
    """A socket has room for some hundreds. After those the switch waits for room for each, and we for it; hundreds more lie in our socket
    when we stop, and keep it waiting for seconds."""
    guest.connection.sock.settimeout(0.5)
    waits = 0
    with contextlib.suppress(Refused):
        for _ in range(3000):
            begun = time.monotonic()
            told(guest, Request.GET_FEATURES)
            waits += time.monotonic() - begun > ROOM_S
            if waits == WAITS_ENOUGH:
                break


def ring_at_odd_addresses(guest):
    start = guest.memory.table()[0][0][2]
    told(guest, Request.SET_VRING_ADDR, vring_address(1, start + 1, start + 4097, start + 8195))


def kick_without_a_file(guest):
    told(guest, Request.SET_VRING_KICK, u64(1))


def kick_that_is_no_eventfd(guest):
    told(guest, Request.SET_VRING_KICK, u64(1), (guest.memory.regions[0].fd,))
    told(guest, Request.SET_VRING_CALL, u64(0), (guest.memory.regions[0].fd,))


def kick_of_ring_255(guest):
    told(guest, Request.SET_VRING_KICK, u64(255 | NO_FD))
    told(guest, Request.SET_VRING_CALL, u64(200), (guest.tx.call_fd,))


def base_far_off(guest):
    told(guest, Request.SET_VRING_BASE, vring_state(1, 0x7FFF))
    told(guest, Request.SET_VRING_BASE, vring_state(0, 0xFFFF_FFFF))


def files_that_nobody_asked_for(guest):
    told(guest, Request.GET_FEATURES, b"", (guest.tx.call_fd,) * 8)


def log_of_no_size(guest):
    told(guest, Request.SET_LOG_BASE, struct.pack("=QQ", 0, 0), (guest.memory.regions[0].fd,))


def log_that_wraps(guest):
    told(guest, Request.SET_LOG_BASE, struct.pack("=QQ", 2**64 - 1, 4096), (guest.memory.regions[0].fd,))


def stopped_twice(guest):
    for queue in (guest.tx, guest.tx, guest.rx, guest.rx):
        told(guest, Request.GET_VRING_BASE, vring_state(queue.index, 0))


def enabled_and_disabled(guest):
    for number in range(200):
        told(guest, Request.SET_VRING_ENABLE, vring_state(number // 2 % 2, number % 2))


def owner_reset(guest):
    told(guest, 4)
    told(guest, Request.SET_OWNER)


def memory_again_and_again(guest):
    regions, files = guest.memory.table()
    for _ in range(30):
        told(guest, Request.SET_MEM_TABLE, memory_table(regions), tuple(files))


WAITS = (half_a_message, answers_that_nobody_reads)
"""What would have the switch wait for the front-end."""
MESSAGES = (
    *WAITS,
    unknown_request, request_zero, payload_of_4_gib, payload_too_short, payload_too_long, wrong_version, garbage_instead, features_not_offered,
    no_regions, too_many_regions, regions_without_files, region_of_size_zero, region_that_wraps, region_of_no_memory, ring_of_size_zero,
    ring_of_odd_size, ring_of_65536, ring_255, ring_nowhere, ring_past_the_end, ring_at_odd_addresses, kick_without_a_file,
    kick_that_is_no_eventfd, kick_of_ring_255, base_far_off, files_that_nobody_asked_for, log_of_no_size, log_that_wraps, stopped_twice,
    enabled_and_disabled, owner_reset, memory_again_and_again, used_ring_past_the_end, available_ring_past_the_end,
    used_ring_grown_past_the_end, running_ring_grown, call_after_a_refused_memory_table, features_changed_while_it_runs,
    call_that_is_full_and_waits, call_that_is_a_full_pipe,
)  # fmt: skip
