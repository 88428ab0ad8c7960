# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of the options of switches and endpoints."""

from __future__ import annotations

from collections.abc import Iterable

from terms.errors import BadInput


def of_no_case(option: str, owners: Iterable[str]) -> BadInput:
    return BadInput(f"{option} is an option of no case here: compare one that has it ({', '.join(owners)}), or leave the option out")
