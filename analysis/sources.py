# SPDX-License-Identifier: GPL-2.0-or-later
"""The three sources of numbers, by their names in the schema's column `source`."""

from vsprof.analysis import vocabulary
from vsprof.analysis.hardware import HARDWARE
from vsprof.analysis.metrics import SOFTWARE
from vsprof.analysis.model import MODEL
from vsprof.analysis.source import Source

SOURCES = {one.name: one for one in (SOFTWARE, MODEL, HARDWARE)}
PROCESSORS = {one.name: one for one in (MODEL, HARDWARE)}
"""Those that count what a processor does."""


def source_of(metric: str) -> Source:
    """Whose metric it is, by its name."""
    return next((one for one in PROCESSORS.values() if metric.startswith(one.prefix)), SOFTWARE)


def speakers(source: Source) -> tuple[str, ...]:
    """The collectors whose words are about a source's metrics."""
    apart = {one.collector for one in PROCESSORS.values()}
    return (source.collector,) if source.collector else tuple(name for name in vocabulary.collectors() if name not in apart)
