# SPDX-License-Identifier: GPL-2.0-or-later
"""Two endpoints on one host, the first sending to the second through the switch: virtual machines, or containers, as the access asks."""

from collections.abc import Sequence

from vsprof.workloads.topologies.base import Topology


class Vm2Vm(Topology):
    def start(self) -> None:
        self.sender, self.receiver = self._attach()
        self.sender_port, self.receiver_port = self.sender.port, self.receiver.port
        self._set_offloads()
        self._check_path()

    def endpoint_cpus(self) -> Sequence[int]:
        return self.plan.endpoints

    def endpoint_roles(self) -> dict[int, str]:
        return dict.fromkeys(self.plan.endpoints, "guest")


TOPOLOGY = Vm2Vm
