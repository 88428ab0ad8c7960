# SPDX-License-Identifier: GPL-2.0-or-later
"""How to read a report: what its words mean (reading.yaml), each only where the report has them."""

from collections.abc import Sequence

from vsprof.analysis import read
from vsprof.analysis.describe import Text
from vsprof.analysis.load import Result
from vsprof.analysis.sources import HARDWARE, MODEL

NOTES: dict[str, list[str]] = read(__file__)
[EQUAL_BUDGET], [TSC] = NOTES["equal budget"], NOTES["TSC"]


def notes(result: Result, own: Sequence[str] = ()) -> Text:
    """The notes that this result's report needs, as a list: a notebook's own first."""
    traffics, model = set(result.frame["traffic"].unique()), MODEL.present(result)
    needed = {
        "always": True,
        "TCP": "tcp_stream" in traffics,
        "single frames": "paced_frames" in traffics,
        "restart": "reconnect" in traffics,
        "emulated": result.emulated,
        "modelled": model,
        "slowed": model and result.modelled is None,
        "split": model or HARDWARE.present(result),
        "last": True,
    }
    chosen = [note for name, wanted in needed.items() if wanted for note in NOTES[name]]
    return Text("\n".join(f"- {note}" for note in (*own, *chosen)))
