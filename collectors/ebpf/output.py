# SPDX-License-Identifier: GPL-2.0-or-later
"""What ``bpftrace -f json`` prints: one JSON object a line, ``{"type": …, "data": …}``. Versions 0.17 and 0.23 agree on it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vsprof.collectors.ebpf import messages

MAPS = ("map", "stats", "hist")

Value = float | Mapping[str, float] | list[Mapping[str, int]]
"""Of a map's key: a number; of stats, ``count``, ``total`` and more; of hist, buckets with ``min``, ``max``, ``count``."""


@dataclass
class Printed:
    ended_well: bool = False
    """It printed all: the line ``ended``, which its shell adds, has its exit status."""
    lost_events: int = 0
    maps: dict[str, dict[str, Value]] = field(default_factory=dict)
    """Each map that has keys: its keys as printed, separated by commas; ``""`` for a map without keys."""


def read(text: str) -> Printed:
    """Raises ``ValueError`` on anything but bpftrace's JSON."""
    printed = Printed()
    for line in text.splitlines():
        if not line.strip():
            continue
        try:
            _take(json.loads(line), printed)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise messages.not_bpftrace(line) from error
    return printed


def _take(row: Mapping[str, Any], printed: Printed) -> None:
    kind, data = row["type"], row.get("data")
    if kind in MAPS:
        for name, content in data.items():
            printed.maps[name] = _by_key(kind, content)
    elif kind == "ended":
        printed.ended_well = data == 0
    elif kind == "lost_events":
        printed.lost_events += int(data["events"])


def _by_key(kind: str, content: Any) -> dict[str, Value]:
    read_value = {"map": float, "stats": _stats, "hist": _buckets}[kind]
    keyed = isinstance(content, dict) and not (kind == "stats" and "count" in content)
    return {key: read_value(value) for key, value in content.items()} if keyed else {"": read_value(content)}


def _stats(value: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value[name]) for name in ("count", "total")}


def _buckets(value: list[Mapping[str, Any]]) -> list[Mapping[str, int]]:
    return [{name: int(bucket[name]) for name in ("min", "max", "count")} for bucket in value]
