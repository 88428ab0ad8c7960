# SPDX-License-Identifier: GPL-2.0-or-later
"""The modes of vhost-switch, and as few of their combinations as have every two values together once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations, product

DATAPATHS = {"librte": ("--rings", "librte"), "own": ("--rings", "own"), "zero-copy": ("--dequeue", "zero-copy")}
"""The three ways of a frame out of a guest, by the options that choose them."""
RINGS = ("split", "packed")
VALUES = {
    "forward": ("switch", "wire", "loop"),
    "datapath": tuple(DATAPATHS),
    "rx": ("poll", "interrupt", "adaptive"),
    "stages": ("on", "off"),
    "socket": ("client", "server"),
    "workers": (1, 2),
    "queues": (1, 2),
    "ring": RINGS,
}


@dataclass(frozen=True, slots=True)
class Mode:
    forward: str
    datapath: str
    rx: str
    stages: str
    socket: str
    workers: int
    queues: int
    ring: str

    def __str__(self) -> str:
        return "-".join(str(getattr(self, field.name)) for field in fields(self))

    def options(self) -> tuple[str, ...]:
        return ("--forward", self.forward, *DATAPATHS[self.datapath], "--rx", self.rx, "--stages", self.stages)


def pairwise(values: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Combinations chosen greedily: each next one has the most pairs of values that none before it had."""
    everything = [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]
    missing = {pair for one in everything for pair in combinations(one.items(), 2)}
    chosen = []
    while missing:
        best = max(everything, key=lambda one: sum(pair in missing for pair in combinations(one.items(), 2)))
        missing.difference_update(combinations(best.items(), 2))
        chosen.append(best)
    return chosen


MODES = [Mode(**one) for one in pairwise(VALUES)]
