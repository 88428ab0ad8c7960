# SPDX-License-Identifier: GPL-2.0-or-later
"""How to read a report: what its words mean (reading.yaml), each only where the report has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vsprof.analysis import metrics, read
from vsprof.analysis.load import Result
from vsprof.analysis.sources import HARDWARE, MODEL

NOTES: dict[str, Any] = read(__file__)
[EQUAL_BUDGET], [TSC] = NOTES["equal budget"], NOTES["TSC"]


def notes(result: Result, own: Sequence[str] = ()) -> str:
    """The notes that this result's report needs, as a list: a notebook's own first."""
    return "\n".join(f"- {note}" for note in (*own, *_needed(NOTES, result)))


def rates_without_loss(result: Result) -> str:
    """What opens the part on such rates, and what they mean here; nothing where none was searched."""
    said = _needed(NOTES["rates without loss"], result) if metrics.searched(result) else []
    return "## Rates without loss\n" + "\n\n".join(said) if said else ""


def _needed(texts: Mapping[str, Sequence[str]], result: Result) -> list[str]:
    traffics, model = set(result.frame["traffic"].unique()), MODEL.present(result)
    needed = {
        "always": True,
        "TCP": "tcp_stream" in traffics,
        "single frames": "paced_frames" in traffics,
        "restart": "reconnect" in traffics,
        "emulated": result.emulated,
        "modelled": model,
        "modelled time": result.modelled is not None,
        "slowed": model and result.modelled is None,
        "split": model or HARDWARE.present(result),
        "last": True,
    }
    return [text for name, wanted in needed.items() if wanted for text in texts.get(name, ())]
