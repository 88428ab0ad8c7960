# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet costs while there is more of something, as multiples of what it costs where there is least of it: instructions, cycles per
instruction (CPI), and lines that were fetched out of another core's cache. All threads of the packet path together, without polls that
found nothing. Where instructions grow the switch has more to do for each packet; where CPI grows it waits more, for memory or for lines
that another core has changed. Both axes are logarithmic."""

from dataclasses import asdict

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import growth, style
from vsprof.analysis.load import Result
from vsprof.analysis.sources import MODEL

SOURCE = "model"


def table(result: Result) -> pd.DataFrame:
    """One row a case and cost of each curve: `curve`, `axis`, its value `x`, `cost`, and the multiple of the first case's."""
    rows = []
    for traffic, load in growth.traffics(result)[:1]:
        for curve in growth.curves(result):
            for (x, case), (counter, words) in ((point, cost) for point in curve.cases for cost in growth.COSTS.items()):
                metric = growth.metric_of(counter, traffic)
                one = MODEL.ratio(result, case, curve.cases[0][1], metric=metric, traffic=traffic, load=load, role="path")
                rows.append(
                    {
                        "curve": curve.title,
                        "axis": curve.axis,
                        "switch": curve.switch,
                        "x": x,
                        "cost": words,
                        "unit": "ratio",
                        **asdict(one),
                    }
                )
    # Of nothing there is no multiple.
    return pd.DataFrame([row for row in rows if row["median"] > 0])


missing = growth.missing


def plot(table: pd.DataFrame) -> Figure:
    return style.curves(table.assign(unit=""), "multiple of the first case's", line="cost")
