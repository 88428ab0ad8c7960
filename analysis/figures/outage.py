# SPDX-License-Identifier: GPL-2.0-or-later
"""The longest time without a frame when the switch is killed and started again, as bars [seconds]. The diamond is when the
switch said that it runs again, counted from the kill: what lies behind it is the reconnection, and where it lies behind the bar, frames
flowed before it said so. A row without a bar did not come back while it was waited for."""

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import metrics, style
from vsprof.analysis.load import Result
from vsprof.analysis.sources import SOFTWARE

NEEDS = tuple(metrics.OUTAGE)


def table(result: Result) -> pd.DataFrame:
    """One row a case and metric of the outage."""
    return SOFTWARE.summary(result, list(metrics.OUTAGE))


def plot(table: pd.DataFrame) -> Figure:
    cases = table.drop_duplicates("label").set_index("label")[["switch", "access"]]
    outages, away = (table[table["metric"] == metric].set_index("label").reindex(cases.index) for metric in ("outage", "switch_away"))
    figure, [[one]] = style.panels([style.bar_height(len(cases))])
    style.bars(one, outages.assign(**cases), "", "", cases.index)
    one.set_xlim(0, 1.15 * float(pd.concat([away["median"], outages["median"], outages["high"]]).max()))
    one.plot(away["median"], range(len(cases)), "D", ms=6, color="white", mec=style.INK, label="the switch runs again")
    for place, (outage, end) in enumerate(zip(outages["median"], away["median"], strict=True)):
        if pd.isna(outage):
            one.text(end, place, "   did not come back", va="center", style="italic", color=style.INK)
    one.set_xlabel("longest time without a frame (s)")
    return style.legend_above(figure)
