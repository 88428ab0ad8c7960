# SPDX-License-Identifier: GPL-2.0-or-later
"""How each switch's rate grows with what it is given more of, one panel for each. Both axes are logarithmic. Where several are named,
they grow together, and the axis has the first; what stands in brackets is the same in all cases of a panel. A line that does not rise with
more CPUs, or that falls with more flows, is a limit."""

from dataclasses import asdict

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import growth, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.sources import SOFTWARE


def table(result: Result) -> pd.DataFrame:
    """One row a case of each curve: `curve`, `axis`, its value `x`, and the rate, with `switch` and `n`."""
    rows = []
    for traffic, load in growth.traffics(result)[:1]:
        judged = vocabulary.judged_by(traffic)
        assert judged is not None
        where = {"traffic": traffic, "load": load, "metric": judged.metric}
        for curve in growth.curves(result):
            for x, case in curve.cases:
                one = SOFTWARE.estimate(result, case_id=case, **where)
                unit = SOFTWARE.unit(result, case_id=case, **where)
                rows.append({"curve": curve.title, "axis": curve.axis, "switch": curve.switch, "x": x, "unit": unit, **asdict(one)})
    return pd.DataFrame(rows)


missing = growth.missing


def plot(table: pd.DataFrame) -> Figure:
    return style.curves(table, "rate")
