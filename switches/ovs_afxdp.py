# SPDX-License-Identifier: GPL-2.0-or-later
"""Open vSwitch's user-space datapath over AF_XDP: a poll-mode thread takes frames from rings that it shares with the kernel.

On a veth pair the kernel copies (generic mode), and a system call sends: zero copy takes a network card's driver.
"""

from vsprof.switches.ovs import AFXDP
from vsprof.switches.ovs_userspace import OvsUserspace


class OvsAfxdp(OvsUserspace):
    words, rank, colour = "OVS over AF_XDP", 40, 5

    def settings(self) -> dict[str, str]:
        return {"pmd-cpu-mask": hex(1 << self.plan.switch), "pmd-perf-metrics": "true"}

    def interface(self, name: str) -> str:
        return f" -- set Interface {name} {AFXDP}"


SWITCH = OvsAfxdp
