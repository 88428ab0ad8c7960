# SPDX-License-Identifier: GPL-2.0-or-later
"""SYNTHETIC hardware counts for a synthetic result: made up in the real layout, never counted by any PMU."""

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from vsprof.terms import schema

GROUPS = (("cyc", "ins", "l1"), ("cyc", "ins", "near"), ("cyc", "ins", "far"))
MODES = ("user", "kernel")
ROUNDS = [(mode, group) for group in GROUPS for mode in MODES]
WINDOWS = len(ROUNDS)
SPAN = 2.01
CPUS = {0: "host-other", 1: "mover", 2: "guest", 3: "guest"}
PER_DATA = {"cyc": 3000.0, "ins": 2000.0, "l1": 40.0, "near": 6.0, "far": 2.0}
"""Of each CPU and mode, for each packet, megabit or reply."""
PER_POLL = {"cyc": 50.0, "ins": 100.0, "l1": 1.0, "near": 0.0, "far": 0.0}
FACTS = {
    "perf": "perf version 6.1",
    "processor": "made-up",
    "processor_name": "Made-up 2",
    "microarchitecture": "made-up",
    "vendor_defined": False,
    "preflight": [{"name": "virtualised", "state": "warning", "value": "yes", "text": "this is a virtual machine"}],
    "groups": [list(group) for group in GROUPS],
    "metrics": {
        name: {"expression": text, "unit": unit, "factor": factor, "description": ""}
        for name, text, unit, factor in (
            ("cycles", "CYC", "cycles", 1),
            ("instructions", "ins", "instructions", 1),
            ("cpi", "cycles / instructions", "cycles/instruction", 1),
            ("cycles_per_second", "cycles / seconds", "hertz", 1),
            ("cycles_per_packet", "cycles / packets", "cycles/packet", 1),
            ("instructions_per_packet", "instructions / packets", "instructions/packet", 1),
            ("l1d_misses", "l1", "events", 1),
            ("l1d_misses_per_packet", "l1d_misses / packets", "events/packet", 1),
            ("l1d_misses_per_kilo_instructions", "l1d_misses / instructions", "events/1,000 instructions", 1000),
            ("llc_misses", "near + far", "events", 1),
            ("llc_misses_per_packet", "llc_misses / packets", "events/packet", 1),
        )
    },
    "left_out": {},
    "missing": {"walk_cycles": "made-up has no walk_cycles: nobody made it up"},
}


def add(path: Path, facts: dict | None = None) -> Path:
    """Add what a PMU counted to the synthetic result in ``path``: one round a window, on every CPU."""
    table = schema.read(path / "measurements.parquet").to_pandas()
    rows = list(table.astype(object).where(table.notna(), None).to_dict("records"))
    rows += [row for _, part in table.groupby(["run_id", "traffic", "load", "window"]) for row in _window(part)]
    schema.write(path / "measurements.parquet", rows)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["facts"]["collectors"]["perf_stat"] = {**FACTS, **(facts or {})}
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def _window(part: pd.DataFrame) -> Iterator[dict]:
    first = part.iloc[0]
    if not first["window"].startswith("w"):
        return
    where = {key: first[key] for key in (*schema.KEYS.names, "load")}
    mode, events = ROUNDS[(int(first["window"][1:]) - 1) % WINDOWS]
    polls = part.loc[part["name"] == "pmd_idle_iterations", "value"].sum()
    poll_mode = first["access"] == "vhost-user"
    for cpu, word in CPUS.items():
        role = word if word != "mover" else "switch" if poll_mode else "vhost"
        for event in events:
            value = PER_DATA[event] * data(part)
            if poll_mode and cpu == 1 and mode == "user":
                value += PER_POLL[event] * polls
            number = schema.Number(event, float(value), "events", role, cpu, mode, SPAN, SPAN)
            yield schema.row(where, "perf_stat", "hardware", number)


def data(part: pd.DataFrame) -> float:
    """Packets, megabits or replies in the span."""
    values = part.drop_duplicates("name").set_index("name")["value"]
    rates = {
        "udp_flood": lambda: values["packet_rate_received"],
        "tcp_stream": lambda: values["goodput"] / 1e6,
        "ping_paced": lambda: values["replies"] / values["window_seconds"],
    }
    traffic = part.iloc[0]["traffic"]
    return rates[traffic]() * SPAN if traffic in rates else 0.0
