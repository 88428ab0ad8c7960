# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes an experiment of changes out of a SYNTHETIC result of vm2host: made-up numbers, never measured anywhere.

OVS-DPDK with its main thread on a CPU of its own or on the poll-mode thread's, and with two sizes of TCP windows; kernel OVS with the latter.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from vsprof.terms import schema

OPTIONS = {"main_thread": ("own-cpu", "pmd-cpu"), "tcp_window": ("system", "8K")}
CHANGES = [{}, {"main_thread": "pmd-cpu"}, {"tcp_window": "8K"}, {"main_thread": "pmd-cpu", "tcp_window": "8K"}]
WAITING = {"own-cpu": 0.01, "pmd-cpu": 0.5}
"""Share of its time that the main thread waits for a CPU."""
PACKETS = {"own-cpu": 5000.0, "pmd-cpu": 5000.0}
Factors = Mapping[tuple[str, str], float]
"""By main_thread and tcp_window: by what goodput is multiplied."""
NONE: Factors = {}


def write(sample: ModuleType, path: Path, factors: Factors = NONE, packets: Mapping[str, float] = PACKETS, **more: object) -> Path:
    """Write the result into ``path``. ``packets``: what the main thread moves each second."""
    traffics = [("tcp_stream", "saturation"), ("ping_paced", "paced")]
    sample.write(path, topology="vm2host", traffics=traffics, options=OPTIONS, **more)
    rows = [row for row in schema.read(path / "measurements.parquet").to_pylist() if _is_case(row)]
    rows = [_changed(row, factors) for row in rows]
    schema.write(path / "measurements.parquet", [*rows, *_main_thread(rows, packets)])
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["experiment"]["changes"] = CHANGES
    manifest["cases"] = [{**case, "values": _without(case["values"])} for case in manifest["cases"] if _is_case(case["values"])]
    manifest["cases"].sort(key=_place)
    kept = {case["case_id"] for case in manifest["cases"]}
    manifest["runs"] = [run for run in manifest["runs"] if run["case_id"] in kept]
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def _is_case(values: Mapping[str, object]) -> bool:
    """Kernel OVS has no main thread that could be put anywhere: of its cases that differ in it alone, one is kept."""
    return values["switch"] == "ovs-dpdk" or values["main_thread"] == "own-cpu"


def _place(case: Mapping[str, object]) -> int:
    """In the order of the changes."""
    values = {**{name: first for name, (first, _) in OPTIONS.items()}, **case["values"]}
    return CHANGES.index({name: values[name] for name, (first, _) in OPTIONS.items() if values[name] != first})


def _without(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if name != "main_thread" or values["switch"] == "ovs-dpdk"}


def _changed(row: Mapping[str, object], factors: Factors) -> dict[str, object]:
    if row["switch"] != "ovs-dpdk":
        return {**row, "main_thread": None}
    factor = factors.get((row["main_thread"], row["tcp_window"]), 1.0)
    faster = row["traffic"] == "tcp_stream" and row["name"] in ("goodput", "bit_rate_received", "packet_rate_received")
    return {**row, "value": row["value"] * factor} if faster and row["value"] is not None else dict(row)


def _main_thread(rows: list[dict[str, object]], packets: Mapping[str, float]) -> list[dict[str, object]]:
    found = []
    for row in rows:
        if row["name"] == "window_seconds" and row["switch"] == "ovs-dpdk":
            where = {name: value for name, value in row.items() if name not in schema.NUMBER.names}
            seconds, how = row["value"], str(row["main_thread"])
            counted = {
                "main_thread_run_seconds": (0.2 * seconds, "seconds"),
                "main_thread_wait_seconds": (WAITING[how] * seconds, "seconds"),
                "main_thread_switches_voluntary": (1000 * seconds, "events"),
                "main_thread_switches_involuntary": (10 * seconds, "events"),
                "main_thread_packets": (packets[how] * seconds, "packets"),
            }
            for name, (value, unit) in counted.items():
                number = schema.Number(name, value, unit, "switch", enabled_s=seconds, running_s=seconds)
                found.append(schema.row(where, "ovs_main_thread", "software", number))
    return found
