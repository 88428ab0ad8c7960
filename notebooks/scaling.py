# %% [markdown]
# # How does a switch grow?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import figures, growth, sections

report = sections.begin(result_dir, growth.answer)

# %% [markdown]
# ## More of one thing at a time
# Each panel gives the switch more of one thing, or of several at once. A switch that grew perfectly with its CPUs would double with them;
# one that did not mind flows or rules would stay where it is.

# %%
report.figures("growth")

# %% [markdown]
# ## What a packet then costs
# A rate can stay behind for three reasons: a packet takes more instructions, the same instructions take longer, or a CPU that moves frames
# has nothing to do. The first two are here, the third is in the table of CPUs below.

# %%
report.figures("growth_costs")
report.cpu_use(
    "A CPU of the switch that is not busy gets no frames, whatever it could do. One that is full beside a full sender may have been slowed by the sender."
)

# %% [markdown]
# ## Every change beside the unchanged case
# Also those that are no question of more or less, such as another cache of flows.

# %%
report.figures("what_if")
report.cycles()
report.what_was_run("Every change is one of the experiment's; the manifest has the values of each case.")
report.rest()
