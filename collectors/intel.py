# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether tools for Intel's processors can work on a testbed, for the collectors that wrap them; and how their record is cut up."""

import re

from vsprof.collectors import messages
from vsprof.collectors.events import processor
from vsprof.testbeds.base import Testbed

VENDOR = "GenuineIntel"
# A PMU of the cores is `cpu`, or `cpu_core` and `cpu_atom` where they are of two kinds.
PMUS = "ls -d /sys/bus/event_source/devices/cpu /sys/bus/event_source/devices/cpu_core 2> /dev/null; true"
_HEADING = re.compile(r"^--- (?P<name>[a-z-]+)\n", re.MULTILINE)


def refused(host: Testbed, tool: str) -> str | None:
    """Why ``tool`` can't work on this testbed's processor, or None."""
    seen = processor.identify(host.run("cat /proc/cpuinfo").stdout)
    name = f"{seen.name or 'a processor without a name'} ({seen.id})"
    if not seen.id.startswith(VENDOR):
        return messages.not_intel(tool, name)
    return None if host.run(PMUS).stdout.strip() else messages.no_intel_pmu(tool, name)


def sections(text: str, *wanted: str) -> list[str]:
    """The ``wanted`` parts of a record whose parts have a heading line ``--- <name>``. Raises ``ValueError`` if one is not there."""
    parts = _HEADING.split(text)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    if lacking := [name for name in wanted if name not in found]:
        raise ValueError(f"the record has no part {', '.join(lacking)}")
    return [found[name] for name in wanted]
