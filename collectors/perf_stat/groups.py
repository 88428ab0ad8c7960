# SPDX-License-Identifier: GPL-2.0-or-later
"""Which events are counted together, and in which window.

A *group* is counted all at the same time. It has cycles and instructions (its *anchors*, by which anything else in it can be
divided) and as many more events as the preflight found room for. A *round* is what one window counts: a group, in one mode. Window
n counts round (n - 1) mod rounds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vsprof.collectors.events.entries import Event

SPLIT = {"user": "uH", "kernel": "kH", "guest": "G"}
"""The modes that can be distinguished, and perf's modifiers for them."""
WHOLE = {"all": "HG"}
"""All at once. ``H`` and ``G`` are said outright, for perf changed in 6.13 what an event without them counts of guests."""
MODIFIERS = {**SPLIT, **WHOLE}
APART = ("NO_GROUP_EVENTS",)
"""MetricConstraint of a metric whose events are not to be in one group; so is this one, where the NMI watchdog has a counter:"""
APART_BESIDE_WATCHDOG = ("NO_GROUP_EVENTS_NMI", "NO_THRESHOLD_AND_NMI")
Group = tuple[str, ...]
"""Names of events, the anchors first."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one window counts."""

    mode: str
    events: Group


def together(needs: Iterable[str], constraint: str, watchdog: bool) -> list[Group]:
    """The events of one metric as it wants them counted: in one group, or where its constraint says so each by itself."""
    names = tuple(needs)
    apart = constraint in APART or (watchdog and constraint in APART_BESIDE_WATCHDOG)
    return [(name,) for name in names] if apart else [names]


def pack(wanted: Sequence[Group], anchors: Group, room: int, events: Mapping[str, Event]) -> list[Group]:
    """Groups that hold each of ``wanted`` whole where it fits, in the order of what was wanted first.

    ``room``: how many events a group can have beside its anchors; at least 1.
    """
    sets = list(dict.fromkeys(tuple(name for name in one if name not in anchors) for one in wanted))
    large = [part for one in sets for part in ([one] if len(one) <= room else [(name,) for name in one])]
    groups: list[list[str]] = []
    # The largest first: what needs one of their events only then finds it there.
    for names in sorted(filter(None, large), key=len, reverse=True):
        into = _best(groups, names, room, events)
        if into is None:
            groups.append(list(names))
        else:
            into += [name for name in names if name not in into]
    place = {name: number for number, name in enumerate(dict.fromkeys(name for one in wanted for name in one))}
    ordered = sorted((sorted(one, key=place.__getitem__) for one in groups), key=lambda one: place[one[0]])
    return [(*anchors, *one) for one in ordered] or ([anchors] if anchors else [])


def _best(groups: Iterable[list[str]], names: Group, room: int, events: Mapping[str, Event]) -> list[str] | None:
    """The group that has most of ``names`` already, and takes the rest."""
    takes = [one for one in groups if _fits({*one, *names}, room, events)]
    return max(takes, key=lambda one: len({*one} & {*names}), default=None)


def _fits(names: set[str], room: int, events: Mapping[str, Event]) -> bool:
    """Not more than there is room for; and not more that can only use some counters than there are of those."""
    limited = [set(counters) for name in names if (counters := events[name].counters)]
    return len(names) <= room and all(sum(other <= one for other in limited) <= len(one) for one in limited)


def halves(group: Group, anchors: Group) -> list[Group]:
    """A group that perf does not count, as two smaller ones; none if it has one event beside its anchors."""
    rest = group[len(anchors) :]
    middle = len(rest) // 2
    return [(*anchors, *rest[:middle]), (*anchors, *rest[middle:])] if middle else []


def rounds(groups: Sequence[Group], modes: Sequence[str], windows: int) -> list[Round]:
    """A traffic's rounds: each group in each mode where there are windows enough for it, else in all modes at once."""
    chosen = modes if windows >= len(groups) * len(modes) else tuple(WHOLE)
    return [Round(mode, group) for group in groups for mode in chosen]


def never_due(all_rounds: Sequence[Round], windows: int) -> list[str]:
    """The events that so many windows do not get to."""
    counted = {name for one in all_rounds[:windows] for name in one.events}
    return list(dict.fromkeys(name for one in all_rounds for name in one.events if name not in counted))
