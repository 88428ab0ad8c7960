# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet costs the user mode of the CPU that forwards, by switch: modelled in the lab (dots with intervals), and, where it could be
counted, by this machine's processor running the same programs (diamonds), with the model's error right of it. Both share these axes on
purpose: how far they lie apart is the question. Polls in vain are taken out on both sides. CPI, in cycles per instruction,
stands on the same axis, which is linear below 0.01, so that nothing has a place on it, and logarithmic above."""

from functools import partial

import pandas as pd

from vsprof.analysis.explain_validation import Explained
from vsprof.analysis.figures.validation_events import side_by_side

PART = "switches"
plot = partial(side_by_side, counted="events per packet")


def table(explained: Explained) -> pd.DataFrame:
    """One row a switch and event, as of `Explained.drawn`."""
    drawn = explained.drawn(PART)
    return drawn if drawn.empty else drawn.assign(panel=drawn["label"], row=drawn["what"])
