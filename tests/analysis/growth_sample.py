# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes an experiment in which switches grow out of a SYNTHETIC result: made-up numbers, never measured anywhere."""

import json
from pathlib import Path
from types import ModuleType

from vsprof.terms import schema

FLOOD = ("udp_flood", "saturation")
CHANGES = [{}, {"pairs": 2}, {"pairs": 4}, {"ways": "both"}, {"pairs": 2, "ways": "both"}, {"pairs": 4, "ways": "both"}]
GAINS = {"1": 1.0, "2": 1.5, "4": 2.25}
"""Twice the pairs are 1.5 times the packets."""


def write(sample: ModuleType, path: Path) -> Path:
    """Write the result into ``path``."""
    options = {"pairs": tuple(GAINS), "ways": ("one", "both")}
    sample.write(path, traffics=[FLOOD], options=options, repetitions=6, own="uarch_model")
    rows = schema.read(path / "measurements.parquet").to_pylist()
    for row in rows:
        if row["name"] == "packet_rate_received":
            row["value"] *= GAINS[row["pairs"]]
    schema.write(path / "measurements.parquet", rows)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["experiment"]["changes"] = CHANGES
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path
