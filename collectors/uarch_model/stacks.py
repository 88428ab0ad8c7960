# SPDX-License-Identifier: GPL-2.0-or-later
"""Call stacks of the modelled processor's events: from the plug-in's return addresses to functions, while the host's programs are at hand;
and from what was kept of that to folded stacks.

The plug-in pairs calls with returns (calls.h). A stack begins with the outermost call that it saw: what a thread called before the model
ran, and has not come back from since, is not in it.
"""

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vsprof.collectors.base import Recorded
from vsprof.collectors.perf_text import thread_name
from vsprof.collectors.uarch_model import functions, numbers
from vsprof.collectors.uarch_model.processes import Processes
from vsprof.collectors.uarch_model.spots import KINDS, Spots, looked_up
from vsprof.collectors.uarch_model.symbols import KERNEL_HALF, MODES, Symbols, whose
from vsprof.terms.placement import Placement
from vsprof.terms.schema import StackCount

MOST_STACKS = 200
"""Kept of each core: so many with most samples, and with most misses of each kind. The rest of a thread is one sum."""
RARER = "(rarer stacks)"
SAMPLES, *MISSES = KINDS
_Key = tuple[int, str, int]
"""Thread, mode, and the number of a stack in words."""


class Stacks:
    """Stacks in words, each with a number: one more frame on another stack, whose number is below its own. 0: no frame."""

    def __init__(self) -> None:
        self.frames: dict[str, int] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._known: list[tuple[int, int]] = [(0, 0)]

    def on(self, stack: int, frame: str) -> int:
        key = stack, self.frames.setdefault(frame, len(self.frames))
        if (number := self._numbers.get(key)) is None:
            number = self._numbers[key] = len(self._known)
            self._known.append(key)
        return number

    def of(self, stack: int) -> list[int]:
        """Its frames, from the outermost in, by their numbers in ``frames``."""
        found = []
        while stack:
            stack, frame = self._known[stack]
            found.append(frame)
        return found[::-1]


class Addresses:
    """What addresses mean to the threads of a host."""

    def __init__(self, found: Symbols, processes: Processes) -> None:
        self._found, self._processes = found, processes
        self._known: dict[tuple[int, int, bool], str] = {}

    def frame(self, address: int, process: int, guest: bool) -> str:
        key = address, process, guest
        if (known := self._known.get(key)) is None:
            mode = f"{'guest' if guest else 'host'}_{'kernel' if address >= KERNEL_HALF else 'user'}"
            where, function = self._found.name(address, mode, process, self._processes)
            known = self._known[key] = _frame(where, function, in_kernel=mode == "host_kernel")
        return known


def named(found: Symbols, cores: Sequence[Spots], processes: Processes) -> dict[str, Any]:
    """The stacks of a window's cores in words: ``frames``, and ``stacks`` with their places in these and what was counted there."""
    addresses, words, stacks = Addresses(found, processes), Stacks(), []
    places: dict[int, int] = {}
    for index, spots in enumerate(cores):
        sums = _sums(spots, addresses, processes, words)
        for (thread, mode, stack), counts in _kept(sums, words).items():
            kept = {kind: count for kind, count in zip(KINDS, counts, strict=True) if count}
            frames = [places.setdefault(frame, len(places)) for frame in words.of(stack)]
            stacks.append({"core": index, "thread": thread, "mode": mode, "frames": frames, **kept})
    all_frames = list(words.frames)
    return {"frames": [all_frames[frame] for frame in places], "stacks": stacks}


def _sums(spots: Spots, addresses: Addresses, processes: Processes, words: Stacks) -> dict[_Key, list[int]]:
    stack_of: dict[tuple[int, int, bool], int] = {}

    def stack(node: int, process: int, guest: bool) -> int:
        if not node:
            return 0
        if (known := stack_of.get((node, process, guest))) is None:
            below, back = spots.callers[node]
            # The call is before the place that it returns to, which may be another function's begin.
            known = words.on(stack(below, process, guest), addresses.frame(back - 1, process, guest))
            stack_of[node, process, guest] = known
        return known

    owners, owner_of = looked_up(processes.of_thread, spots.threads)
    guests = np.array([mode.startswith("guest") for mode in MODES])[spots.modes]
    frames, frame_of = looked_up(addresses.frame, spots.addresses, whose(spots, processes), guests)
    stacks, stack_place = looked_up(stack, spots.stacks, np.array(owners, np.int64)[owner_of], guests)
    first, rows = spots.summed(spots.threads, spots.modes, stack_place, frame_of)
    found = (words.on(stacks[stack_place[place]], frames[frame_of[place]]) for place in first)
    keys = ((int(spots.threads[place]), MODES[spots.modes[place]], stack) for place, stack in zip(first, found, strict=True))
    return dict(zip(keys, rows, strict=True))


def _frame(where: str, function: str, *, in_kernel: bool) -> str:
    return f"{function} ({f'[{where}]' if in_kernel else where})".replace(";", ":")


def _kept(sums: Mapping[_Key, list[int]], words: Stacks) -> dict[_Key, list[int]]:
    """Those with most of any kind; of the others one sum a thread and mode."""
    best: dict[_Key, list[int]] = {}
    rarer = words.on(0, RARER)
    for kind in range(len(KINDS)):
        most = heapq.nlargest(MOST_STACKS, sums.items(), key=lambda item: item[1][kind])
        best.update((key, counts) for key, counts in most if counts[kind])
    for (thread, mode, stack), counts in sums.items():
        if (thread, mode, stack) not in best:
            rest = best.setdefault((thread, mode, rarer), [0] * len(KINDS))
            for kind, count in enumerate(counts):
                rest[kind] += count
    return best


def of(recorded: Recorded) -> Iterable[StackCount]:
    """All counts of a window but zeros; none of a window whose stacks were not kept. Raises ``ValueError`` as ``functions.of``."""
    try:
        return list(_stacks(json.loads(recorded.begin + recorded.end), recorded.placement))
    except numbers.UNREADABLE as error:
        raise ValueError(f"not what the processor model writes: {error!r}") from error


def _stacks(data: Mapping[str, Any], placement: Placement) -> Iterable[StackCount]:
    if numbers.distrust(data["status"]) or "stacks" not in data:
        return
    cores, frames = data["window"]["cores"], data["stacks"]["frames"]
    sums: Counter[tuple[str, str, str, int, str]] = Counter()
    for found in data["stacks"]["stacks"]:
        core = cores[found["core"]]
        mode, _ = numbers.MODES[found["mode"]]
        role = functions.role(core, found["thread"], placement, found["core"])
        stack = ";".join([_thread(core, found["thread"]), *(str(frames[place]) for place in found["frames"])])
        where = stack, role, int(found["core"]), mode
        sums["instructions", *where] += float(found.get(SAMPLES, 0)) * float(core["sample_every"])
        for kind in MISSES:
            sums[kind, *where] += float(found.get(kind, 0))
    for (name, stack, role, cpu, mode), value in sums.items():
        if value:
            yield StackCount(name, value, "events", stack, role, cpu, mode)


def _thread(core: Mapping[str, Any], thread: int) -> str:
    return thread_name(str(next((task["name"] for task in core["tasks"] if task["id"] == thread), "")) or "(unknown)")
