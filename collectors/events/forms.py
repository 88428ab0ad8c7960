# SPDX-License-Identifier: GPL-2.0-or-later
"""The forms in which vendors give lists of events, each read into entries as the catalogue has them; `vsprof events import`.

=================  ====================================================================  =========================================
form               looks like                                                            found in
=================  ====================================================================  =========================================
``perf``           ``[{"EventName": …}, {"MetricExpr": …}, {"ArchStdEvent": …}]``        Linux, tools/perf/pmu-events/arch
``perfmon``        ``{"Header": …, "Events": […]}``, or ``"Metrics"`` with ``Formula``   intel/perfmon
``arm-telemetry``  ``{"product_configuration": …, "events": {name: …}, "metrics": …}``   Arm's telemetry specifications
``arm-data``       ``{"_type": "Events", "cpu": …, "events": [{"code": …}]}``            ARM-software/data, pmu
=================  ====================================================================  =========================================

What an entry means is not judged here: see importer.py.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vsprof.collectors import messages as collectors_messages
from vsprof.collectors.events import messages
from vsprof.collectors.events.entries import CODES
from vsprof.collectors.events.processor import Processor, arm

STANDARDS = ("common-and-microarch.json", "recommended.json", "sbsa.json")
"""Files of perf's for Arm that give the code of what others call by ``ArchStdEvent`` alone."""
CORE_UNITS = ("", "0", "na", "null", "cpu")
"""As a value of ``Unit``: no other unit than the cores."""
_LEVELS = 3
"""How far above a core's file perf has them: arch/arm64/arm/neoverse-v1/cache.json."""
_CONSTANTS = {"DURATIONTIMEINSECONDS": "seconds", "DURATIONTIMEINMILLISECONDS": "(1000 * seconds)"}
"""What formulas of perfmon's use beside events and has a word here."""
_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a vendor's file, in the catalogue's keys."""

    name: str
    keys: Mapping[str, Any]
    why: str = ""
    """Why it can't be read, or nothing."""


@dataclass(frozen=True, slots=True)
class Vendors:
    """One file of a vendor's."""

    path: Path
    form: str
    source: str
    """What its entries' ``Source`` is to say."""
    items: list[Item]
    processor: Processor | None = None
    """Whose events they are, where the file says it."""


def read(path: Path, standards: Mapping[str, Mapping[str, Any]]) -> Vendors:
    """A file in the first form that fits. ``standards``: what ``ArchStdEvent`` may stand for. Raises ``BadInput`` if none fits."""
    document = load(path)
    form = next((name for name, (fits, _) in _FORMS.items() if fits(document)), None)
    if form is None:
        raise messages.no_known_form(path, _shape(document))
    found = _FORMS[form][1](path, document)
    return Vendors(path, form, found.source, [_by_standard(item, standards) for item in found.items], found.processor)


def load(path: Path) -> Any:
    """A JSON file. Raises ``BadInput``."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        why = collectors_messages.not_readable(error.strerror or str(error))
    except (ValueError, RecursionError) as error:
        why = messages.not_json(" ".join(str(error).split())[:200])
    raise collectors_messages.bad_catalogue([messages.at(path, "", why)])


def standards(paths: Iterable[Path]) -> dict[str, Mapping[str, Any]]:
    """What ``ArchStdEvent`` stands for, by name in small letters: from the files themselves, and from those that lie above them."""
    known: dict[str, Mapping[str, Any]] = {}
    for path in dict.fromkeys(found for one in paths for found in _standards_of(one)):
        document = load(path)
        for keys in document if isinstance(document, list) else ():
            if isinstance(keys, dict) and (name := _text(keys, "EventName") or _text(keys, "MetricName")):
                known.setdefault(name.casefold(), keys)
    return known


def is_standard(path: Path) -> bool:
    """True for a table of codes that others refer to. AMD's ``recommended.json`` has the name of one, and is none."""
    return path.name in STANDARDS and (path.name == STANDARDS[0] or (path.parent / STANDARDS[0]).is_file())


def _standards_of(path: Path) -> Iterator[Path]:
    if path.name in STANDARDS:
        yield path
    for above in path.absolute().parents[:_LEVELS]:
        yield from (above / name for name in STANDARDS if (above / name).is_file())


# --- perf ---------------------------------------------------------------------------------------------------------------


def _is_perf(document: Any) -> bool:
    """A list with an entry of perf's; or one of two tables that lie beside such lists, and have no events."""
    if isinstance(document, dict):
        return bool(document) and all(isinstance(text, str) for text in document.values())
    words = ("EventName", "MetricName", "ArchStdEvent", "CountersNumGeneric")
    return isinstance(document, list) and any(isinstance(keys, dict) and any(word in keys for word in words) for keys in document)


