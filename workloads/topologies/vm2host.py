# SPDX-License-Identifier: GPL-2.0-or-later
"""One endpoint sending to its host, through the switch's local port into the host's network stack."""

from collections.abc import Sequence

from vsprof.workloads.endpoints.host_end import HostEnd
from vsprof.workloads.topologies.base import Topology


class Vm2Host(Topology):
    ends_in_host = True
    # frame-probe holds both ends of a path.
    endpoints = ("kernel", "testpmd")

    def start(self) -> None:
        [guest] = self._attach()
        local = self.switch.local_port()
        host = HostEnd(self.host, local, self.plan.endpoints[1])
        self._made.append(host)
        self.sender, self.receiver = guest, host
        self.sender_port, self.receiver_port = guest.port, local
        self._set_offloads()
        self._check_path()

    def endpoint_cpus(self) -> Sequence[int]:
        return self.plan.endpoints[:1]

    def endpoint_roles(self) -> dict[int, str]:
        guest_cpu, host_cpu = self.plan.endpoints
        return {host_cpu: "host-other", guest_cpu: "guest"}


TOPOLOGY = Vm2Host
