# SPDX-License-Identifier: GPL-2.0-or-later
"""What the datapath's flow table did (dpctl/show -s), and how often ovs-vswitchd passed its coverage counters.

A hit was forwarded by the datapath itself, a miss went up to ovs-vswitchd (an upcall), a lost one did not get there.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from vsprof.collectors.base import Recorded
from vsprof.collectors.ovs import Asker, not_running
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords

SEPARATOR = "--- coverage/show"
_LOOKUPS = re.compile(r"lookups: hit:(\d+) missed:(\d+) lost:(\d+)")
_MASKS = re.compile(r"masks: hit:(\d+)")
_FLOWS = re.compile(r"^  flows: (\d+)", re.MULTILINE)
_TOTAL = re.compile(r"^(\w+) .*\btotal: (\d+)$", re.MULTILINE)


class OvsDatapath(Asker):
    words = "OVS's flow table"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "flow_hits": NumberWords("packets that the datapath forwards by itself", better="more"),
        "flow_misses": NumberWords("packets that go up to ovs-vswitchd (upcalls)", better="less"),
        "flow_lost": NumberWords("packets lost on the way up to ovs-vswitchd", better="less"),
        "flows_installed": NumberWords("flows in the table at the end of the window"),
        "masks_hit": NumberWords("masks looked at for all packets", better="less"),
        "coverage_*": NumberWords("events of this kind, by ovs-vswitchd's own coverage counters"),
    }
    asks = ("dpctl/show -s", SEPARATOR, "coverage/show")

    def not_of_this_switch(self) -> str | None:
        return not_running(self.host)

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        before, after = read(recorded.begin), read(recorded.end)
        for name, value in after.items():
            unit = "packets" if name.startswith("flow_") else "events"
            # A coverage counter that was never passed is not printed: before its first time it was zero.
            gained = value - before.get(name, 0)
            yield Number(name, gained, unit, "switch", None, "all", recorded.seconds, recorded.seconds)
        if flows := _FLOWS.search(recorded.end):
            yield Number("flows_installed", int(flows[1]), "flows", "switch")


def read(text: str) -> dict[str, int]:
    """The flow table's and the coverage counters' totals. Raises ``ValueError`` where there is no flow table."""
    datapath, _, coverage = text.partition(SEPARATOR)
    lookups = _LOOKUPS.findall(datapath)
    if not lookups:
        raise ValueError("not dpctl/show: no line of lookups")
    # Without it each counter would seem to have started at zero when the window began.
    if "Event coverage" not in coverage:
        raise ValueError("not coverage/show: no line of event coverage")
    counters = {name: sum(int(one[i]) for one in lookups) for i, name in enumerate(("flow_hits", "flow_misses", "flow_lost"))}
    if masks := _MASKS.findall(datapath):
        counters["masks_hit"] = sum(map(int, masks))
    return {**counters, **{f"coverage_{name}": int(total) for name, total in _TOTAL.findall(coverage)}}


COLLECTOR = OvsDatapath
