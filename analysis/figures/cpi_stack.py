# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimated cycles of the modelled processor by what they went to: left per unit of data, right per instruction (CPI). Base: instructions
that wait for nothing. L2, LLC (another core's caches among it), memory: data from there. Fetch: instructions from beyond L1I. DTLB, ITLB:
translating addresses. Branches: mispredicted ones. Mode: system calls, interrupts, entering guests, atomic instructions and pauses. All
threads of the packet path together (host-other is left out, but in vm2host, where the host is an endpoint); polls that found nothing are
taken out unless it says otherwise here. Parts are drawn in proportion, so that they sum to the number: medians alone need not."""

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import model, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.sources import MODEL

NEEDS = ("cycles", "instructions")
SOURCE = "model"
CAUSES = dict(zip(model.CYCLES, style.CAUSES, strict=True))


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic, metric and cause ("cycles": the sum); cycles per unit of data, and cycles per instruction."""
    cpi = ["model_cpi", *(f"model_cpi_{part}" for part in model.PARTS)]
    found = MODEL.summary(result, [*MODEL.per_data(*model.CYCLES, "cycles"), *cpi], role="path")
    found = found[found["traffic"].isin(list(vocabulary.per_data()))]
    short = found["metric"].str.removeprefix("model_").str.replace(r"_per_\w+$", "", regex=True)
    per = short.str.startswith("cpi").map({True: "instruction", False: "data"})
    return found.assign(per=per, cause=short.str.replace(r"^cpi", "cycles", regex=True).map(CAUSES).fillna("cycles"))


def plot(table: pd.DataFrame) -> Figure:
    figure, rows = style.by_traffic(table, 2, style.bar_height(table["label"].nunique()))
    for (left, right), part, traffic in rows:
        per_data = part["per"] == "data"
        style.stacked(left, part[per_data], "cause", f"estimated cycles per {style.unit_of_data(traffic)}")
        style.stacked(right, part[~per_data], "cause", "estimated cycles per instruction (CPI)")
        style.thousands(left)
    return style.legend_above(figure, style.CAUSES, columns=9)
