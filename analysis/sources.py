# SPDX-License-Identifier: GPL-2.0-or-later
"""The three sources of numbers, by their names in the schema's column `source`."""

from __future__ import annotations

from analysis.hardware import HARDWARE
from analysis.metrics import SOFTWARE
from analysis.model import MODEL

SOURCES = {one.name: one for one in (SOFTWARE, MODEL, HARDWARE)}
PROCESSORS = {one.name: one for one in (MODEL, HARDWARE)}
"""Those that count what a processor does."""
