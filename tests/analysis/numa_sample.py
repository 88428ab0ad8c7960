# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes a SYNTHETIC result of sample.py into one whose switch's thread and memory are on either of two NUMA nodes."""

import json
from pathlib import Path

from vsprof.terms import schema

OPTIONS = {"pmd_node": ("far", "near"), "memory_node": ("far", "near")}
LINES = {("far", "far"): 6, ("far", "near"): 4, ("near", "far"): 2, ("near", "near"): 0}
"""By (pmd_node, memory_node): lines from another node that the switch's thread fills for a packet."""
PACKETS = 2000
"""Of a flood's window, see MODEL_DATA of sample.py."""
FILLS = {"memory_remote": 1, "remote_cache": 0.5, "llc_misses": 1.5}
"""What a line more of another node adds; its cycles hold all."""
CYCLES_PER_LINE = 300
NODES = {"near": 1, "far": 0}


def change(path: Path) -> Path:
    """Give the switch's thread its lines and what they cost, and the manifest the nodes that were found."""
    rows = schema.read(path / "measurements.parquet").to_pylist()
    for row in rows:
        if row["source"] == "model" and row["traffic"] == "udp_flood" and row["role"] == "switch":
            lines = LINES[row["pmd_node"], row["memory_node"]] * PACKETS
            row["value"] += lines * FILLS.get(row["name"], 0)
            if row["name"] in ("cycles", "cycles_memory"):
                row["value"] += lines * CYCLES_PER_LINE
    schema.write(path / "measurements.parquet", rows)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["facts"]["cases"] = {case["case_id"]: _facts(case["values"]) for case in manifest["cases"]}
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def _facts(values: dict[str, str]) -> dict:
    pmd, memory = NODES[values["pmd_node"]], NODES[values["memory_node"]]
    port = {"pmd": pmd, "mbufs": memory, "vhost": memory}
    guests = {f"guest{number}": {"node": 1, "hugepages": {"1": 100 + number}} for number in (1, 2)}
    return {"switch": {"nodes": {"ports": {"p1": port, "p2": port}, "mbuf_hugepages": {str(memory): 224}}}, "endpoints": guests}
