# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes vhost-switch of the OVS-DPDK of a SYNTHETIC result, with counters of its stages: made-up numbers, never measured anywhere."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from vsprof.terms import schema

PACKETS = 140_000.0
STAGES = {"dequeue": 40.0, "parse": 10.0, "lookup": 15.0, "enqueue": 60.0, "other": 0.0}
"""TSC cycles per packet."""
RENAMED = {"ovs-dpdk": "vhost-switch", "vhost-user": "virtio-user"}


def change(path: Path, traffic: str = "udp_flood", topology: str = "", *, pmu: bool = False) -> Path:
    """Rewrite the result in ``path``. ``traffic`` and ``topology`` are what the flood and its topology are called from now on; with ``pmu``
    two cache misses per packet were counted in the stage enqueue."""
    rows = [_renamed(row, traffic, topology) for row in schema.read(path / "measurements.parquet").to_pylist()]
    kept = [row for row in rows if row["switch"] != "vhost-switch" or row["collector"] not in ("ovs_pmd", "ovs_datapath")]
    schema.write(path / "measurements.parquet", [*kept, *_added(kept, pmu)])
    manifest = json.loads((path / "manifest.json").read_text())
    for case in manifest["cases"]:
        case["values"] = {name: RENAMED.get(value, value) if isinstance(value, str) else value for name, value in case["values"].items()}
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def _renamed(row: Mapping[str, object], traffic: str, topology: str) -> dict[str, object]:
    words = {**RENAMED, "udp_flood": traffic}
    changed = {**row, **{name: words.get(row[name], row[name]) for name in ("switch", "access", "traffic", "collector")}}
    if changed["access"] == "virtio-user" and row["name"] == "model_packets":
        changed["name"] = "model_frames"  # no kernel receives them
    return {**changed, "topology": topology or row["topology"]}


def _added(rows: list[dict[str, object]], pmu: bool) -> Iterator[dict[str, object]]:
    """For each window of vhost-switch: what its collector counts."""
    for row in rows:
        if row["switch"] == "vhost-switch" and row["collector"] == row["traffic"] and row["name"] == "window_seconds":
            packets = 0.0 if row["traffic"] == "idle" else PACKETS * (1 + 0.01 * int(str(row["repetition"])))
            where = {name: value for name, value in row.items() if name not in schema.NUMBER.names}
            counted = [
                schema.Number("pmu_packets", 300, "packets"),
                schema.Number("pmu_enqueue_cache-misses", 600, "events", source="hardware"),
            ]
            for number in (*_numbers(packets), *(counted if pmu else [])):
                yield schema.row(where, "vhost_switch", "software", number)


def _numbers(packets: float) -> Iterator[schema.Number]:
    costs = {f"stage_{stage}_cycles": cost * packets for stage, cost in STAGES.items()}
    busy = sum(costs.values())
    counted = {
        "pmd_packets": packets, "timed_packets": packets, "pmd_bursts": packets / 8, "empty_polls": 1e6, "pmd_sleeps": 0.0,
        "pmd_busy_cycles": busy, "pmd_idle_cycles": 5e9 - busy, **costs,
    }  # fmt: skip
    for name, value in counted.items():
        yield schema.Number(name, value, "TSC cycles" if name.endswith("cycles") else "events", "switch", 1)
