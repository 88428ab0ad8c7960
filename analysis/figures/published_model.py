# SPDX-License-Identifier: GPL-2.0-or-later
"""Published ratios of processor events (diamonds; none where the text gives no number) beside those of the modelled processor (dots
with intervals), the packet path's unless a role is named. A ratio is the case named first over the second; 1 means no difference. Miss
rates are misses per load or store, TLB misses those of the first level for data. A real processor's counters count idle polling, too: so
ours are there with polls that found nothing, and without them where they were counted by themselves."""

import pandas as pd

from vsprof.analysis import model, style
from vsprof.analysis.figures import published
from vsprof.analysis.load import Result
from vsprof.analysis.published import Comparison, beside
from vsprof.analysis.sources import MODEL

NEEDS = ("cycles", "instructions", "loads", "stores", *model.RATES)
SOURCE = "model"
plot = published.plot


def table(result: Result) -> pd.DataFrame:
    """One row a published figure and metric of ours, as of the figure `published`; empty where the model counted nothing."""
    if not MODEL.present(result):
        return pd.DataFrame()
    sent = set(style.traffics(result.own_numbers))
    left_in = bool(model.polling_left_in(result))
    ours = [one for one in beside(result) if one.modelled and (one.traffic, one.load) in sent]
    return pd.DataFrame([_row(one) for one in ours if one.metric.endswith(model.WITH_POLLING) or not left_in])


def _row(one: Comparison) -> dict[str, object]:
    row, metric = published.row_of(one), one.metric.removesuffix(model.WITH_POLLING)
    ours = f", role {one.role}" if one.role else ""
    ours += ", without idle polling" if metric == one.metric else ", with idle polling"
    text = f"{one.published.target} {one.published.what}, {row['traffic']}\n{row['compared']}{ours}"
    return {**row, "row": text, "ours": model.PUBLISHED[metric] + ours}
