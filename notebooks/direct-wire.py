# %% [markdown]
# # A direct wire: what is the ceiling for a switch?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, sections

report = sections.begin(
    result_dir, explain.answer, "The same program, rings and endpoints. The wire hands on each frame without looking at it."
)

# %%
report.published(
    "T12 (Loftus, 2016) shows a direct path between two VMs as a proof of concept, without a number. What can be measured is how near a "
    "switch comes to it.",
)
report.throughput("The wire is what a switch could reach if it cost nothing to know where a frame goes.")
report.stages("With the wire *parse* and *lookup* have nothing to do. What is left are the two rings.")
report.of_options()
