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
    loads to which it belongs (none: all); and which direction is better, ``more`` or ``less`` (empty: neither). Of the first, how a
    sentence says it: ``verb``, twice as many ``things`` as another; or, without a verb, has twice the ``things`` of another."""

    metric: str
    words: str
    loads: tuple[str, ...] = ()
    better: str = ""
    verb: str = ""
    things: str = ""

    __post_init__ = _check


KINDS = ("", "flood", "stream", "forwarding", "requests", "frames", "restart", "nothing")
"""Of traffics. A flood's frames are counted at each hop, and nobody answers them; a stream is of bytes, in packets of any size; forwarding
is what endpoints send back; requests are answered, and frames timed one way, each alone; a restart is the switch's; and nothing flows."""


@dataclass(frozen=True, slots=True)
class TrafficWords:
    """``words``: its name as reports write it. ``rank``: its place among traffics of the same load, the lowest first. ``data``: what it
    carries; None where nothing is divided by it. ``headlines``: in the order of tables; the first is what it is judged by. ``kind``: which
    of KINDS it is, for explanations that hold of one kind alone. ``saturates``: whether at the load `saturation` the path is full.
    ``called``: how a sentence calls it, such as `the flood`; empty: by its name."""

    words: str
    rank: int = 100
    data: Data | None = None
    headlines: tuple[Headline, ...] = ()
    kind: str = ""
    saturates: bool = True
    called: str = ""

    def __post_init__(self) -> None:
        # A misspelt one would lose its findings without a word.
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}: use one of {', '.join(map(repr, KINDS))}")


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
            traffics[name] = TrafficWords(**{**one, "data": data, "headlines": headlines})
        collectors = {}
        # Absent from results of 2026-11-25 and before.
        for name, one in given.get("collectors", {}).items():
            collectors[name] = CollectorWords(one["words"], {number: NumberWords(**words) for number, words in one["numbers"].items()})
        return cls({name: SwitchWords(**one) for name, one in given["switches"].items()}, traffics, collectors)
