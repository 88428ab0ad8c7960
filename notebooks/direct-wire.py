# %% [markdown]
# # A direct wire: what is the ceiling for a switch?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, sections
result = sections.begin(
    result_dir, explain.answer, "The same program, rings and containers. The wire hands on each frame without looking at it."
)

# %%
sections.published(
    result,
    "T12 (Loftus, 2016) shows a direct path between two VMs as a proof of concept, without a number. What can be measured is how near a "
    "switch comes to it.",
)
sections.throughput(result, "The wire is what a switch could reach if it cost nothing to know where a frame goes.")
sections.stages(result, "With the wire *parse* and *lookup* have nothing to do. What is left are the two rings.")
sections.polling(result)
sections.cpu_use(result)

# %%
sections.of_options(result)
