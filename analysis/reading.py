# SPDX-License-Identifier: GPL-2.0-or-later
"""How to read a report: what its words mean, each only where the report has them."""

from __future__ import annotations

from collections.abc import Sequence

from vsprof.analysis.describe import Text
from vsprof.analysis.load import Result
from vsprof.analysis.sources import HARDWARE, MODEL

ALWAYS = (
    "*Interval*: 95 %, from resampling repetitions and then the windows inside them; of a ratio, from resampling the repetitions of both "
    "cases together, as they ran interleaved. Two cases are called different only if the interval of their ratio excludes 1; otherwise the "
    "difference is called not significant.",
)
TCP = (
    "*Per packet, per megabit*: a flood's counts are divided by packets received. TCP's are divided by data, because two switches need not "
    "mean the same by a packet: one passes super-packets of up to 64 KB, the other MTU-sized ones.",
)
FRAMES = (
    "*Not timed*: frames that frame-probe found right after it had been away from its own CPU itself. Many of them mean that the host was "
    "not quiet.",
    "*99 %, longest* are of windows of a few thousand frames each; a single interruption of either CPU makes the longest.",
)
RESTART = (
    "*Came back*: whether any frame arrived within the time that the experiment gives, counted from when the switch said that it runs "
    "again.",
    "*Outage*: the longest time without a frame, from before the kill to after the return. It is empty where nothing came back, for it has "
    "no end.",
    "*The switch was away*: measured by commands on the host, which take some tens of milliseconds themselves. The outage is measured "
    "by the frames alone.",
    "*Lost*: sent by the probe's pace and never received; frames that found the sender's ring full are among them.",
)
EMULATED = (
    "*Emulated lab*: all software is the real thing and the processor is emulated. Which thread does what, who sleeps and is woken, and "
    "how large packets are carries over. Rates, latencies, CPU shares, and how often something happens depend on how fast the emulator "
    "runs each kind of instruction: a ratio of them may not carry over.",
)
MODELLED = (
    "*Modelled processor*: its counts are those of real software on a model of another processor than this machine's; CPI and cycles are "
    "estimates.",
)
SLOWED = ("*Windows of the model*: the host ran far slower in them, so its timers tick more often per packet.",)
SPLIT = (
    "*Parts of a ratio*: cycles = instructions × CPI, so a ratio of cycles is a product of two; CPI is a sum over causes, and the cycles "
    "of a path one over roles, each of which is given the factor that makes all of them multiply to the whole (the logarithmic mean "
    "Divisia index). A part says where cycles went, not what would happen without it: a cause taken away lets others grow.",
)
LAST = (
    "*Published figures* belong to their machines; ratios are compared, not sizes.",
    "*Rounding* happens only when shown; `measurements.parquet` holds every number as it was measured.",
)


EQUAL_BUDGET = "*Equal budget*: one CPU moves packets in each case. So the cases differ in the switch, and not in the CPUs it was given."
TSC = (
    "*Cycles per packet* are the time-stamp counter's. The switch's own thread counts them while it has packets. The counter runs at one "
    "rate, whatever the core's, and waiting for memory is in it."
)
"""Notes that several notebooks ask for."""


def notes(result: Result, own: Sequence[str] = ()) -> Text:
    """The notes that this result's report needs, as a list: a notebook's own first."""
    traffics = set(result.frame["traffic"].unique())
    chosen = [
        *ALWAYS,
        *(TCP if "tcp_stream" in traffics else ()),
        *(FRAMES if "paced_frames" in traffics else ()),
        *(RESTART if "reconnect" in traffics else ()),
        *(EMULATED if result.emulated else ()),
        *(MODELLED if MODEL.present(result) else ()),
        *(SLOWED if MODEL.present(result) and result.modelled is None else ()),
        *(SPLIT if MODEL.present(result) or HARDWARE.present(result) else ()),
        *LAST,
    ]
    return Text("\n".join(f"- {note}" for note in (*own, *chosen)))
