# SPDX-License-Identifier: GPL-2.0-or-later
"""A probe is one bpftrace program, a file .bt beside this one. Its head says which numbers its maps hold::

    // number: softirq_{kind}_seconds, ns, total of @softirq[cpu, kind]
    // kind: 2 net_tx, 3 net_rx

A number line is: name, unit of the map, and the map with words for its keys; before the map, ``total of`` or ``count of`` (of
stats, and count also of hist) or ``buckets of`` (hist; the name then has {bucket}, its lower bound).

- The key ``cpu`` is a CPU, the key ``tid`` a thread: they become the row's CPU and role.
- Any other key is put into the name, as {key}. A line of its own may give words for its values; ``// key: role`` says that they
  are threads, of which the role is put there, hyphens as underscores.
- A key that is not used is summed over. A map that no number line names is the program's own.
"""

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from vsprof.collectors.ebpf import messages
from vsprof.terms.placement import Placement
from vsprof.terms.schema import ROLES

FOLDER = Path(__file__).parent
UNITS = {"events": ("events", 1.0), "packets": ("packets", 1.0), "bytes": ("bytes", 1.0), "ns": ("seconds", 1e-9), "us": ("seconds", 1e-6)}
"""Unit of a map: the unit and the factor of its rows, which are in SI units."""
SHARED = {"@on"}
"""The one map that all probes read."""
BUCKET = "bucket"
OTHER = "other"
"""The word for a key's value that has none."""

_NUMBER = re.compile(
    r"(?P<name>[a-z](?:[a-z0-9_]|{[a-z_]+})*), *(?P<unit>\w+), *"
    r"((?P<part>total|count|buckets) of )? *(?P<map>@\w+)(\[(?P<keys>[a-z_, ]+)\])?"
)
_COMMENT = re.compile(r"^// *(?P<key>[a-z_]+): *(?P<text>.*\S)\s*$", re.MULTILINE)
_TRACEPOINT = re.compile(r"\btracepoint:(\w+):(\w+)")
_MAP = re.compile(r"@\w+")


@dataclass(frozen=True)
class Words:
    """What a key's values are called in a number's name."""

    role: bool = False
    """They are threads, called by their role."""
    known: Mapping[str, str] = field(default_factory=dict)

    def word(self, value: str, placement: Placement) -> str:
        if self.role and value not in self.known:
            return _in_name(placement.role_of_thread(int(value)))
        return self.known.get(value, OTHER) if self.known else _in_name(value)

    def all(self) -> list[str]:
        """Every word that there can be, as far as is known beforehand."""
        return list(dict.fromkeys([*self.known.values(), *(map(_in_name, ROLES) if self.role else ())]))


@dataclass(frozen=True)
class Declared:
    """A number that a probe's head declares."""

    name: str
    unit: str
    part: str
    """Of the map's value: ``total``, ``count``, ``buckets``, or nothing for all of it."""
    map: str
    keys: tuple[str, ...]
    words: Mapping[str, Words]

    @property
    def named(self) -> list[str]:
        """The keys that are in the name."""
        return [key for key in re.findall(r"{(\w+)}", self.name) if key != BUCKET]

    def word(self, key: str, value: str, placement: Placement) -> str:
        """What ``value`` of ``key`` is called in the name."""
        return self.words.get(key, Words()).word(value, placement)

    def names(self) -> list[str]:
        """Every name that there can be, as far as is known beforehand: none where a value names itself."""
        if self.part == "buckets":
            return []
        words = [self.words.get(key, Words()).all() for key in self.named]
        return [self.name.format(**dict(zip(self.named, each, strict=True))) for each in itertools.product(*words)]


@dataclass(frozen=True)
class Probe:
    name: str
    text: str
    numbers: tuple[Declared, ...]

    @property
    def _code(self) -> str:
        return re.sub(r"//.*", "", self.text)

    @property
    def about(self) -> str:
        """The first comment below the licence: what it counts."""
        lines = [line.removeprefix("//").strip() for line in self.text.splitlines() if not line.startswith("// SPDX")]
        return " ".join(itertools.takewhile(bool, lines)).rstrip(".")

    @property
    def tracepoints(self) -> set[tuple[str, str]]:
        """Category and name of each tracepoint that it is attached to."""
        return set(_TRACEPOINT.findall(self._code))

    @property
    def maps(self) -> set[str]:
        return set(_MAP.findall(self._code))

    @classmethod
    def of(cls, name: str, text: str) -> Self:
        """Read a probe's head. Raises ``ValueError`` with what is wrong in it."""
        lines = [(match["key"], match["text"]) for match in _COMMENT.finditer(text)]
        numbers = tuple(_declared(name, line, lines) for key, line in lines if key == "number")
        if not numbers:
            raise messages.no_numbers(name)
        probe = cls(name, text, numbers)
        if re.search(r"^\s*(BEGIN|END)\b", probe._code, re.MULTILINE):
            raise messages.begin_is_taken(name)
        return probe


def names() -> tuple[str, ...]:
    """Of all probes that there are: the files beside this one."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.bt")))


def read(chosen: Iterable[str]) -> list[Probe]:
    """The probes of these names. Raises ``ValueError`` if one has a wrong head, or two (they run as one program) have a map in common."""
    found = [Probe.of(name, (FOLDER / f"{name}.bt").read_text()) for name in chosen]
    owners: dict[str, str] = {}
    for probe in found:
        for name in sorted(probe.maps - SHARED):
            if name in owners:
                raise messages.map_taken(name, (owners[name], probe.name))
            owners[name] = probe.name
    return found


def _declared(probe: str, line: str, lines: Iterable[tuple[str, str]]) -> Declared:
    match = _NUMBER.fullmatch(line)
    if not match or match["unit"] not in UNITS:
        raise messages.bad_number_line(probe, line, UNITS)
    keys = tuple(key.strip() for key in (match["keys"] or "").split(",") if key.strip())
    words = {key: _words(probe, key, text) for key, text in lines if key in keys}
    declared = Declared(match["name"], match["unit"], match["part"] or "", match["map"], keys, words)
    for key in re.findall(r"{(\w+)}", declared.name):
        if key not in keys and (key, declared.part) != (BUCKET, "buckets"):
            raise messages.unknown_key(probe, declared.name, key, keys)
    return declared


def _words(probe: str, key: str, text: str) -> Words:
    parts = [part.strip() for part in text.split(",")]
    role = parts[0] == "role"
    pairs = [part.split() for part in parts[1 if role else 0 :]]
    if any(len(pair) != 2 for pair in pairs):
        raise messages.bad_words_line(probe, f"{key}: {text}")
    return Words(role, dict(pairs))


def _in_name(word: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", word.lower())
