# SPDX-License-Identifier: GPL-2.0-or-later
"""A flood at saturation through a switch in a lab, and windows of modelled time on it."""

import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vsprof.bench.flood import Say, standing
from vsprof.collectors.uarch_model import COLLECTOR as Model
from vsprof.runner import window
from vsprof.runner.experiment import SWITCHES, Case
from vsprof.switches.base import Switch
from vsprof.testbeds.base import MODELLED
from vsprof.testbeds.lab import Lab
from vsprof.workloads.topologies.base import Topology
from vsprof.workloads.traffic.base import Traffic


@dataclass(frozen=True)
class Counted:
    """One window."""

    rate: float
    """Packets per second out of the switch."""
    seconds: float
    cores: list[Mapping[str, Any]]
    """What the model counted, by CPU."""
    slowness: float
    """Real seconds for each modelled one, with what lies around the window."""

    @property
    def packets(self) -> float:
        return self.rate * self.seconds


class ModelledPath:
    """Two endpoints with a switch between them, in modelled time."""

    def __init__(self, topology: Topology, model: Model) -> None:
        self.topology, self.model = topology, model

    def window(self, traffic: Traffic, seconds: float, warmup: float) -> Counted:
        """``seconds`` of modelled time, behind ``warmup`` of it at least. Raises ``RunFailed`` if the traffic ended."""
        before = self.model.clock_facts()
        port, switch = self.topology.receiver_port.name, self.topology.switch
        with tempfile.TemporaryDirectory() as folder:
            into, file = Path(folder) / "w1", Path(folder) / "model" / "counted.json"
            window.measure_modelled(self.topology.host, traffic, {}, self.model, seconds, warmup, into, file)
            begin, end = (
                switch.parse_port_counters((into / f"{window.PORTS}.{at}").read_text())[port].sent_packets for at in ("begin", "end")
            )
            rate = (end - begin) / window.recorded_seconds(into, window.PORTS)
            counted = json.loads(file.read_text())["window"]
        traffic.check()
        after = self.model.clock_facts()
        wall, modelled = (after[key] - before[key] for key in ("wall_s", "modelled_s"))
        return Counted(rate, counted["seconds"], counted["cores"], wall / modelled)


@contextlib.contextmanager
def modelled(case: Case, cpu_profile: str, say: Say, switches: Mapping[str, type[Switch]] = SWITCHES) -> Iterator[ModelledPath]:
    """The path of ``case`` in a lab of its own, on a processor by that profile's name. Raises ``VsprofError``."""
    host = Lab(say=say, plugins=[Model.emulator_plugin], clock=MODELLED)
    with standing(host, case, say, switches=switches) as topology:
        model = Model(host, cpu=cpu_profile)
        try:
            model.setup()
            yield ModelledPath(topology, model)
        finally:
            model.teardown()
