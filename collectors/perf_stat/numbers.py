# SPDX-License-Identifier: GPL-2.0-or-later
"""From what was recorded of a window to numbers: each event by CPU, kept only if its counter is to be trusted."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from vsprof.collectors.base import Recorded
from vsprof.collectors.events import probe
from vsprof.collectors.events.probe import Count
from vsprof.collectors.perf_stat import messages
from vsprof.terms.placement import Placement
from vsprof.terms.schema import Number

UNREADABLE = (LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading a recording raises, beside ``ValueError``, if it is not ours."""
SCALES = {"msec": (1e-3, "seconds")}
"""perf's unit of the kernel's clocks, as the schema has it."""
_MODIFIER = re.compile(r":[a-zA-Z]+$")


@dataclass(frozen=True)
class Header:
    """What was to be counted in a window: recorded at its begin, so that its numbers can be computed from the recording alone."""

    window: int
    windows: int
    rounds: int
    """Of which this window counts one: number ``(window - 1) % rounds``."""
    mode: str
    events: list[str] = field(default_factory=list)
    """In the order in which perf was given them."""
    software: list[str] = field(default_factory=list)
    """Those of ``events`` and of the rest that the kernel counts by itself."""
    distrust: str = ""
    """Why no hardware value is to be kept, or nothing."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Events that are counted in no window, each with its reason; said once a traffic."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def of(recorded: Recorded) -> Iterable[Number]:
    """All numbers of a window. Raises ``ValueError`` when its begin is not what the collector writes."""
    try:
        header = _header(json.loads(recorded.begin.partition("\n")[0]))
    except UNREADABLE as error:
        raise ValueError(f"not what perf_stat writes at a window's begin: {error!r}") from error
    yield from _counted(header, recorded.end, recorded.placement)
    for name, why in header.left_out.items():
        yield _empty(header, name, why)


def _header(data: Mapping[str, Any]) -> Header:
    header = Header(**data)
    texts = [header.mode, header.distrust, *header.events, *header.software, *header.left_out, *header.left_out.values()]
    if header.mode not in ("user", "kernel", "guest", "all") or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"mode {header.mode!r}")
    return header


def _counted(header: Header, text: str, placement: Placement) -> Iterable[Number]:
    if not header.events:
        return
    try:
        counts = _by_event(probe.read(text), header.events)
    except ValueError as error:
        # Somebody else's words must not cost the run its other numbers.
        counts, why = {}, messages.perf_unreadable(" ".join(str(error).split())[:200])
    else:
        why = messages.perf_silent()
    for name in header.events:
        if name not in counts:
            yield _empty(header, name, why)
        for one in counts.get(name, ()):
            yield _number(header, name, one, placement)


def _by_event(counts: Sequence[Count], events: Sequence[str]) -> dict[str, list[Count]]:
    """perf prints one event after another, each on all its CPUs: by this order, for names come out in more than one form."""
    cpus, rest = divmod(len(counts), len(events))
    if rest:
        raise ValueError(messages.unexpected_counts(len(counts), len(events)))
    blocks = {name: list(counts[place * cpus : (place + 1) * cpus]) for place, name in enumerate(events)} if cpus else {}
    printed = {name: {_MODIFIER.sub("", one.event).casefold() for one in block} for name, block in blocks.items()}
    own = {name.casefold() for name in events if name.casefold() in printed.get(name, ())}
    known = {name.casefold() for name in events}
    for name, seen in printed.items():
        # Two names may stand for one thing, which perf prints by one name; but that name must also be in its own place.
        if wrong := (seen & known) - own:
            raise ValueError(messages.another_event(name, wrong.pop()))
        if [one.cpu for one in blocks[name]] != [one.cpu for one in blocks[events[0]]] or blocks[name][0].cpu is None:
            raise ValueError(messages.unexpected_counts(len(counts), len(events)))
    return blocks


def _number(header: Header, name: str, one: Count, placement: Placement) -> Number:
    software = name in header.software
    scale, unit = SCALES.get(one.unit, (1.0, "events"))
    why = _distrust(one) or ("" if software else header.distrust)
    value = None if why or one.value is None else one.value * scale
    enabled_s = one.running_s * 100 / one.percent if one.running_s is not None and one.percent > 0 else None
    role = None if one.cpu is None else placement.role_of_cpu(one.cpu)
    mode = "all" if software else header.mode
    return Number(name, value, unit, role, one.cpu, mode, enabled_s, one.running_s, why, source="software" if software else None)


def _distrust(one: Count) -> str:
    """Why a value is not to be believed. perf says "100 % running" of a counter that never ran: its time tells."""
    if one.value is None:
        return messages.never_ran() if one.state == probe.NOT_COUNTED else messages.not_counted(one.state)
    # perf scales a value up that was counted for a part of the time, as if the rest had been alike.
    return messages.multiplexed(one.percent) if one.percent < 100 else ""


def _empty(header: Header, name: str, why: str) -> Number:
    software = name in header.software
    return Number(name, None, "events", mode="all" if software else header.mode, note=why, source="software" if software else None)
