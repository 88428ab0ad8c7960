# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames that can be told apart, and guests that exchange them."""

import struct
import threading
import time
from collections.abc import Sequence
from itertools import count
from typing import Self

from frontend import PLAIN, SECONDS, Frontend, Layout, eventually

BROADCAST = b"\xff" * 6
KIND = 0x88B5
"""EtherType for local experiments (IEEE 802): the kernel sends nothing of that kind by itself."""
HEAD = struct.Struct(">6s6sHI")
_numbers = count(1)


def mac(number: int) -> bytes:
    """A unicast address, locally administered."""
    return b"\x52\x54\0\0" + struct.pack(">H", number)


def frame(source: bytes, target: bytes, size: int = 60) -> bytes:
    """``size`` bytes without FCS; no two are the same, and no two bytes in a row."""
    number = next(_numbers)
    head = HEAD.pack(target, source, KIND, number & 0xFFFFFFFF)
    return (head + bytes((number + at) & 0xFF for at in range(size - len(head))))[:size]


def frames(number: int, source: bytes, target: bytes, size: int = 60) -> list[bytes]:
    return [frame(source, target, size) for _ in range(number)]


def same(got: Sequence[bytes], sent: Sequence[bytes], who: str = "the receiver") -> None:
    """Raises ``AssertionError``, in few words, unless these are the same frames in the same order."""
    if list(got) == list(sent):
        return
    assert len(got) == len(sent), f"{who} got {len(got)} frames of {len(sent)}: {_brief(got)}; sent were {_brief(sent)}"
    where = next(at for at, (one, other) in enumerate(zip(got, sent, strict=True)) if one != other)
    one, other = got[where], sent[where]
    byte = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other)))
    raise AssertionError(
        f"{who}: frame {where} of {len(sent)} is {len(one)} bytes, sent {len(other)}; byte {byte} is the first that differs"
    )


def exchange(sender: Frontend, receiver: Frontend, sent: Sequence[bytes], layout: Layout = PLAIN, *, seconds: float = SECONDS) -> None:
    """All come, as they were sent, and nothing else; every descriptor comes back."""
    sender.send_all(sent, layout, seconds=seconds)
    same(receiver.receive(len(sent), seconds), sent)
    sender.all_back(seconds)
    same(receiver.received(), [])


def silent(guest: Frontend, seconds: float = 0.05, who: str = "a guest that should get nothing") -> None:
    same(guest.receive(1, seconds), [], who)


def introduce(guest: Frontend, number: int, others: Sequence[Frontend]) -> bytes:
    """Let the switch learn where address ``number`` is, by a frame to everybody; return the address."""
    hello = frame(mac(number), BROADCAST)
    guest.send_all([hello])
    for other in others:
        same(other.receive(1), [hello])
    guest.all_back()
    return mac(number)


def quiet(*guests: Frontend, seconds: float = 0.01) -> None:
    """Take what still arrives, until nothing does for a while. Raises ``AssertionError`` if it never ends."""
    eventually(lambda: not [one for guest in guests for one in guest.receive(1, seconds)], "the last of the frames")


class Load:
    """Frames from one guest to another, in bursts, as long as the block runs, by a thread of its own.

    The guests' rings are the thread's alone meanwhile.
    """

    def __init__(self, sender: Frontend, receiver: Frontend | None, frames: Sequence[bytes]) -> None:
        self._sender, self._receiver, self._frames = sender, receiver, frames
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None
        self.sent = self.received = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the load did not end"
        if self._error is not None and error[0] is None:
            raise self._error

    def flows(self, seconds: float = SECONDS) -> None:
        """Wait until another frame has arrived. Raises ``AssertionError`` if none does."""
        before, end = self.received, time.monotonic() + seconds
        while self.received <= before:
            assert time.monotonic() < end, f"no frame arrived in {seconds} s; {self.sent} sent and {self.received} received before"
            time.sleep(0.001)

    def _run(self) -> None:
        try:
            while not self._end.is_set():
                self.sent += self._sender.send(self._frames)
                new = self._receiver.received() if self._receiver else []
                # Others may talk to the receiver as well.
                ours = [one for one in new if one[6:12] == self._frames[0][6:12]]
                assert all(one in self._frames for one in ours), "a frame arrived that was not sent"
                self.received += len(ours)
                # Else this thread would keep Python to itself.
                time.sleep(0.0003)
        except BaseException as error:
            self._error = error


def _brief(some: Sequence[bytes]) -> str:
    return ", ".join(f"{len(one)} B #{HEAD.unpack_from(one)[3] if len(one) >= HEAD.size else '?'}" for one in some[:8]) or "none"
