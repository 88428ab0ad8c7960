# SPDX-License-Identifier: GPL-2.0-or-later
"""What a microbenchmark's iteration and a switch's packet take: in the lab, by the modelled processor's clock (dots), and the same
program natively, by this machine's clock (diamonds); right of it the model's error. Both share these axes on purpose: how far they lie
apart is the question. The left axes are logarithmic; on the right an error beyond 200 % is written, but not drawn."""

from functools import partial

import pandas as pd

from vsprof.analysis.explain_validation import Explained
from vsprof.analysis.figures.validation_events import side_by_side
from vsprof.analysis.validation import TIME_PARTS

PART = "microbenchmarks"
"""Whose reason is told where there is nothing to draw."""
PANELS = {"microbenchmarks": "microbenchmarks: an iteration", "switches": "switches: a packet"}
plot = partial(side_by_side, counted="nanoseconds")


def table(explained: Explained) -> pd.DataFrame:
    """One row an item, as of `Explained.drawn`."""
    parts = [explained.drawn(part).assign(panel=PANELS[part]) for part in TIME_PARTS if explained.found.of(part)]
    return pd.concat(parts, ignore_index=True).assign(row=lambda rows: rows["label"]) if parts else pd.DataFrame()
