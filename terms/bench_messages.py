# SPDX-License-Identifier: GPL-2.0-or-later
"""What the benchmarks say beside their numbers."""

from __future__ import annotations


def not_measured(collector: str, why: str) -> str:
    return f"{collector} not measured: {why}"
