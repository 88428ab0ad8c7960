# SPDX-License-Identifier: GPL-2.0-or-later
"""What plug-ins say of themselves, for whoever shows their numbers. The runner writes it into each manifest, so that a result can be read
without them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class SwitchWords:
    """``words``: its name as reports write it. ``rank``: its place among switches, the lowest first. ``colour``: its slot in the palette of
    figures; None: one that is free. ``program``: whose threads its own are, such as a daemon's; empty: it is called as the switch is."""

    words: str
    rank: int = 100
    colour: int | None = None
    program: str = ""


@dataclass(frozen=True, slots=True)
class Data:
    """The unit that counts of a traffic are divided by.

    ``per`` names it in metrics (`x_per_packet`) and ``words`` in figures (`packet received`). How many there were in a window: the
    traffic's number ``number``, times ``scale``, for each second (``rate``) or in all; and in the model's windows its count ``modelled``
    times ``modelled_scale``.
    """

    per: str
    words: str
    number: str
    rate: bool = True
    scale: float = 1.0
    modelled: str = "model_packets"
    modelled_scale: float = 1.0


DIRECTIONS = ("", "more", "less")
"""Which is better; empty: neither."""


def _check(said: "Headline | NumberWords") -> None:
    # A misspelt one would call every difference worse.
    if said.better not in DIRECTIONS:
        raise ValueError(f"better is {said.better!r}: use one of {', '.join(map(repr, DIRECTIONS))}")


@dataclass(frozen=True, slots=True)
class Headline:
    """A number that a reader asks for first: a metric of analysis, or one of the traffic's own numbers; how a table's row names it; the
    loads to which it belongs (none: all); and which direction is better, ``more`` or ``less`` (empty: neither)."""

    metric: str
    words: str
    loads: tuple[str, ...] = ()
    better: str = ""

    __post_init__ = _check


@dataclass(frozen=True, slots=True)
class TrafficWords:
    """``words``: its name as reports write it. ``rank``: its place among traffics of the same load, the lowest first. ``data``: what it
    carries; None where nothing is divided by it. ``headlines``: in the order of tables; the first is what it is judged by."""

    words: str
    rank: int = 100
    data: Data | None = None
    headlines: tuple[Headline, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberWords:
    """What a collector's number or metric is. ``better``: ``more`` or ``less`` of it, of a count per unit of data; empty: neither.
    ``figure``: a file of analysis/figures/ that draws it, of which `counts` draws any number; empty: tables alone show it."""

    words: str
    better: str = ""
    figure: str = ""

    __post_init__ = _check


@dataclass(frozen=True, slots=True)
class CollectorWords:
    """``words``: its name as reports write it. ``numbers``: by name; in a name, ``*`` stands for anything, as in a shell."""

    words: str = ""
    numbers: Mapping[str, NumberWords] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """By the names of plug-ins."""

    switches: Mapping[str, SwitchWords] = field(default_factory=dict)
    traffics: Mapping[str, TrafficWords] = field(default_factory=dict)
    collectors: Mapping[str, CollectorWords] = field(default_factory=dict)

    to_json = asdict

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Raises ``KeyError``, ``TypeError`` or ``ValueError`` on what this vsprof does not know, such as a later one's."""
        traffics = {}
        for name, one in given["traffics"].items():
            data = Data(**one["data"]) if one["data"] else None
            headlines = tuple(Headline(**{**line, "loads": tuple(line["loads"])}) for line in one["headlines"])
            traffics[name] = TrafficWords(one["words"], one["rank"], data, headlines)
        collectors = {}
        # Absent from results of 2026-11-25 and before.
        for name, one in given.get("collectors", {}).items():
            collectors[name] = CollectorWords(one["words"], {number: NumberWords(**words) for number, words in one["numbers"].items()})
        return cls({name: SwitchWords(**one) for name, one in given["switches"].items()}, traffics, collectors)
