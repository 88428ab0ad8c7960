# SPDX-License-Identifier: GPL-2.0-or-later
"""One entry of a catalogue's file: an event or a metric, as perf's pmu-events JSON has them.

Vendors' files hold more keys than these, and misspelt ones; what is not known is passed over. vsprof's own keys are
``PerfEvent`` (a name that perf knows, in place of a code), ``Source`` (what an event was checked against) and ``Missing``
(why a processor can't have a metric).
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from vsprof.collectors import messages as collectors_messages
from vsprof.collectors.events import messages, outside
from vsprof.terms import expression

CODES = ("EventCode", "ConfigCode", "EventidCode", "PerfEvent")
"""Exactly one of these says what an event is."""
KERNELS_OWN = frozenset(
    {"alignment-faults", "bpf-output", "cgroup-switches", "context-switches", "cpu-clock", "cpu-migrations", "cs", "dummy"}
    | {"emulation-faults", "faults", "major-faults", "migrations", "minor-faults", "page-faults", "task-clock"}
)
"""perf's names of what the kernel counts by itself. Tracepoints (``irq:softirq_entry``) are, too."""
FIXED = {
    "inst_retired.any": "event=0xc0",
    "cpu_clk_unhalted.thread": "event=0x3c",
    "cpu_clk_unhalted.core": "event=0x3c",
    "cpu_clk_unhalted.thread_any": "event=0x3c,any=1",
    "cpu_clk_unhalted.ref": "event=0x00,umask=0x03",
    "cpu_clk_unhalted.ref_tsc": "event=0x00,umask=0x03",
}
"""Intel's events of fixed counters, whose code in Intel's files the kernel does not take."""
MSR_TERMS = {0x3F6: "ldlat", 0x1A6: "offcore_rsp", 0x1A7: "offcore_rsp", 0x3F7: "frontend"}
"""perf's word for what an event's second register is to hold, by the number of that register."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_SCALE = re.compile(r"\s*(?P<factor>[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)(?P<unit>.*)", re.DOTALL)
_KINDS = {"missing": "missing", "string_type": "need text"}


def as_code(text: Any) -> int:
    """A number as vendors write it: ``0x45``, ``69``, or several of the same meaning, ``0xB7,0xBB``, of which the first is taken."""
    if isinstance(text, int) and not isinstance(text, bool):
        number = text
    elif isinstance(text, str):
        try:
            number = int(text.split(",")[0].strip(), 0)
        except ValueError as error:
            raise ValueError(messages.need_number()) from error
    else:
        raise ValueError(messages.need_number())
    if not 0 <= number < 1 << 64:
        raise ValueError(messages.need_register())
    return number


def _flag(text: Any) -> bool:
    return as_code(text) != 0


def _event_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.:-]*", text, re.ASCII):
        raise ValueError(messages.need_name())
    return text


def _perf_event(text: str) -> str:
    if not re.fullmatch(r"[^\s,{}]+", text):
        raise ValueError(messages.need_perf_name())
    return text


Code = Annotated[int, BeforeValidator(as_code)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Name = Annotated[str, AfterValidator(_event_name)]
Filter = Annotated[str, BeforeValidator(outside.filter_terms)]
Empty = Annotated[str, BeforeValidator(lambda text: "" if text in (None, "null") else text)]
"""Vendors write ``null`` where there is nothing."""


class Entry(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    description: Empty = Field("", alias="BriefDescription")
    source: Empty = Field("", alias="Source")
    better: Literal["", "more", "less"] = Field("", alias="Better")
    """Whether it is good to have more of it, or less: per packet, where it is a count."""
    figure: Empty = Field("", alias="Figure")
    """A figure of reports that is to draw it."""


class Event(Entry):
    """What a counter counts."""

    name: Name = Field(alias="EventName")
    code: Code | None = Field(None, alias="EventCode")
    extended: Code = Field(0, alias="ExtSel")
    config: Code | None = Field(None, alias="ConfigCode")
    event_id: Code | None = Field(None, alias="EventidCode")
    perf_event: Annotated[str, AfterValidator(_perf_event)] | None = Field(None, alias="PerfEvent")
    umask: Code = Field(0, alias="UMask")
    umask_above: Code = Field(0, alias="UMaskExt")
    cmask: Code = Field(0, alias="CounterMask")
    invert: Flag = Field(False, alias="Invert")
    edge: Flag = Field(False, alias="EdgeDetect")
    any_thread: Flag = Field(False, alias="AnyThread")
    msr: Code = Field(0, alias="MSRIndex")
    msr_value: Code = Field(0, alias="MSRValue")
    unit: Empty = Field("", alias="Unit")
    port_mask: Code = Field(0, alias="PortMask")
    fc_mask: Code = Field(0, alias="FCMask")
    read_write: Code = Field(0, alias="RdWrMask")
    all_cores: Code = Field(0, alias="EnAllCores")
    all_slices: Code = Field(0, alias="EnAllSlices")
    slice_id: Code = Field(0, alias="SliceId")
    threads: Code = Field(0, alias="ThreadMask")
    node_type: Code = Field(0, alias="NodeType")
    filter: Filter = Field("", alias="Filter")
    counter: Empty = Field("", alias="Counter")
    errata: Empty = Field("", alias="Errata")
    deprecated: Flag = Field(False, alias="Deprecated")

    @property
    def counters(self) -> tuple[int, ...] | None:
        """The general counters that can count it; None where any can, or a fixed one alone."""
        return tuple(map(int, self.counter.split(","))) if re.fullmatch(r"[0-9]+(,[0-9]+)*", self.counter) else None

    @property
    def hardware(self) -> bool:
        """Counted by a PMU, not by the kernel."""
        name, _, rest = (self.perf_event or "").partition(":")
        return not (name in KERNELS_OWN or (name and len(rest) > len("ukhppp")))

    def perf(self, modifier: str = "", pmu: str = "cpu") -> str:
        """What ``perf stat -e`` is to be given. ``modifier``: ``u``, ``k``, or nothing; ``pmu``: the kernel's name of the core's PMU.

        An event outside the cores takes no modifier: its PMU doesn't know who asked.
        """
        if self.perf_event is not None:
            return f"{self.perf_event}{':' if modifier else ''}{modifier}"
        named = [f"name={self.name}"] if _PLAIN_NAME.fullmatch(self.name) else []
        terms = ",".join([*self._terms(), *named])
        if self.unit:
            return f"{outside.pmu(self.unit)}/{terms}/"
        return f"{pmu}/{terms}/{modifier}"

    def _terms(self) -> Iterator[str]:
        if self.config is not None:
            yield f"config={self.config:#x}"
            return
        if fixed := FIXED.get(self.name.lower()):
            yield fixed
            return
        yield f"eventid={self.event_id:#04x}" if self.event_id is not None else f"event={(self.code or 0) | self.extended << 8:#04x}"
        umask = self.umask | self.umask_above << 8
        if self.port_mask or self.fc_mask:
            # Such a unit's mask has 8 bits; lists of Intel's and of perf's repeat the other two masks above them.
            umask &= 0xFF
        for term, number in (("umask", umask), ("cmask", self.cmask)):
            if number:
                yield f"{term}={number:#04x}"
        if self.unit:
            yield from (f"{term}={number:#x}" for name, term in outside.TERMS.items() if (number := getattr(self, name)))
            yield from [self.filter] if self.filter else []
        for term, given in (("inv", self.invert), ("edge", self.edge), ("any", self.any_thread)):
            if given:
                yield f"{term}=1"
        if self.msr in MSR_TERMS and self.msr_value:
            yield f"{MSR_TERMS[self.msr]}={self.msr_value:#x}"


class Metric(Entry):
    """A number made of events, of other metrics, and of what the window carried (``packets``) and how long it was (``seconds``)."""

    name: Name = Field(alias="MetricName")
    text: str | None = Field(None, alias="MetricExpr")
    scale: Empty = Field("", alias="ScaleUnit")
    missing: str | None = Field(None, alias="Missing")
    constraint: Empty = Field("", alias="MetricConstraint")
    """perf's word for events that must not, or need not, be counted in one group."""

    @property
    def factor(self) -> float:
        """By what the formula's result is multiplied: the number at the head of ScaleUnit."""
        found = _SCALE.match(self.scale)
        return float(found["factor"]) if found else 1.0

    @property
    def unit(self) -> str:
        """As in the column ``unit`` of the schema: ``cycles/instruction``, ``events/packet``, …"""
        found = _SCALE.match(self.scale)
        return (found["unit"] if found else self.scale).strip()

    @property
    def formula(self) -> expression.Expression | None:
        """Its formula, read; None where the processor can't have it. An entry whose formula can't be read is refused by ``read``."""
        return None if self.text is None else expression.parse(self.text)


