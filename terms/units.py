# SPDX-License-Identifier: GPL-2.0-or-later
"""SI inside, prefixes only when shown: the one formatter of numbers with units."""

import itertools
import math
from collections.abc import Iterable
from typing import Any

from vsprof.terms import messages

COUNTS = ("events", "packets", "bytes", "cycles", "TSC cycles", "instructions", "uops", "slots")
"""Units of numbers that grow while they are counted."""
KNOWN = (*COUNTS, "seconds", "hertz", "fraction", "number", "samples", "flows", "lines", "trials", "packets/s", "bit/s")
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_SHORT = {"packets/s": "pps", "bit/s": "bit/s", "seconds": "s", "bytes": "B", "hertz": "Hz"}
_UNPREFIXED = {"", "ratio", "fraction", "percent"}


def si(value: float | None, unit: str, digits: int = 3) -> str:
    """Format ``value`` with ``digits`` significant digits and an SI prefix: ``si(33_400, "packets/s")`` is ``33.4 kpps``.

    A missing value is shown as a dash, never as zero.
    """
    if value is None or math.isnan(value):
        return "–"
    short = _SHORT.get(unit, unit)
    if unit in _UNPREFIXED or value == 0 or math.isinf(value):
        return f"{significant(value, digits)} {short}".strip()
    # A thousandth of a packet is shown as 0.001 packets: nobody reads "millipackets".
    prefixes = _PREFIXES if unit == "seconds" else _PREFIXES[:4]
    factor, prefix = next((one for one in prefixes if abs(value) >= one[0]), prefixes[-1])
    return f"{significant(value / factor, digits)} {prefix}{short}".strip()


def unknown(numbers: Iterable[tuple[str, str, str]]) -> list[str]:
    """Warnings about numbers (collector, unit, name) whose unit is neither KNOWN nor one of one's own: a misspelt count is not divided."""
    odd = sorted({one for one in numbers if one[1] not in KNOWN and "/" not in one[1] and not one[1].startswith("fraction of ")})
    alike = itertools.groupby(odd, key=lambda one: one[:2])
    return [messages.unknown_unit(collector, [name for *_, name in some], unit, KNOWN) for (collector, unit), some in alike]


def significant(value: float, digits: int = 3) -> str:
    """Round to significant digits without an exponent: 0.01234 -> 0.0123, 1234.5 -> 1234."""
    if value == 0 or math.isinf(value) or math.isnan(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def finite(value: Any) -> Any:
    """The same for JSON, which knows neither NaN nor infinity: they become None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def gib(size: float) -> str:
    """Bytes as GiB, for memory and disks."""
    return f"{size / 2**30:.1f} GiB"


def duration(seconds: float) -> str:
    """A span for people: ``4 min 05 s``, ``1 h 02 min``, ``3.2 s``."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