def _perf(path: Path, document: Any) -> Vendors:
    items = [_perf_item(keys, number) for number, keys in enumerate(document, 1)] if isinstance(document, list) else []
    return Vendors(path, "perf", f"perf {path.parent.name}/{path.name}", [item for item in items if item])


def _perf_item(keys: Any, number: int) -> Item | None:
    if not isinstance(keys, dict):
        return Item(f"entry {number}", {}, messages.no_entry(type(keys).__name__))
    if "CountersNumGeneric" in keys:  # how many counters a PMU has: no event
        return None
    given = dict(keys)
    coded = any(given.get(key) is not None for key in CODES)
    of_core = _text(given, "Unit") in CORE_UNITS
    # Of Intel's fixed counters perf leaves the code out, for it is 0; outside the cores anything may have that code.
    if "EventName" in given and not coded and ("UMask" in given or not of_core):
        given["EventCode"] = "0x00"
    given |= {"Unit": ""} if of_core else _outside(given)
    if expression := _text(given, "MetricExpr"):
        given["MetricExpr"] = re.sub(r"\bduration_time\b", "seconds", expression)
    name = next((text for key in ("EventName", "MetricName", "ArchStdEvent") if (text := _text(given, key))), "")
    return Item(name or f"entry {number}", given, "" if name else messages.no_name(keys))


def _outside(keys: Mapping[str, Any]) -> dict[str, Any]:
    """What perf writes otherwise than Intel of an event outside the cores: a fixed counter's code, and a filter with its value apart."""
    changed: dict[str, Any] = {}
    if _text(keys, "Counter").casefold() == "fixed":
        changed |= {"EventCode": "0xff", "UMask": "0x00"}
    with contextlib.suppress(ValueError):  # what is no number is told by the check of all keys
        if _text(keys, "Filter") == "Filter1":
            # The second of two registers, which are one of 64 bits to the kernel.
            changed["Filter"] = f"config1={int(_text(keys, 'FILTER_VALUE'), 0) << 32:#x}"
    return changed


def _by_standard(item: Item, known: Mapping[str, Mapping[str, Any]]) -> Item:
    """An entry that names a standard one has its keys, but for those that it gives itself."""
    if not (word := _text(item.keys, "ArchStdEvent")):
        return item
    if (found := known.get(word.casefold())) is None:
        return Item(word, {}, messages.no_standard(word, STANDARDS[0]))
    completed = _perf_item({**found, **item.keys}, 0)
    return completed or item


# --- intel/perfmon ------------------------------------------------------------------------------------------------------


def _is_perfmon(document: Any) -> bool:
    parts = ("Events", "Metrics")
    return isinstance(document, dict) and any(isinstance(document.get(part), list) for part in parts)


def _perfmon(path: Path, document: Mapping[str, Any]) -> Vendors:
    version = _text(_part(document, "Header"), "Version")
    source = f"intel/perfmon {path.name}{f' V{version}' if version else ''}"
    items = [item for number, keys in enumerate(_rows(document, "Events"), 1) if (item := _perf_item(keys, number))]
    items += [_perfmon_metric(keys, number) for number, keys in enumerate(_rows(document, "Metrics"), 1)]
    return Vendors(path, "perfmon", source, items)


def _perfmon_metric(keys: Any, number: int) -> Item:
    """Intel writes formulas of letters, ``a / b``, and beside them what each letter stands for."""
    if not isinstance(keys, dict) or not (name := _text(keys, "MetricName")):
        return Item(f"entry {number}", {}, messages.no_name(keys if isinstance(keys, dict) else ()))
    if "Formula" not in keys:
        return _perf_item(keys, number) or Item(name, keys)
    letters = dict(_CONSTANTS)  # some formulas have a constant's whole name
    for part in ("Events", "Constants"):
        for one in _rows(keys, part):
            if isinstance(one, dict) and (alias := _text(one, "Alias")):
                letters[alias] = _escaped(_text(one, "Name"), constant=part == "Constants")
    formula = re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda found: letters.get(found[0], found[0]), _text(keys, "Formula"))
    unit = _text(keys, "UnitOfMeasure")
    described = {"MetricName": name, "MetricExpr": formula, "BriefDescription": keys.get("BriefDescription", "")}
    return Item(name, {**described, "ScaleUnit": f"1{unit}" if unit else "", "MetricConstraint": keys.get("MetricConstraint", "")})


def _escaped(name: str, *, constant: bool) -> str:
    """A name as a formula has it; a constant that is a number, or has a word here, as that."""
    if name in _CONSTANTS or (constant and _NUMBER.fullmatch(name)):
        return _CONSTANTS.get(name, name)
    return re.sub(r"([^A-Za-z0-9_.:])", r"\\\1", name)


# --- Arm ----------------------------------------------------------------------------------------------------------------


def _is_arm_telemetry(document: Any) -> bool:
    return isinstance(document, dict) and "product_configuration" in document and isinstance(document.get("events"), dict)


