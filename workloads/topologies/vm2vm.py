# SPDX-License-Identifier: GPL-2.0-or-later
"""Two VMs on one host, guest1 sending to guest2 through the switch."""

from __future__ import annotations

from workloads.endpoints import start_all
from workloads.topologies.base import Topology


class Vm2Vm(Topology):
    def start(self) -> None:
        first, second = (self._vm(number, cpu) for number, cpu in enumerate(self.plan.endpoints, start=1))
        self.sender, self.receiver = first, second
        self.sender_port, self.receiver_port = first.port, second.port
        start_all([first, second])
        self._check_path()

    def endpoint_roles(self) -> dict[int, str]:
        return dict.fromkeys(self.plan.endpoints, "guest")


TOPOLOGY = Vm2Vm
