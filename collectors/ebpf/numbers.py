# SPDX-License-Identifier: GPL-2.0-or-later
"""From a probe's maps to numbers, as its head declares."""

from collections.abc import Iterable, Mapping

from vsprof.collectors.ebpf import messages
from vsprof.collectors.ebpf.output import Printed, Value
from vsprof.collectors.ebpf.probes import BUCKET, UNITS, Declared, Probe
from vsprof.terms.placement import Placement
from vsprof.terms.schema import ROLES, Number

Place = tuple[str | None, int | None]
"""Role and CPU."""


def empty(probe: Probe, why: str) -> Iterable[Number]:
    """A probe's numbers where it could not count."""
    for declared in probe.numbers:
        for name in declared.names() or [declared.name.replace("{", "").replace("}", "")]:
            yield Number(name, None, UNITS[declared.unit][0], note=why)


def of(probe: Probe, printed: Printed, placement: Placement, seconds: float, most_keys: int, note: str) -> Iterable[Number]:
    """A probe's numbers. Raises ``ValueError`` when a map is not as declared."""
    if full := [name for name in probe.maps if _keys_in(printed.maps.get(name, {})) >= most_keys]:
        yield from empty(probe, messages.map_full(full[0], most_keys))
        return
    for declared in probe.numbers:
        yield from counted(declared, printed.maps.get(declared.map, {}), placement, seconds, note)


def _keys_in(values: Mapping[str, Value]) -> int:
    """As the kernel sees them: each bucket of a histogram is one."""
    return sum(sum(bucket["count"] > 0 for bucket in one) if isinstance(one, list) else 1 for one in values.values())


def counted(declared: Declared, values: Mapping[str, Value], placement: Placement, seconds: float, note: str = "") -> Iterable[Number]:
    """The numbers of one map. Raises ``ValueError`` when it has not the declared keys or values.

    What can be named beforehand and has no key was counted, and is zero.
    """
    unit, factor = UNITS[declared.unit]
    sums = {(name, place): 0.0 for name in declared.names() for place in _places(declared, placement)}
    for text, value in values.items():
        keys = _keys(declared, text)
        words = {key: declared.word(key, keys[key], placement) for key in declared.named}
        place = _place(keys, placement)
        for bucket, amount in _amounts(declared, value):
            at = declared.name.format(**words, **bucket), place
            sums[at] = sums.get(at, 0.0) + amount
    for (name, (role, cpu)), value in sums.items():
        yield Number(name, value * factor, unit, role, cpu, "all", seconds, seconds, note)


def _keys(declared: Declared, text: str) -> dict[str, str]:
    keys = text.split(",") if text else []
    if len(keys) != len(declared.keys):
        raise messages.wrong_keys(declared.map, text, declared.keys)
    return dict(zip(declared.keys, keys, strict=True))


def _place(keys: Mapping[str, str], placement: Placement) -> Place:
    if "cpu" in keys:
        return placement.role_of_cpu(int(keys["cpu"])), int(keys["cpu"])
    return (placement.role_of_thread(int(keys["tid"])) if "tid" in keys else None), None


def _places(declared: Declared, placement: Placement) -> list[Place]:
    """Every place in which there could have been something."""
    if "cpu" in declared.keys:
        return [(role, cpu) for cpu, role in placement.cpu_roles.items()]
    if "tid" in declared.keys:
        there = {thread.role for thread in placement.threads} | {"host-other"}
        return [(role, None) for role in ROLES if role in there]
    return [(None, None)]


def _amounts(declared: Declared, value: Value) -> Iterable[tuple[dict[str, int], float]]:
    """The value of a map's key, or of each bucket under it."""
    if declared.part == "buckets" and isinstance(value, list):
        return [({BUCKET: bucket["min"]}, bucket["count"]) for bucket in value if bucket["count"]]
    if declared.part == "count" and isinstance(value, list):
        return [({}, sum(bucket["count"] for bucket in value))]
    if declared.part in ("count", "total") and isinstance(value, dict):
        return [({}, value[declared.part])]
    if not declared.part and isinstance(value, float):
        return [({}, value)]
    raise messages.wrong_value(declared.map, declared.part)