def _arm_telemetry(path: Path, document: Mapping[str, Any]) -> Vendors:
    items = [_telemetry_event(name, keys) for name, keys in document["events"].items()]
    items += [item for kind in _part(document, "components").values() if isinstance(kind, dict) for item in _node_events(kind)]
    items += [_telemetry_metric(name, keys) for name, keys in _part(document, "metrics").items()]
    source = f"Arm's telemetry specification {path.name} of {_text(_part(document, 'document'), 'timestamp') or 'no date'}"
    return Vendors(path, "arm-telemetry", source, items, _core_of(_part(document, "product_configuration")))


def _node_events(kind: Mapping[str, Any]) -> Iterator[Item]:
    """A mesh has kinds of nodes, each with events of its own: perf is told the kind, and the event's number."""
    node = _part(kind, "product_configuration").get("device_id")
    for item in (_telemetry_event(name, keys) for name, keys in _part(kind, "events").items()):
        if item.why or node is None:
            yield Item(item.name, {}, item.why or messages.no_code())
        else:
            described = {key: text for key, text in item.keys.items() if key != "EventCode"}
            yield Item(item.name, {**described, "EventidCode": item.keys["EventCode"], "NodeType": node, "Unit": "arm_cmn"})


def _telemetry_event(name: str, keys: Any) -> Item:
    if not isinstance(keys, dict):
        return Item(name, {}, messages.no_entry(type(keys).__name__))
    if "code" not in keys:  # a clock of the whole mesh
        return Item(name, {}, messages.no_code())
    return Item(name, {"EventName": name, "EventCode": keys["code"], "BriefDescription": keys.get("title", "")})


def _telemetry_metric(name: str, keys: Any) -> Item:
    if not isinstance(keys, dict):
        return Item(name, {}, messages.no_entry(type(keys).__name__))
    unit = _text(keys, "units")
    described = {"MetricName": name, "MetricExpr": keys.get("formula"), "BriefDescription": keys.get("title", "")}
    return Item(name, {**described, "ScaleUnit": f"1{unit}" if unit else ""})


def _core_of(product: Mapping[str, Any]) -> Processor | None:
    """The core by the parts of its MIDR, whose revision may count otherwise than others."""
    words = ("implementer", "major_revision", "part_num", "minor_revision")
    try:
        return arm(*(int(str(product[word]), 0) for word in words))
    except (KeyError, ValueError):
        return None


def _is_arm_data(document: Any) -> bool:
    return isinstance(document, dict) and document.get("_type") == "Events" and isinstance(document.get("events"), list)


def _arm_data(path: Path, document: Mapping[str, Any]) -> Vendors:
    items = [_data_item(keys, number) for number, keys in enumerate(document["events"], 1)]
    source = f"ARM-software/data {path.name} of {_text(document, 'timestamp') or 'no date'}"
    return Vendors(path, "arm-data", source, items, _core_by_cpuid(_text(document, "cpuid")))


def _data_item(keys: Any, number: int) -> Item:
    if not isinstance(keys, dict) or not (name := _text(keys, "name")):
        return Item(f"entry {number}", {}, messages.no_entry(type(keys).__name__))
    if "code" not in keys:
        return Item(name, {}, messages.no_code())
    return Item(name, {"EventName": name, "EventCode": keys["code"], "BriefDescription": keys.get("description", "")})


def _core_by_cpuid(cpuid: str) -> Processor | None:
    """``0x41d49``: who made it, and its part number."""
    if not re.fullmatch(r"0x[0-9a-fA-F]{5}", cpuid):
        return None
    return arm(int(cpuid[2:4], 16), 0, int(cpuid[4:], 16), 0)


# --- All ----------------------------------------------------------------------------------------------------------------

_FORMS: dict[str, tuple[Callable[[Any], bool], Callable[[Path, Any], Vendors]]] = {
    "perfmon": (_is_perfmon, _perfmon),
    "arm-telemetry": (_is_arm_telemetry, _arm_telemetry),
    "arm-data": (_is_arm_data, _arm_data),
    "perf": (_is_perf, _perf),
}


def _text(keys: Mapping[str, Any], key: str) -> str:
    """A text, without what surrounds it; nothing where there is none."""
    text = keys.get(key)
    return " ".join(text.split()) if isinstance(text, str) else ""


def _part(keys: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = keys.get(key)
    return part if isinstance(part, dict) else {}


def _rows(keys: Mapping[str, Any], key: str) -> list[Any]:
    rows = keys.get(key)
    return rows if isinstance(rows, list) else []


def _shape(document: Any) -> str:
    if isinstance(document, dict):
        return f"the keys {', '.join(list(document)[:5])}" if document else "no key"
    return f"a list of {len(document)}" if isinstance(document, list) else type(document).__name__
