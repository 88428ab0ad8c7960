# SPDX-License-Identifier: GPL-2.0-or-later
"""The modelled processors: YAML files in profiles/, each value with its source; docs/adding-a-cpu-profile.md.

``load("zen5").flat()`` is the text that the plug-in reads. What it reads is listed in profile.h, the classes below say the
same for YAML, and a test holds the two together.
"""

import difflib
import os
import re
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationError

from vsprof.collectors import messages as collectors_messages
from vsprof.collectors.uarch_model import messages
from vsprof.terms import places

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "profiles"
DEFAULT = "haswell-ep-e5-2695v3"
ASSUMED, FITTED, OVERRIDE = "assumed", "fitted", "override"
FITTED_KEYS = ("core.chain_permille", "core.exposed_l2_permille", "core.overlap_permille", "walk.exposed_permille")
"""What microbenchmarks may fit; everything else must come from somewhere."""
OWN = ("base", "name", "description", "cpuid")
"""What a profile does not inherit: it says what a file is, not what a processor is like."""
POLICIES = ("inclusive", "non-inclusive", "victim")
"""In the order of profile.h's enum llc_policy."""
LARGEST = 2**32 - 1
MOST_WAYS = 4096
T = TypeVar("T")


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Given(Strict, Generic[T]):
    """One value, and where it comes from: a name in ``sources``, or ``assumed`` (then ``why``), or ``fitted``."""

    value: T
    source: str
    why: str = ""


Number = Given[Annotated[int, Field(strict=True, ge=0, le=LARGEST)]]
Positive = Given[Annotated[int, Field(strict=True, ge=1, le=LARGEST)]]
Frequency = Given[Annotated[int, Field(strict=True, ge=1_000_000, le=100_000_000_000)]]
Permille = Given[Annotated[int, Field(strict=True, ge=0, le=1000)]]
UpTo20 = Given[Annotated[int, Field(strict=True, ge=0, le=20)]]
UpTo32 = Given[Annotated[int, Field(strict=True, ge=0, le=32)]]
UpTo63 = Given[Annotated[int, Field(strict=True, ge=0, le=63)]]
UpTo64 = Given[Annotated[int, Field(strict=True, ge=0, le=64)]]
UpTo128 = Given[Annotated[int, Field(strict=True, ge=0, le=128)]]
From1To64 = Given[Annotated[int, Field(strict=True, ge=1, le=64)]]
Sets = Given[Annotated[int, Field(strict=True, ge=1, le=2**24)]]
OnOff = Given[StrictBool]
Policy = Given[Literal["inclusive", "non-inclusive", "victim"]]
Word = Annotated[str, Field(min_length=1)]
Events = Given[Annotated[list[Word], Field(min_length=1), BeforeValidator(lambda v: [v] if isinstance(v, str) else v)]]
"""Names of hardware events; a list is their sum."""
Models = Annotated[
    list[tuple[Annotated[int, Field(strict=True)], Annotated[int, Field(strict=True)]]],
    BeforeValidator(lambda v: [[m, m] if isinstance(m, int) else m for m in v] if isinstance(v, list) else v),
]


# --- The groups of a profile, in the order of profile.h ---------------------------------------------------------


class Core(Strict):
    width: Positive
    rob: Positive
    mispredict: Number
    fetch_ahead: Number
    line_ops: Number
    line_cycles: Number
    call_cycles: Positive
    taken_permille: Positive
    chain_permille: Permille
    exposed_l2_permille: Permille
    overlap_permille: Permille
    vector_store_permille: Positive


class Cache(Strict):
    sets: Sets
    ways: Positive
    latency: Number


class First(Cache):
    fill_buffers: From1To64


class Second(Cache):
    line_cycles: Number


class Llc(Strict):
    sets: Sets
    ways: From1To64
    latency: Number
    policy: Policy
    latency_shared: Number
    latency_modified: Number


class Memory(Strict):
    latency_local: Number
    latency_remote: Number
    latency_remote_cache: Number
    line_cycles: Number


class Tlb(Strict):
    entries: Number
    ways: Number


class Dtlb(Strict):
    small: Tlb = Field(alias="4k")
    large: Tlb = Field(alias="2m")
    huge: Tlb = Field(alias="1g")


class Itlb(Strict):
    small: Tlb = Field(alias="4k")
    large: Tlb = Field(alias="2m")


class Stlb(Strict):
    entries: Number
    ways: Number
    latency: Number
    huge: Tlb = Field(alias="1g")
    code: Tlb


