# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the time of each CPU goes, as a share of the window: user, kernel, softirq, hard interrupts, running a guest,
idle. One CPU moves packets in each case: cpu1, on which the vhost workers (in whose context the kernel's datapath
runs) or the poll-mode thread are pinned. CPU time as /proc/stat accounts it: what a bar lacks to 1 went to no
state there. A poll-mode thread counts as busy even
when it polls for nothing: what it does with its time is in the next figure."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import metrics, style
from analysis.load import Result
from analysis.sources import SOFTWARE

NEEDS = tuple(f"cpu_{state}_seconds" for state in metrics.STATES)
WALL_CLOCK = True


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic, CPU and state; fractions of one CPU, `row` names case and CPU."""
    shares = SOFTWARE.summary(result, [f"cpu_{state}" for state in metrics.STATES])
    roles = _roles(result)
    words = [roles.get((case, cpu), "") for case, cpu in zip(shares["case_id"], shares["cpu"], strict=True)]
    names = [f"cpu{cpu} {word}".strip() for cpu, word in zip(shares["cpu"], words, strict=True)]
    return shares.assign(state=shares["metric"].str.removeprefix("cpu_"), cpu_role=words, row=names)


def plot(table: pd.DataFrame) -> Figure:
    pairs = style.traffics(table)
    cases = list(dict.fromkeys(table["label"]))
    columns = min(len(cases), 3 if len(cases) % 3 == 0 else 2)
    grid = [(pair, case) for pair in pairs for case in cases]
    rows = -(-len(grid) // columns)
    figure, axes = style.panels([0.55 + 0.27 * table["cpu"].nunique()] * rows, columns, sharex=True)
    for (pair, case), one in zip(grid, axes.ravel(), strict=False):
        part = table[(table["traffic"] == pair[0]) & (table["load"] == pair[1]) & (table["label"] == case)]
        style.stacks(one, part.sort_values("cpu", kind="stable"), "state", style.STATE_COLOURS, style.STATE_HATCHES)
        one.set_title(f"{style.traffic_name(*pair)}\n{case}", fontsize=8.5)
        one.set_xlim(0, 1)
    for empty in axes.ravel()[len(grid) :]:
        empty.set_visible(False)
    for one in axes[-1]:
        one.set_xlabel("share of the window")
    style.legend_above(figure, axes.ravel(), list(style.STATE_COLOURS))
    return figure


def _roles(result: Result) -> dict[tuple[str, int], str]:
    """What each CPU was for: the manifest says, run by run."""
    runs = result.manifest.get("runs", [])
    return {(run["case_id"], int(cpu)): role for run in runs for cpu, role in (run.get("cpu_roles") or {}).items()}
