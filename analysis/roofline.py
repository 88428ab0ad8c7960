# SPDX-License-Identifier: GPL-2.0-or-later
"""What bounds a switch's rate: the modelled processor's width, what it waits for, or somebody else, who leaves it idle.

In the manner of S. Williams, A. Waterman and D. Patterson, Roofline: An Insightful Visual Performance Model for Multicore
Architectures (Communications of the ACM 52(4), 2009), with packets in the place of floating-point operations. What a packet asks of the
switch's processors is its instructions. A processor of frequency f and width w passes at most w * f / instructions packets a second: the
roof. At the cycles that these instructions really took it passes f / cycles: its capacity. Under it is the rate.
"""

import functools
from dataclasses import dataclass

import pandas as pd

from vsprof.analysis import messages, metrics, movers, stats, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.what_if import named, setting_of, traffics
from vsprof.terms import units

WORK = "base"
"""The part of the cycles in which nothing is waited for."""
BUSY = 0.9
"""From this share of its capacity on a switch counts as full. A poll-mode thread that finds packets at one port polls the others in vain,
which is no part of a packet's cycles: OVS-DPDK between two ports, one of which never sends, is full at 0.96."""


@dataclass(frozen=True)
class Bound:
    """What one case can reach at the most, and what it did; all but the first in packets a second."""

    case: str
    arm: str
    """Its switch and access, in words."""
    setting: str
    """What else varies, in words."""
    switch: str
    instructions: stats.Estimate
    """Of a packet, on the switch's processors."""
    roof: stats.Estimate
    """At the processor's width: every cycle ends as many instructions as can end in one."""
    without_waits: stats.Estimate
    """As the model's instructions would take without waiting for memory, branches or the kernel."""
    capacity: stats.Estimate
    """At the cycles that a packet took, with nothing else to do."""
    rate: stats.Estimate

    @property
    def full(self) -> float:
        """The rate as a share of the capacity."""
        return self.rate.median / self.capacity.median

    def words(self) -> str:
        """What bounds it, in a sentence."""
        seen, most, roof = (units.si(one.median, "packets/s") for one in (self.rate, self.capacity, self.roof))
        if self.full < BUSY:
            kept = f"{100 * self.full:.0f} % of the {most} that its processors could pass"
            return f"{seen}, {kept}: somebody else is the limit, such as an endpoint."
        waits = f"{100 * (1 - self.capacity.median / self.without_waits.median):.0f} %"
        return (
            f"{seen}, all that its processors can pass: {self.instructions.median:,.0f} instructions a packet. In {waits} of its cycles "
            f"they wait; at the processor's full width {roof} would pass."
        )


@functools.cache
def bounds(result: Result) -> tuple[Bound, ...]:
    """Of each case in which nothing of the processor is changed, under the flood that is told first; in the result's order."""
    found = (
        _bound(result, case, traffic=traffic, load=load)
        for traffic, load in _floods(result)[:1]
        for case in result.cases.index.astype(str)
        if not result.changed[case]
    )
    return tuple(one for one in found if one)


def answer(result: Result) -> str:
    """A line for each case."""
    lines = []
    for one in bounds(result):
        lines.append(f"- {named(one.switch, one.setting, '**')}: {one.words()}")
    return "\n".join(lines)


def missing(result: Result) -> list[str]:
    if not _floods(result):
        return [messages.NO_FLOOD]
    return [] if bounds(result) else [messages.NO_MODEL_NUMBERS]


def _floods(result: Result) -> list[tuple[str, str]]:
    return [pair for pair in traffics(result) if pair[0] in vocabulary.of_kind("flood")]


def _bound(result: Result, case: str, **where: object) -> Bound | None:
    if not (processor := movers.processor(result, case)):
        return None
    cpus = int(result.values[case].get("switch_cpus", 1))
    hertz, width = cpus * float(processor["frequency_hz"]), float(processor["values"]["core.width"]["value"])
    per_packet = {
        name: stats.estimate(movers.per_packet(result, name, case_id=case, **where))
        for name in ("instructions", "cycles", f"cycles_{WORK}")
    }
    rate = metrics.SOFTWARE.estimate(result, case_id=case, metric="packet_rate_received", **where)
    if not rate.n or not all(one.n and one.median > 0 for one in per_packet.values()):
        return None
    instructions, cycles, work = per_packet.values()
    arm, setting = setting_of(result, case)
    at = {"roof": (hertz * width, instructions), "without_waits": (hertz, work), "capacity": (hertz, cycles)}
    bounds = {name: stats.over(*one) for name, one in at.items()}
    return Bound(case, arm, setting, result.cases.loc[case, "switch"], instructions, **bounds, rate=rate)


def table(result: Result) -> pd.DataFrame:
    """One row a case and bound (`roof`, `without_waits`, `capacity`, `rate`), in packets a second, with the packet's `instructions`."""
    rows = [
        {
            "switch": one.switch, "label": one.arm, "setting": one.setting, "bound": name, "unit": "packets/s",
            "instructions": one.instructions.median,
            **{end: getattr(getattr(one, name), end) for end in ("median", "low", "high", "n")},
        }
        for one in bounds(result)
        for name in ("roof", "without_waits", "capacity", "rate")
    ]  # fmt: skip
    return pd.DataFrame(rows)
