# %% [markdown]
# # Which part of the processor makes the difference?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import figures, sections, what_if

report = sections.begin(result_dir, what_if.answer)

# %% [markdown]
# ## One change at a time
# Each row changes one thing of the modelled processor, and nothing else. Latencies are in cycles of the core, so a higher frequency alone
# would make the memory quicker, too: the row that changes it leaves the memory's nanoseconds as they were. A value that the profile fits or
# assumes is as uncertain as before; what is shown is how much a switch cares.

# %%
report.figures("what_if")
report.bounds()
report.cpu_use("Which CPU is full decides what a change can do: a switch that waits for a guest gains nothing from itself.")
report.cycles()
report.what_was_run(
    "The processor is a profile of `collectors/uarch_model`, with the named values changed; the manifest has all of them (`facts.cases`)."
)
report.rest()
