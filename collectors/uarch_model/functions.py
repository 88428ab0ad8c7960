# SPDX-License-Identifier: GPL-2.0-or-later
"""From what the plug-in wrote to a flat profile: instructions and misses by role, CPU, mode and function.

Misses were all counted. Instructions were sampled, one in so many: what stands for them is an estimate.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from vsprof.collectors.base import Recorded
from vsprof.collectors.uarch_model import numbers, spots
from vsprof.terms.placement import Placement
from vsprof.terms.schema import FunctionCount

SAMPLES, *MISSES = spots.KINDS


def of(recorded: Recorded) -> Iterable[FunctionCount]:
    """All counts of a window but zeros. Raises ``ValueError`` when it is not what the plug-in writes."""
    try:
        return list(_functions(json.loads(recorded.begin + recorded.end), recorded.placement))
    except numbers.UNREADABLE as error:
        raise ValueError(f"not what the processor model writes: {error!r}") from error


def _functions(data: Mapping[str, Any], placement: Placement) -> Iterable[FunctionCount]:
    if numbers.distrust(data["status"]):
        return
    cores = data["window"]["cores"]
    # Threads of one role are one; so are a guest's kernel and its programs, which the object tells apart.
    sums: dict[tuple[str, int, str, str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for found in data["functions"]:
        core = cores[found["core"]]
        mode, _ = numbers.MODES[found["mode"]]
        into = sums[role(core, found["thread"], placement, found["core"]), found["core"], mode, found["object"], found["function"]]
        into["instructions"] += float(found.get(SAMPLES, 0)) * float(core["sample_every"])
        for kind in MISSES:
            into[kind] += float(found.get(kind, 0))
    for (its_role, cpu, mode, where, function), counts in sums.items():
        for name, value in counts.items():
            if value:
                yield FunctionCount(name, value, "events", where, function, its_role, cpu, mode)


def role(core: Mapping[str, Any], thread: int, placement: Placement, cpu: int) -> str:
    """That of a thread which ran on a core."""
    task = next((task for task in core["tasks"] if task["id"] == thread), {"id": thread, "name": ""})
    return numbers.role_of(task, placement, cpu)
