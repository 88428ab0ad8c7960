# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the time of each CPU goes, as a share of the window: user, kernel, softirq, hard interrupts, running a guest, idle, and what a
hypervisor gave to others (steal; only where there was some). Packets are moved by cpu1, and by the CPUs behind it where a case has several
`switch_cpus`: the vhost workers (in whose context the kernel's datapath runs) or the poll-mode threads are pinned there. CPU time as
/proc/stat accounts it: what a bar lacks to 1 went to no state there. A poll-mode thread counts as busy even when it polls for nothing: what
it does with its time is in the next figure."""

import textwrap

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import metrics, style
from vsprof.analysis.load import Result
from vsprof.analysis.sources import SOFTWARE

# Results from before it was counted have no `steal`.
NEEDS = tuple(f"cpu_{state}_seconds" for state in metrics.STATES if state != "steal")
LETTERS = {1: 90, 2: 48, 3: 28}
"""That fit above a panel, by the number of columns."""


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic, CPU and state; fractions of one CPU, `row` names case and CPU."""
    shares = SOFTWARE.summary(result, [f"cpu_{state}" for state in metrics.STATES])
    # What each CPU was for the manifest says.
    roles = {case: result.cpu_roles(case) for case in result.cases.index}
    words = [roles[case].get(cpu, "") for case, cpu in zip(shares["case_id"], shares["cpu"], strict=True)]
    names = [f"cpu{cpu} {word}".strip() for cpu, word in zip(shares["cpu"], words, strict=True)]
    return shares.assign(state=shares["metric"].str.removeprefix("cpu_"), cpu_role=words, row=names)


def plot(table: pd.DataFrame) -> Figure:
    cases = table["label"].unique()
    grid = [(pair, case) for pair in style.traffics(table) for case in cases]
    columns = min(len(cases), 3 if len(cases) % 3 == 0 and max(map(len, cases)) <= LETTERS[3] else 2)
    figure, axes = style.grid(len(grid), columns, 0.55 + 0.27 * table["cpu"].nunique())
    for (pair, case), one in zip(grid, axes.ravel(), strict=False):
        part = table[(table["traffic"] == pair[0]) & (table["load"] == pair[1]) & (table["label"] == case)]
        style.stacks(one, part.sort_values("cpu", kind="stable"), "state", style.STATES)
        one.set_title(f"{style.traffic_name(*pair)}\n{textwrap.fill(case, LETTERS[columns])}", fontsize=8.5)
        one.set_xlim(0, 1)
    for one in axes[-1]:
        one.set_xlabel("share of the window")
    return style.legend_above(figure, style.STATES)
