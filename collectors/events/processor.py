# SPDX-License-Identifier: GPL-2.0-or-later
"""Which processor this is, and which folder of the catalogue has its events: mapfile.csv, as perf's own."""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vsprof.collectors import messages as collectors_messages
from vsprof.collectors.events import messages

MAPFILE = "mapfile.csv"
MIDR = Path("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1")
VARIANT_AND_REVISION = 0x00F0000F
UNKNOWN = "unknown"
_DEVICES = Path("/sys/bus/event_source/devices")


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor as perf names it."""

    id: str
    """``GenuineIntel-6-55-4`` (vendor, family; model and stepping in hexadecimal), or an Arm core's MIDR, ``0x00000000410fd0c0``."""
    name: str = ""
    """What it calls itself."""
    midr: str = ""
    """An Arm core's MIDR with variant and revision, where they are known: some revisions count otherwise."""

    @property
    def without_stepping(self) -> str:
        return "-".join(self.id.split("-")[:3])


def this_host() -> Processor:
    """The processor of this machine; its id is ``unknown`` where the kernel doesn't say."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    try:
        midr = MIDR.read_text(encoding="ascii")
    except (OSError, ValueError):
        midr = ""
    return identify(text, midr)


def identify(cpuinfo: str, midr: str = "") -> Processor:
    """The processor by the text of /proc/cpuinfo, and of an Arm core's midr_el1 where there is one. Of several kinds, the first."""
    first: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            first.setdefault(key.strip(), value.strip())
    name = first.get("model name", "")
    try:
        if midr.strip():
            return _arm(int(midr, 16), name)
        if "CPU part" in first:
            return _arm_by_cpuinfo(first, name)
        family, model, stepping = (int(first[key]) for key in ("cpu family", "model", "stepping"))
        return Processor(f"{first['vendor_id']}-{family}-{model:X}-{stepping:X}", name)
    except (KeyError, ValueError):
        return Processor(UNKNOWN, name)


def _arm(midr: int, name: str) -> Processor:
    return Processor(f"0x{midr & ~VARIANT_AND_REVISION:016x}", name, f"0x{midr:016x}")


def _arm_by_cpuinfo(cpuinfo: Mapping[str, str], name: str) -> Processor:
    """The MIDR's parts, as the kernel prints them. Raises ``KeyError`` or ``ValueError`` if it does not."""
    implementer, variant, part, revision = (int(cpuinfo[key], 0) for key in ("CPU implementer", "CPU variant", "CPU part", "CPU revision"))
    return arm(implementer, variant, part, revision, name)


def arm(implementer: int, variant: int, part: int, revision: int, name: str = "") -> Processor:
    """An Arm core by the parts of its MIDR. Raises ``ValueError`` if one of them has more bits than its place."""
    if not (0 <= implementer < 1 << 8 and 0 <= variant < 1 << 4 and 0 <= part < 1 << 12 and 0 <= revision < 1 << 4):
        raise ValueError(f"no parts of a MIDR: {implementer:#x}, {variant:#x}, {part:#x}, {revision:#x}")
    return _arm(implementer << 24 | variant << 20 | 0xF << 16 | part << 4 | revision, name)


def core_pmu(devices: Path = _DEVICES) -> str:
    """The kernel's name of the cores' PMU: ``cpu``, or on Arm one such as ``armv8_pmuv3_0``; ``cpu`` where there is none."""
    return core_pmu_of(sorted(path.name for path in devices.glob("*")) if devices.is_dir() else [])


def core_pmu_of(names: list[str]) -> str:
    """The same from the names of a host's PMUs."""
    return next((name for name in names if re.fullmatch(r"cpu|armv\d+.*|apple_.*", name)), "cpu")


def folder_of(processor: Processor, catalogue: Path) -> str:
    """The folder of the catalogue for a processor: the first line of mapfile.csv that fits. Raises ``BadInput`` if the file is wrong."""
    ids = (processor.midr, processor.id, processor.without_stepping)
    for pattern, folder in mapping(catalogue):
        if any(pattern.fullmatch(one) for one in ids):
            return folder
    return ""


def mapping(catalogue: Path) -> list[tuple[re.Pattern[str], str]]:
    """The lines of mapfile.csv: regular expression and folder. Raises ``BadInput``: one line for each line that is wrong."""
    path = catalogue / MAPFILE
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise collectors_messages.bad_catalogue([messages.at(path, "", collectors_messages.not_readable(str(error)))]) from error
    found, reasons = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith(("#", "Family-model")):
            continue
        columns = next(csv.reader([line]), [])
        if len(columns) != 4:
            reasons.append(messages.bad_map_line(number, messages.bad_map_columns(len(columns))))
            continue
        pattern, _, folder, _ = columns
        try:
            found.append((_pattern(pattern), folder))
        except re.error as error:
            reasons.append(messages.bad_map_line(number, messages.bad_map_pattern(pattern, str(error))))
        if not (catalogue / folder).is_dir():
            reasons.append(messages.bad_map_line(number, messages.no_map_folder(folder)))
    if reasons:
        raise collectors_messages.bad_catalogue([messages.at(path, "", why) for why in reasons])
    return found


def _pattern(posix: str) -> re.Pattern[str]:
    """A regular expression of perf's, which has POSIX's classes, as Python has it."""
    return re.compile(posix.replace("[:xdigit:]", "0-9A-Fa-f").replace("[:digit:]", "0-9"), re.ASCII)
