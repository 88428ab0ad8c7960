# SPDX-License-Identifier: GPL-2.0-or-later
"""Call stacks of the modelled processor's events: from the plug-in's return addresses to functions, while the host's programs are at hand;
and from what was kept of that to folded stacks.

The plug-in pairs calls with returns (calls.h). A stack begins with the outermost call that it saw: what a thread called before the model
ran, and has not come back from since, is not in it.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from vsprof.collectors.base import Recorded
from vsprof.collectors.perf_text import thread_name
from vsprof.collectors.uarch_model import functions, numbers, symbols
from vsprof.collectors.uarch_model.symbols import KERNEL_HALF, KINDS, MODES, Symbols
from vsprof.terms.placement import Placement
from vsprof.terms.schema import StackCount

MOST_STACKS = 200
"""Kept of each core: so many with most samples, and with most misses of each kind. The rest of a thread is one sum."""
RARER = "(rarer stacks)"
SAMPLES, *MISSES = KINDS
_Key = tuple[int, str, tuple[str, ...]]
"""Thread, mode, frames from the outermost in."""


def named(found: Symbols, window: Mapping[str, Any], processes: str) -> dict[str, Any]:
    """The stacks of a window in words: ``frames``, and ``stacks`` with their places in these and what was counted there."""
    maps, process_of = symbols.read_processes(processes)
    everywhere = list(itertools.chain.from_iterable(maps.values()))
    frames: dict[str, int] = {}
    stacks = []
    for index, core in enumerate(window["cores"]):
        nodes = [(0, 0), *((parent, int(back, 16)) for parent, back in core["hot"].get("stacks", []))]

        @functools.cache
        def name(address: int, thread: int, guest: bool) -> str:
            mode = f"{'guest' if guest else 'host'}_{'kernel' if address >= KERNEL_HALF else 'user'}"
            where, function = found.name(address, mode, itertools.chain(maps.get(process_of.get(thread, -1), []), everywhere))
            return _frame(where, function, in_kernel=mode == "host_kernel")

        @functools.cache
        def path(node: int, thread: int, guest: bool, nodes: list[tuple[int, int]] = nodes) -> tuple[str, ...]:
            parent, back = nodes[node]
            # The call is before the place that it returns to, which may be another function's begin.
            return (*path(parent, thread, guest), name(back - 1, thread, guest)) if node else ()

        sums: dict[_Key, list[int]] = defaultdict(lambda: [0] * len(KINDS))
        for address, thread, mode, *counts, node in core["hot"]["spots"]:
            guest = MODES[mode].startswith("guest")
            row = sums[thread, MODES[mode], (*path(node, thread, guest), name(int(address, 16), thread, guest))]
            for kind, count in enumerate(counts):
                row[kind] += count
        for (thread, mode, stack), counts in _kept(sums).items():
            kept = {kind: count for kind, count in zip(KINDS, counts, strict=True) if count}
            places = [frames.setdefault(frame, len(frames)) for frame in stack]
            stacks.append({"core": index, "thread": thread, "mode": mode, "frames": places, **kept})
    return {"frames": list(frames), "stacks": stacks}


def _frame(where: str, function: str, *, in_kernel: bool) -> str:
    return f"{function} ({f'[{where}]' if in_kernel else where})".replace(";", ":")


def _kept(sums: Mapping[_Key, list[int]]) -> dict[_Key, list[int]]:
    """Those with most of any kind; of the others one sum a thread and mode."""
    best: dict[_Key, list[int]] = {}
    for kind in range(len(KINDS)):
        most = heapq.nlargest(MOST_STACKS, sums.items(), key=lambda item: item[1][kind])
        best.update((key, counts) for key, counts in most if counts[kind])
    for (thread, mode, stack), counts in sums.items():
        if (thread, mode, stack) not in best:
            rest = best.setdefault((thread, mode, (RARER,)), [0] * len(KINDS))
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