class Walk(Strict):
    pde_entries: UpTo64
    pdpte_entries: UpTo64
    pml4e_entries: UpTo64
    nested_entries: UpTo128
    fixed: Number
    exposed_permille: Permille


class Branch(Strict):
    history: UpTo32
    bimodal_bits: UpTo20
    global_bits: UpTo20
    target_bits: UpTo20
    return_stack: From1To64


class Cost(Strict):
    kernel_entry: Number
    interrupt: Number
    ipi: Number
    vm_entry: Number
    atomic: Number
    pause: Number
    rdtsc: Number
    lfence: Number
    mfence: Number
    popf: Number
    xsave: Number
    xrstor: Number
    wrfsbase: Number
    apic: Number
    mmio: Number
    mmio_write: Number
    port_io: Number
    repeat_short_bytes: Number
    repeat_short: Number
    repeat_start: Number
    repeat_bytes: Positive


class IdleState(Strict):
    """A state that the processor does not have has a latency of 0."""

    residency_ns: Number
    latency_ns: Number


class Idle(Strict):
    c1: IdleState
    c1e: IdleState
    c2: IdleState
    c3: IdleState
    c6: IdleState


class Prefetch(Strict):
    l1i_next: OnOff
    l2_adjacent: OnOff
    l2_stream: UpTo63
    l1_stream: UpTo63
    software: OnOff


class Model(Strict):
    """What of the model is on. No property of a processor, so these have no source."""

    page_walks: StrictBool = True
    branches: StrictBool = True
    coherence: StrictBool = True
    idle_states: StrictBool = True


class Parameters(Strict):
    """All that the plug-in is told."""

    core: Core
    l1i: Cache
    l1d: First
    l2: Second
    llc: Llc
    memory: Memory
    dtlb: Dtlb
    itlb: Itlb
    stlb: Stlb
    walk: Walk
    branch: Branch
    cost: Cost
    idle: Idle
    prefetch: Prefetch
    model: Model = Model()


class Cpuid(Strict):
    """Which processors a profile fits; without ``models`` all of the family."""

    vendor: Word
    family: Annotated[int, Field(strict=True, ge=0)]
    models: Models | None = None

    def fits(self, vendor: str, family: int, model: int) -> bool:
        known = self.models is None or any(first <= model <= last for first, last in self.models)
        return (vendor, family) == (self.vendor, self.family) and known


class Document(Parameters):
    """A profile's file, with what it inherits."""

    name: Word
    description: Word
    sources: dict[str, Annotated[str, Field(min_length=10)]]
    frequency_hz: Frequency
    cpuid: Cpuid | None = None
    events: dict[str, Events | None] = {}


