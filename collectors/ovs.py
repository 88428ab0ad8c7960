# SPDX-License-Identifier: GPL-2.0-or-later
"""How to ask a running ovs-vswitchd, for the collectors that read its counters."""

from __future__ import annotations

from vsprof.testbeds.base import Testbed

APPCTL = "ovs-appctl -t /run/openvswitch/ovs-vswitchd.ctl"


def not_running(host: Testbed) -> str | None:
    """Why Open vSwitch can't be asked, or None."""
    asked = host.run(f"{APPCTL} version", check=False)
    return None if asked.status == 0 else "no ovs-vswitchd runs"


def has_pmd(host: Testbed) -> bool:
    """Whether the running ovs-vswitchd has poll-mode threads."""
    return "pmd thread" in host.run(f"{APPCTL} dpif-netdev/pmd-stats-show", check=False).stdout
