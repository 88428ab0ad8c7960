# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes an experiment of changes of the processor out of a SYNTHETIC result: made-up numbers, never measured anywhere."""

import json
from pathlib import Path
from types import ModuleType

from vsprof.terms import schema

FLOOD = ("udp_flood", "saturation")
GAINS = {("ovs-dpdk", "6"): 1.5, ("kernel-ovs", "24"): 0.7}
"""By switch and latency of L2; without a change it is 12."""


def write(sample: ModuleType, path: Path, **more: object) -> Path:
    """Write the result into ``path``."""
    sample.write(path, traffics=[FLOOD], options={"cpu.l2.latency": ("12", "6", "24")}, **more)
    rows = schema.read(path / "measurements.parquet").to_pylist()
    for row in rows:
        if row["name"] == "packet_rate_received":
            row["value"] *= GAINS.get((row["switch"], row["cpu.l2.latency"]), 1.0)
    schema.write(path / "measurements.parquet", rows)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["experiment"]["changes"] = [{}, {"cpu.l2.latency": "x0.5"}, {"cpu.l2.latency": "x2"}]
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path