def read(path: Path) -> tuple[list[Event | Metric], list[str]]:
    """The entries of one file, and what is wrong with it: one line for each file, entry and key."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_pairs)
    except OSError as error:
        return [], [messages.at(path, "", collectors_messages.not_readable(error.strerror or str(error)))]
    except (ValueError, RecursionError) as error:
        return [], [messages.at(path, "", messages.not_json(" ".join(str(error).split())[:200]))]
    if isinstance(document, dict):
        document = document.get("Events", document.get("Metrics", document))
    if not isinstance(document, list):
        return [], [messages.at(path, "", messages.no_list(_kind(document)))]
    entries, reasons = [], []
    for number, keys in enumerate(document, 1):
        entry, wrong = checked(keys)
        entries += [entry] if entry else []
        reasons += [messages.at(path, _label(keys, number), why) for why in wrong]
    return entries, reasons


def checked(keys: Any) -> tuple[Event | Metric | None, list[str]]:
    """The entry that a file's keys are, or what is wrong with them, key by key."""
    if not isinstance(keys, dict):
        return None, [messages.no_entry(_kind(keys))]
    kind = Metric if "MetricName" in keys else Event if "EventName" in keys else None
    if kind is None:
        return None, [messages.no_name(keys)]
    if wrong := list(_event_reasons(keys) if kind is Event else _metric_reasons(keys)):
        return None, wrong
    try:
        return kind.model_validate(keys), []
    except ValidationError as error:
        return None, [_reason(one) for one in error.errors()]


