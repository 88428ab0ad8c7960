# SPDX-License-Identifier: GPL-2.0-or-later
"""The published figures (published.yaml), which of our cases stand beside them, and why our ratios differ from T1's (looks.yaml)."""

import functools
from dataclasses import dataclass, field

from vsprof.analysis import looks, read, stats
from vsprof.analysis.load import Result, worded
from vsprof.analysis.sources import MODEL, source_of


@dataclass(frozen=True)
class Published:
    """One published figure: a ratio of `case` over `base`, the range low..high that its words allow, or words alone."""

    id: str
    target: str
    what: str
    topologies: list[str]
    source: str
    machine: str
    compared: str
    figure: str
    case: dict[str, str]
    base: dict[str, str]
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    bound: str = ""
    needs: str = ""
    rates: dict[str, float] = field(default_factory=dict)
    latencies: dict[str, dict[str, float]] = field(default_factory=dict)
    """Seconds by metric of ours, of each set-up that was published."""
    ours: list[dict[str, str]] = field(default_factory=list)


EVERY = {entry["id"]: Published(**entry) for entry in read(__file__)}
"""By their ids."""


@dataclass(frozen=True)
class Comparison:
    """A published figure with what we measured for it: one ratio a setting and metric, none if we have no number."""

    published: Published
    traffic: str
    load: str
    metric: str
    label: str
    ratio: stats.Estimate
    role: str = ""
    """Whose work a number of the modelled processor is; empty: the whole path's."""

    @property
    def modelled(self) -> bool:
        """True if ours is the modelled processor's: it shares no axis with the others."""
        return source_of(self.metric) is MODEL


def beside(result: Result) -> list[Comparison]:
    """Each published figure of this result's topology and cases, beside our own ratio.

    One that compares accesses alone (T3) is set beside a result only if the result varies accesses, one of switches alone only if not.
    """
    varies = "access" if result.cases.groupby("switch")["access"].nunique().max() > 1 else "switch"
    found = []
    for one in EVERY.values():
        # What was published in words alone stands in its notebook.
        asked = (one.ours or one.needs) and (varies in one.case or one.case.keys() not in ({"switch"}, {"access"}))
        for base, case in pairs(result, one.base, one.case) if asked else []:
            if result.cases.loc[case, "topology"] not in one.topologies:
                continue
            label = worded({name: value for name, value in result.told[case].items() if name not in {**one.case, **one.base}})
            for ours in one.ours:
                found.append(Comparison(one, label=label, ratio=source_of(ours["metric"]).ratio(result, case, base, **ours), **ours))
            if not one.ours:
                found.append(Comparison(one, "", "", "", label, stats.NOTHING))
    return found


def pairs(result: Result, base: dict[str, str], case: dict[str, str]) -> list[tuple[str, str]]:
    """(base, case) ids of the cases that match the two and agree in every other varied value.

    Where a switch is offered with several accesses, its fastest stands for it, the last: vhost-net for kernel OVS.
    """
    groups: dict[str, list[str | None]] = {}
    for id_, row in result.cases.iterrows():
        others = {name: value for name, value in result.told[id_].items() if name not in {**base, **case}}
        values = {**result.values[id_], "switch": row["switch"], "access": row["access"]}
        group = groups.setdefault(worded(others), [None, None])
        group[:] = [str(id_) if wanted.items() <= values.items() else before for wanted, before in zip((base, case), group, strict=True)]
    return [(below, above) for below, above in groups.values() if below and above and below != above]


T1 = {"base.switch": "kernel-ovs", "other.switch": "ovs-dpdk", "other.topology": "vm2vm"}
"""Its own pair."""
LOOKS = [looks.Row(f"Published: {one.figure}.", only=T1, **row) for one in EVERY.values() if (row := looks.ROWS["published"].get(one.id))]
NONE = "T1 compares two VMs over kernel OVS and over OVS-DPDK; this result does not have both."
markdown = functools.partial(looks.explained, looks=LOOKS, none=NONE)
"""The differences as a list, or why there is nothing to set beside T1."""
