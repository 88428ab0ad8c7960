# SPDX-License-Identifier: GPL-2.0-or-later
"""What plug-ins say of themselves, for whoever shows their numbers. The runner writes it into each manifest, so that a result can be read
without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SwitchWords:
    """``words``: its name as reports write it. ``rank``: its place among switches, the lowest first. ``colour``: its slot in the palette of
    figures; None: one that is free."""

    words: str
    rank: int = 100
    colour: int | None = None


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


@dataclass(frozen=True, slots=True)
class Headline:
    """A number that a reader asks for first: a metric of analysis, or one of the traffic's own numbers; how a table's row names it; and the
    loads to which it belongs (none: all)."""

    metric: str
    words: str
    loads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrafficWords:
    """``words``: its name as reports write it. ``rank``: its place among traffics of the same load, the lowest first. ``data``: what it
    carries; None where nothing is divided by it. ``headlines``: in the order of tables; the first is what it is judged by."""

    words: str
    rank: int = 100
    data: Data | None = None
    headlines: tuple[Headline, ...] = ()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """By the names of plug-ins."""

    switches: Mapping[str, SwitchWords]
    traffics: Mapping[str, TrafficWords]

    def to_json(self) -> dict[str, Any]:
        return {kind: {name: asdict(one) for name, one in getattr(self, kind).items()} for kind in ("switches", "traffics")}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Vocabulary:
        """Raises ``KeyError`` or ``TypeError`` on what this vsprof does not know, such as a later one's."""
        traffics = {}
        for name, one in given["traffics"].items():
            data = Data(**one["data"]) if one["data"] else None
            headlines = tuple(Headline(**{**line, "loads": tuple(line["loads"])}) for line in one["headlines"])
            traffics[name] = TrafficWords(one["words"], one["rank"], data, headlines)
        return cls({name: SwitchWords(**one) for name, one in given["switches"].items()}, traffics)