def _event_reasons(keys: Mapping[str, Any]) -> Iterator[str]:
    given = [key for key in CODES if keys.get(key) is not None]
    if not given:
        yield messages.no_code()
    elif len(given) > 1:
        yield messages.two_codes(given)


def _metric_reasons(keys: Mapping[str, Any]) -> Iterator[str]:
    if "Missing" in keys:
        if keys.get("MetricExpr") is not None:
            yield messages.both_expression_and_missing()
        elif not (isinstance(keys["Missing"], str) and keys["Missing"].strip()):
            yield messages.wrong_value("Missing", "need the reason", keys["Missing"])
    elif keys.get("MetricExpr") is None:
        yield messages.no_expression()
    elif isinstance(keys["MetricExpr"], str):
        try:
            expression.parse(keys["MetricExpr"])
        except expression.BadFormula as error:
            yield messages.bad_expression(str(error))


def _reason(error: Mapping[str, Any]) -> str:
    what = str(error["msg"]).removeprefix("Value error, ").replace("Input should be", "need")
    return messages.wrong_value(str(error["loc"][0]), _KINDS.get(error["type"], what), _shown(error["input"]))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for key, value in pairs:
        if key in keys:
            raise ValueError(messages.key_twice(key))
        keys[key] = value
    return keys


def _label(keys: Any, number: int) -> str:
    name = next((keys[key] for key in ("EventName", "MetricName") if isinstance(keys.get(key), str)), "") if isinstance(keys, dict) else ""
    return str(_shown(name)) if name else f"entry {number}"


def _kind(thing: Any) -> str:
    return {dict: "keys and values", list: "a list", str: "text", type(None): "null"}.get(type(thing), type(thing).__name__)


def _shown(thing: Any) -> Any:
    text = thing if isinstance(thing, str) else json.dumps(thing, default=str)
    return thing if len(text) <= 60 else text[:60] + "…"