def _keys(of: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in of.model_fields.items():
        kind, key = info.annotation, f"{prefix}{info.alias or name}"
        if isinstance(kind, type) and issubclass(kind, BaseModel) and not issubclass(kind, Given):
            yield from _keys(kind, f"{key}.")
        else:
            yield key


KEYS = tuple(_keys(Parameters))
"""What the plug-in reads, in its order."""
IDLE_STATES = ("C0", *(name.upper() for name in Idle.model_fields))
"""From the shallowest on: to be awake, and those that a profile can have."""
FREQUENCY = "frequency_hz"
CHANGEABLE = (FREQUENCY, *KEYS)
"""What a run can have otherwise than its profile."""
SWITCHES = tuple(key for key in KEYS if key.startswith(("prefetch.", "model.")))
"""The parts of the model that can be switched off."""


# --- A profile --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Profile:
    id: str
    """Its file's name without the ending."""
    given: Document
    overridden: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.given.name

    @property
    def frequency_hz(self) -> int:
        return self.given.frequency_hz.value

    @property
    def events(self) -> dict[str, list[str]]:
        """The hardware events whose sum is the same as each counter; a counter that is not here has none."""
        return {name: events.value for name, events in self.given.events.items() if events}

    @property
    def values(self) -> dict[str, int]:
        """What the plug-in is told, by key."""
        return {key: POLICIES.index(v) if isinstance(v, str) else int(v) for key, v in _plain(self.given).items()}

    def flat(self) -> str:
        """The text that the plug-in reads."""
        return "".join(f"{key} {value}\n" for key, value in self.values.items())

    def without(self, *parts: str) -> Self:
        """The same with parts of the model switched off: ``model.page_walks``, ``prefetch.l2_stream``, or a whole ``prefetch``."""
        off = [key for part in parts for key in SWITCHES if part in (key, key.partition(".")[0])]
        if wrong := [part for part in parts if part not in {*SWITCHES, "prefetch", "model"}]:
            raise messages.bad_parts(self.id, [messages.no_switch(part, (*SWITCHES, "prefetch", "model")) for part in wrong])
        return self.override({key: 0 if key in ("prefetch.l2_stream", "prefetch.l1_stream") else False for key in off})

    def override(self, changes: Mapping[str, Any]) -> Self:
        """The same with other values, as YAML would have them: ``{"llc.latency": 40, "llc.policy": "victim"}``. Raises ``BadInput``."""
        if wrong := [key for key in changes if key not in CHANGEABLE]:
            raise messages.bad_parts(self.id, [messages.unknown_key(key, _shown(changes[key]), _near(key)) for key in wrong])
        document = self.given.model_dump(by_alias=True, exclude_none=True)
        document["sources"][OVERRIDE] = "given for this run, not by the profile"
        for key, value in changes.items():
            *groups, last = key.split(".")
            place = document
            for group in groups:
                place = place[group]
            place[last] = value if key.startswith("model.") else {"value": value, "source": OVERRIDE}
        given, reasons = _check(document)
        if given is None or reasons:
            raise messages.bad_parts(self.id, reasons)
        return replace(self, given=given, overridden=tuple(sorted({*self.overridden, *changes})))

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """The same with values as a user gives them for a run: as YAML would have them, or as many times the profile's own (``x2``,
        ``x0.5``), rounded. Raises ``BadInput``."""
        known = {**_plain(self.given), FREQUENCY: self.frequency_hz}
        return self.override({key: _times(value, known.get(key)) for key, value in changes.items()}) if changes else self

    def value(self, key: str) -> str:
        """One of ``CHANGEABLE``, as a user would give it."""
        found = self.frequency_hz if key == FREQUENCY else _plain(self.given)[key]
        return ("on" if found else "off") if isinstance(found, bool) else str(found)

    def to_json(self) -> dict[str, Any]:
        """For the manifest: every value as it was told to the plug-in, and where each comes from."""
        leaves = dict(_leaves(self.given))
        values = {}
        for key, number in self.values.items():
            leaf = leaves[key]
            source = {"source": leaf.source, **({"why": leaf.why} if leaf.why else {})} if isinstance(leaf, Given) else {}
            values[key] = {"value": number, **source}
        used = {value.get("source") for value in values.values()} | {e.source for e in self.given.events.values() if e}
        used.add(self.given.frequency_hz.source)
        return {
            "id": self.id,
            "name": self.name,
            "description": self.given.description,
            "frequency_hz": self.frequency_hz,
            "values": values,
            "overridden": list(self.overridden),
            "events": self.events,
            "sources": {name: text for name, text in self.given.sources.items() if name in used},
        }


def names() -> list[str]:
    """All profiles of the project."""
    return sorted(_known())


def _known() -> dict[str, Path]:
    """Their files by name; the user's own of a name comes before the project's."""
    return {path.stem: path for folder in (FOLDER, *places.own("profiles")) for path in folder.glob("*.yaml")}


def load(name_or_path: str | Path) -> Profile:
    """A profile by its name in profiles/, or by a file's path. Raises ``BadInput``: one line for each key that is wrong."""
    name = str(name_or_path)
    path = _find(name, Path())
    if path is None:
        raise messages.unknown_profile(name, names())
    _, given = _load(path, ())
    return Profile(path.stem, given)


def for_host(cpuinfo: str) -> str | None:
    """The profile that fits a machine, by the text of its /proc/cpuinfo; None if there is none. If several do, the first by name."""
    first: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            first.setdefault(key.strip(), value.strip())
    try:
        seen = first["vendor_id"], int(first["cpu family"]), int(first["model"])
    except (KeyError, ValueError):
        return None
    return next((name for name in names() if (cpuid := load(name).given.cpuid) and cpuid.fits(*seen)), None)


@cache
def counters() -> tuple[str, ...]:
    """What the plug-in counts, from counters.h."""
    listed = (HERE / "counters.h").read_text().partition("#define COUNTERS(X)")[2].partition("struct counters")[0]
    return tuple(re.findall(r"^\s+X\((\w+)\)", listed, re.MULTILINE))


# --- Reading ----------------------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """YAML in which no key is given twice."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.composer.ComposerError(None, None, f"the key {key.value!r} is given twice", key.start_mark)
                seen.add(key.value)
        return node


def _find(name: str, folder: Path) -> Path | None:
    """A profile's file by its name, or by a path as seen from ``folder``; None if there is none."""
    if not name.endswith((".yaml", ".yml")):
        return _known().get(name)
    return folder / name if os.path.isfile(folder / name) else None  # Path.is_file raises on strange names


def _load(path: Path, above: tuple[Path, ...]) -> tuple[dict[str, Any], Document]:
    """A file's document with all that it inherits; and the same, checked. ``above``: the files whose base it is."""
    if path.resolve() in above:
        chain = [p.stem for p in above[above.index(path.resolve()) :]]
        raise messages.base_cycle(above[-1], [*chain, path.stem])
    document = _read(path)
    base = document.pop("base", None)
    reasons: list[str] = []
    if base is not None:
        inherited, _ = _load(_base(path, base), (*above, path.resolve()))
        if isinstance(own := document.get("sources"), dict):
            known = inherited["sources"]
            reasons = [messages.source_changed(name, base) for name in own if known.get(name, own[name]) != own[name]]
        document = _merged({key: value for key, value in inherited.items() if key not in OWN}, document)
    given, wrong = _check(document)
    if given is None or reasons or wrong:
        raise messages.bad_profile(path, reasons + wrong)
    return document, given


def _base(path: Path, name: Any) -> Path:
    if not isinstance(name, str):
        raise messages.bad_profile(path, [messages.wrong_value("base", "need a name", _shown(name))])
    found = _find(name, path.parent)
    if found is None:
        raise messages.unknown_base(path, name, names())
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise messages.bad_profile(path, [collectors_messages.not_readable(error.strerror or str(error))]) from error
    except ValueError as error:
        raise messages.bad_profile(path, [messages.not_yaml(_one_line(error))]) from error
    try:
        document = _parsed(text)
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        # PyYAML lets errors of Python through where a scalar is not what its tag says: a date with month 13, `!!int x`.
        raise messages.bad_profile(path, [messages.not_yaml(_one_line(error))]) from error
    if not isinstance(document, dict):
        raise messages.bad_profile(path, [messages.no_mapping(type(document).__name__)])
    # The caller takes keys out of it.
    return dict(document)


@lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    """Kept, because each case of an experiment asks for its profile, and a file takes 20 ms to parse. Nobody may change what is in it."""
    return yaml.load(text, _Loader)  # a SafeLoader


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Groups are merged key by key. A value is replaced whole: its source does not stay behind."""
    merged = dict(base)
    for key, value in own.items():
        inherited = base.get(key)
        both = isinstance(inherited, dict) and isinstance(value, dict)
        merged[key] = _merged(inherited, value) if both and "value" not in inherited else value
    return merged


# --- Checking ---------------------------------------------------------------------------------------------------


def _check(document: Mapping[str, Any]) -> tuple[Document | None, list[str]]:
    """The document as ``Document``, and what is wrong with it: an empty list, or one line for each key."""
    try:
        given = Document.model_validate(document)
    except ValidationError as error:
        return None, [_reason(one) for one in error.errors()]
    return given, [*_source_reasons(given), *_shape_reasons(_plain(given))]


def _reason(error: Mapping[str, Any]) -> str:
    parts = [str(part) for part in error["loc"]]
    key, kind = ".".join(parts), error["type"]
    if kind == "missing" and parts[-1] == "source":
        return messages.no_source(".".join(parts[:-1]))
    if kind == "missing":
        return messages.missing_key(key)
    if kind == "extra_forbidden":
        return messages.unknown_key(key, _shown(error["input"]), _near(key))
    if kind == "model_type":
        is_value = key in KEYS or parts[0] in ("events", "frequency_hz")
        return (messages.need_source if is_value else messages.need_keys)(key, _shown(error["input"]))
    what = error["msg"].removeprefix("Input should be ")
    what = f"need {what}" if what != error["msg"] else what
    return messages.wrong_value(key.removesuffix(".value"), what, _shown(error["input"]))


def _source_reasons(given: Document) -> Iterator[str]:
    for name in (ASSUMED, FITTED):
        if name in given.sources:
            yield messages.reserved_source(name)
    if given.cpuid and any(first > last for first, last in given.cpuid.models or []):
        yield messages.wrong_value("cpuid.models", "need the smaller model of a pair first", _shown(given.cpuid.models))
    for counter in given.events:
        if counter not in counters():
            yield messages.unknown_counter(counter)
    events = ((f"events.{name}", leaf) for name, leaf in given.events.items() if leaf)
    for key, leaf in (*_leaves(given), ("frequency_hz", given.frequency_hz), *events):
        if not isinstance(leaf, Given):
            continue
        if leaf.source == ASSUMED and not leaf.why.strip():
            yield messages.no_why(key, _shown(leaf.value))
        elif leaf.source == FITTED and key not in FITTED_KEYS:
            yield messages.not_fitted(key, _shown(leaf.value), FITTED_KEYS)
        elif leaf.source not in {ASSUMED, FITTED, *given.sources}:
            yield messages.unknown_source(key, leaf.source, [*given.sources, ASSUMED])


def _shape_reasons(value: Mapping[str, Any]) -> Iterator[str]:
    """What profile.c refuses, and latencies below that of L1, from which the model counts."""
    for name in ("l1i", "l1d", "l2"):
        sets, ways = value[f"{name}.sets"], value[f"{name}.ways"]
        if not _is_power_of_two(sets):
            yield messages.wrong_value(f"{name}.sets", "need a power of two", str(sets))
        elif name != "l2" and sets > 64:
            yield messages.wrong_value(f"{name}.sets", "need at most 64: its index must lie in the offset within a page", str(sets))
        if ways > MOST_WAYS:
            yield messages.wrong_value(f"{name}.ways", f"need at most {MOST_WAYS}", str(ways))
    for key in KEYS:
        name, _, last = key.rpartition(".")
        if last == "entries":
            yield from _tlb_reasons(name, value[key], value[f"{name}.ways"])
    for key in KEYS:
        if key.split(".")[0] in ("l2", "llc", "memory") and "latency" in key and value[key] < value["l1d.latency"]:
            yield messages.wrong_value(key, f"need at least l1d.latency, {value['l1d.latency']}", str(value[key]))

    yield from _idle_reasons(value)


def _idle_reasons(value: Mapping[str, Any]) -> Iterator[str]:
    """A deeper state that is there must take longer, or nobody would have the others."""
    last = 0
    for name in Idle.model_fields:
        latency = value[f"idle.{name}.latency_ns"]
        if latency and latency <= last:
            yield messages.wrong_value(f"idle.{name}.latency_ns", f"need more than the {last} of the state before", str(latency))
        last = latency or last


def _tlb_reasons(name: str, entries: int, ways: int) -> Iterator[str]:
    if entries == 0:
        # There is none for this page size, or none for code alone; the others must be.
        if not name.endswith((".1g", ".code")):
            yield messages.wrong_value(f"{name}.entries", "need at least 1", "0")
    elif not 1 <= ways <= MOST_WAYS or entries % ways:
        yield messages.wrong_value(f"{name}.ways", f"need ways that divide the {entries} entries", str(ways))
    elif not _is_power_of_two(entries // ways):
        what = f"need a power of two of sets, not {entries // ways} ({entries} entries in {ways} ways)"
        yield messages.wrong_value(f"{name}.entries", what, str(entries))


def _is_power_of_two(number: int) -> bool:
    return number > 0 and not number & (number - 1)


def _leaves(of: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that the plug-in is told: its key, and a ``Given`` (a bool in the group model)."""
    for name, info in type(of).model_fields.items():
        if isinstance(of, Document) and name not in Parameters.model_fields:
            continue
        value, key = getattr(of, name), f"{prefix}{info.alias or name}"
        if isinstance(value, BaseModel) and not isinstance(value, Given):
            yield from _leaves(value, f"{key}.")
        else:
            yield key, value


def _plain(given: Document) -> dict[str, Any]:
    return {key: leaf.value if isinstance(leaf, Given) else leaf for key, leaf in _leaves(given)}


_TIMES = re.compile(r"x(\d+(?:\.\d+)?)")


def _times(given: Any, own: Any) -> Any:
    """What was given, as YAML would read it; `x2`: twice what the profile has, if that is a number."""
    times = _TIMES.fullmatch(given) if isinstance(given, str) else None
    if times and isinstance(own, int) and not isinstance(own, bool):
        return round(float(times[1]) * own)
    try:
        return yaml.safe_load(given) if isinstance(given, str) else given
    except yaml.YAMLError:
        return given


def _near(key: str) -> list[str]:
    """The key that was meant, if one is much like it."""
    value = key.rpartition(".")[0]
    if value in KEYS:
        return difflib.get_close_matches(key, [f"{value}.{name}" for name in Given.model_fields], n=1, cutoff=0.75)
    groups = {key.rpartition(".")[0] for key in KEYS}
    return difflib.get_close_matches(key, sorted({*KEYS, *groups, *Document.model_fields, "base"}), n=1, cutoff=0.75)


_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 2, 60, 60


def _shown(value: Any) -> str:
    try:
        return _short.repr(value)
    except ValueError:  # a number of more digits than Python prints
        return "a number of thousands of digits"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
