# %% [markdown]
# # Which receive path for an endpoint? Mergeable, non-mergeable, vector, in-order, packed

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, sections

report = sections.begin(
    result_dir,
    explain.answer,
    "Frames come to the switch by a port, the switch hands them to the endpoint, and the endpoint sends them back. The path is the one that "
    "the endpoint's driver says it took: a run in which it took another has failed.",
)

# %%
report.published(
    "T9 (Yao Lei, 2017) reports for PVP: when forwarding io, the vector path is about 15 % faster than the mergeable one; when forwarding mac, "
    "all three are almost the same. It had a network card at 10 Gbit/s. In topology pvp a device in memory stands in its place, so the switch "
    "and the endpoint alone decide; in pvp_wire there is a card, which the lab emulates.",
)
report.throughput("Packets that came back. When it forwards mac, the endpoint also writes both addresses, which costs every path the same.")
report.stages(
    "The switch's thread does the same for each path of the endpoint, but for the rings: a packed ring has another layout, and a "
    "mergeable one says how many buffers a frame took. A switch without such counters has no bar here.",
)
report.of_options(
    "*No network card* in topology pvp: the port is DPDK's net_null, which hands out zeros as fast as it is asked and never ends. A card "
    "adds its driver's cycles and its cache misses, the same for every path; in pvp_wire those of the driver are counted.",
)
