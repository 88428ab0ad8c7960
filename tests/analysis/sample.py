# SPDX-License-Identifier: GPL-2.0-or-later
"""A small SYNTHETIC result for tests of analysis: made-up numbers in the real layout, never measured anywhere."""

import dataclasses
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from vsprof.analysis.load import Result
from vsprof.terms import schema

NOTE = "SYNTHETIC: made up by tests/analysis/sample.py"
ARMS = {
    "virtio-net": ("kernel-ovs", "virtio-net"),
    "vhost-net": ("kernel-ovs", "vhost-net"),
    "vhost-user": ("ovs-dpdk", "vhost-user"),
}
TRAFFICS = [("tcp_stream", "saturation"), ("udp_flood", "saturation"), ("udp_flood", "equal"), ("ping_paced", "paced")]
IDLE = ("idle", "none")
SEARCHED = [("udp_flood", "ndr"), ("udp_flood", "pdr"), ("udp_flood", "equal")]
NO_DROP = {"virtio-net": None, "vhost-net": 30e3, "vhost-user": 60e3}
"""By access the rate without a loss; the partial-drop rate is a tenth more. One has none."""
PACED, RESTART = ("paced_frames", "paced"), ("reconnect", "paced")
LATENCY = {"virtio-net": 90e-6, "vhost-net": 40e-6, "vhost-user": 5e-6}
SECONDS = 2.0
RECEIVED = {"virtio-net": 4e3, "vhost-net": 33e3, "vhost-user": 72e3}
GOODPUT = {"virtio-net": 60e6, "vhost-net": 200e6, "vhost-user": 105e6}
SWITCHES_PER_S = {"virtio-net": 9e3, "vhost-net": 6e3, "vhost-user": 500.0}
MODEL_DATA = {"udp_flood": (2000, 1), "tcp_stream": (20, 40), "ping_paced": (40, 50)}
"""By traffic: packets, megabits or replies of a window of the model, and how much more work one is than a packet."""
WORK = {"virtio-net": 40_000.0, "vhost-net": 20_000.0, "vhost-user": 10_000.0}
"""Instructions of the modelled processor per packet, but for 1 % more in each repetition."""
CPI = {"virtio-net": 1.6, "vhost-net": 1.5, "vhost-user": 1.2}
EMPTY_POLL = {"instructions": 50.0, "loads": 20.0, "stores": 5.0, "cycles": 20.0, "cycles_base": 20.0}
FUNCTIONS = {"first": 0.6, "second": 0.4}
"""The functions of each role (`vhost_first`, …), and what part of all that it does falls in them."""
COUNTED_BY_FUNCTION = ("instructions", "l1d_misses", "l1i_misses", "l2_misses", "llc_misses", "dtlb_walks", "itlb_walks", "branch_misses")
CYCLES = ("base", "l2", "llc", "memory", "frontend", "dtlb", "itlb", "branch", "mode")
PROFILE = {
    "id": "made-up",
    "name": "Made-up 1",
    "frequency_hz": 2e9,
    "values": {name: {"value": value, "source": "assumed", "why": "none"} for name, value in {"core.width": 4, "l1d.sets": 64}.items()},
}
RTT = {"virtio-net": 2.5e-3, "vhost-net": 1.1e-3, "vhost-user": 0.6e-3}


def write(
    path: Path,
    *,
    accesses: tuple[str, ...] = ("vhost-net", "vhost-user"),
    repetitions: int = 3,
    topology: str = "vm2vm",
    frames: tuple[int, ...] = (64,),
    drop: tuple[str, ...] = (),
    failed: tuple[str, ...] = (),
    testbeds: tuple[str, ...] = ("lab",),
    traffics: list[tuple[str, str]] = TRAFFICS,
    own: str = "",
    functions: bool = True,
    windows: int = 2,
    options: Mapping[str, tuple[str, ...]] = {},
) -> Path:
    """Write the result into `path`; numbers named in `drop` become empty with a note, runs in `failed` failed.

    `options` are varied as well, and change no number. `own` names a collector that also has two windows of its own, in which everything is ten times as slow; `functions` says whether
    it also counts by function.
    """
    path.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    rows, runs, cases, by_function = [], [], [], []
    for access in accesses:
        for frame, *chosen in itertools.product(frames, *options.values()):
            case = "+".join([ARMS[access][0], access, str(frame), *chosen])
            more = dict(zip(options, chosen, strict=True))
            cases.append({"case_id": case, "values": _values(access, frame) | more})
            for repetition in range(1, repetitions + 1):
                run = f"{case}#{repetition}"
                runs.append(_run(run, case, repetition, access=access, topology=topology, failed=run in failed, traffics=traffics))
                for testbed in testbeds:
                    where = _where(run, case, repetition, access=access, frame=frame, topology=topology, testbed=testbed) | more
                    rows += _rows(where, access, random, drop, traffics, windows)
                    rows += _own_rows(where, access, traffics, own) if own else []
                    by_function += _function_rows(where, access, traffics, own) if own and functions else []
    schema.write(path / "measurements.parquet", rows)
    schema.write(path / "functions.parquet", by_function, schema.FUNCTION)
    (path / "manifest.json").write_text(json.dumps(_manifest(topology, cases, runs, repetitions, testbeds[0], traffics, own), indent=1))
    return path


def _values(access: str, frame: int) -> dict[str, object]:
    return {"switch": ARMS[access][0], "access": access, "frame_bytes": frame, "flows": 1}


def _where(run: str, case: str, repetition: int, *, access: str, frame: int, topology: str, testbed: str) -> dict:
    ids = {"experiment": topology, "run_id": run, "case_id": case, "repetition": repetition, "testbed": testbed}
    return {**ids, "topology": topology, **_values(access, frame)}


def _rows(
    where: dict, access: str, random: np.random.Generator, drop: tuple[str, ...], traffics: list[tuple[str, str]], windows: int
) -> Iterator[dict]:
    dpdk = access == "vhost-user"
    for traffic, load in traffics:
        here = {**where, "traffic": traffic, "load": load}
        for window in (f"w{number}" for number in range(1, windows + 1)):
            noise = lambda value: float(value * random.normal(1, 0.03))  # noqa: E731
            numbers = [*_traffic(traffic, load, access, noise), *_counters(traffic, load, access, noise, dpdk)]
            for collector, number in numbers:
                if number.name in drop:
                    note = "not offered here"
                    number = schema.Number(number.name, None, number.unit, number.role, number.cpu, note=note)  # noqa: PLW2901
                yield schema.row({**here, "window": window}, collector, "software", number)
        if traffic == "udp_flood":
            for number in _flood(load, access):
                yield schema.row({**here, "window": "flood"}, traffic, "software", number)
        if load in ("ndr", "pdr"):
            for number in _search(load, access, int(where["repetition"])):
                yield schema.row({**here, "window": "search"}, traffic, "software", number)
        if traffic in ("paced_frames", "reconnect"):
            for name, value in {"packets_lost": 3, "packets_offered": 12_000}.items():
                yield schema.row({**here, "window": "stream"}, traffic, "software", schema.Number(name, value, "packets"))
        if traffic == "reconnect":
            for number in _outage(dpdk):
                yield schema.row({**here, "window": "outage"}, traffic, "software", number)


def _own_rows(where: dict, access: str, traffics: list[tuple[str, str]], own: str) -> Iterator[dict]:
    """Windows of a collector's own: the traffic's numbers, the poll-mode thread's, and the collector's."""
    slow = lambda value: float(value / 10)  # noqa: E731
    for traffic, load in traffics:
        counters = [c for c in _counters(traffic, load, access, slow, access == "vhost-user") if c[0] == "ovs_pmd"]
        for window in (schema.own_window(own, 1), schema.own_window(own, 2)):
            here = {**where, "traffic": traffic, "load": load, "window": window}
            for collector, number in [*_traffic(traffic, load, access, slow), *counters]:
                yield schema.row(here, collector, "software", number)
            for number in _model(traffic, access, int(where["repetition"])):
                yield schema.row(here, own, "model", number)


def _model(traffic: str, access: str, repetition: int) -> Iterator[schema.Number]:
    """A window of the modelled processor. Work per unit of data by role, and empty polls: see WORK, CPI and EMPTY_POLL."""
    data, _ = MODEL_DATA.get(traffic, (0, 0))
    polls, bursts = _polls(traffic, access)
    counts = {
        "packets": data if traffic == "udp_flood" else 0,
        "tcp_bytes": data * 1e6 / 8 if traffic == "tcp_stream" else 0,
        "icmp_messages": 2 * data if traffic == "ping_paced" else 0,
        "polls": polls,
        "poll_bursts": bursts,
    }
    for name, value in counts.items():
        yield schema.Number(f"model_{name}", float(value), "events")
    yield schema.Number("window_seconds", 1.0, "seconds")
    for (role, cpu, mode), counted in _by_thread(traffic, access, repetition).items():
        if role == "switch":
            empty = {name: (polls - bursts) * EMPTY_POLL.get(name, 0.0) for name in counted}
            counted = {name: value + empty[name] for name, value in counted.items()}  # noqa: PLW2901
            counted |= {"empty_polls": float(polls - bursts), **{f"empty_polls_{name}": value for name, value in empty.items()}}
        for name, value in counted.items():
            yield schema.Number(name, value, "cycles" if "cycles" in name else "events", role, cpu, mode, 1.0, 1.0)


def _polls(traffic: str, access: str) -> tuple[int, int]:
    """Polls, and those of them that found something."""
    return ((200_000, 0) if traffic == "idle" else (100_000, 1000)) if access == "vhost-user" else (0, 0)


def _by_thread(traffic: str, access: str, repetition: int) -> dict[tuple[str, int, str], dict[str, float]]:
    """The counters of each role, CPU and mode, without empty polls."""
    data, scale = MODEL_DATA.get(traffic, (0, 0))
    work = WORK[access] * data * scale * (1 + 0.01 * repetition)
    mover = ("switch", 1, "user") if access == "vhost-user" else ("vhost", 1, "kernel")
    shares = {mover: 0.5, ("guest", 2, "guest"): 0.4, ("host-other", 0, "kernel"): 0.1}
    return {place: _work(work * share, CPI[access]) for place, share in shares.items()}


def _function_rows(where: dict, access: str, traffics: list[tuple[str, str]], own: str) -> Iterator[dict]:
    """The same windows by function: FUNCTIONS, of which empty polls are no part."""
    for traffic, load in traffics:
        sums: dict[tuple, float] = {}
        for (role, cpu, mode), counted in _by_thread(traffic, access, int(where["repetition"])).items():
            for name in COUNTED_BY_FUNCTION:
                sums |= {(name, f"{role}_{function}", role, cpu, mode): part * counted[name] for function, part in FUNCTIONS.items()}
        for window in (schema.own_window(own, 1), schema.own_window(own, 2)):
            here = {**where, "traffic": traffic, "load": load, "window": window}
            for (name, function, role, cpu, mode), value in sums.items():
                if value:
                    yield schema.row(here, own, "model", schema.FunctionCount(name, value, "events", "sample", function, role, cpu, mode))


def _work(instructions: float, cpi: float) -> dict[str, float]:
    """Counters of so many instructions."""
    per_instruction = {"loads": 0.25, "stores": 0.15, "l1d_misses": 0.01, "dtlb_misses": 0.002, "branches": 0.2}
    others = ("l1i_misses", "l2_misses", "llc_hits_modified", "dtlb_walks", "itlb_misses", "itlb_walks", "branch_misses")
    fills = {"llc_misses": 0.0, "memory_local": 0.0, "memory_remote": 0.0, "remote_cache": 0.0}
    counted = {"instructions": 1.0, **per_instruction, **dict.fromkeys(others, 0.001), **fills}
    parts = {"base": 0.4, "llc": 0.3, "frontend": cpi - 0.7}
    stack = {f"cycles_{part}": parts.get(part, 0.0) for part in CYCLES}
    return {name: value * instructions for name, value in {**counted, **stack, "cycles": cpi}.items()}


def _received(load: str, access: str) -> float:
    if load in ("ndr", "pdr"):
        return NO_DROP[access] or 0.0
    return min(RECEIVED[access], 20e3) if load == "equal" else RECEIVED[access]


def _traffic(traffic: str, load: str, access: str, noise) -> Iterator[tuple[str, schema.Number]]:
    def number(name: str, value: float, unit: str) -> tuple[str, schema.Number]:
        return traffic, schema.Number(name, value, unit)

    yield number("window_seconds", SECONDS, "seconds")
    if traffic == "ping_paced":
        yield from (number("requests", 200, "packets"), number("replies", 200, "packets"))
        yield number("request_rate", 100, "packets/s")
        scale = {"min": 0.5, "mean": 1.05, "p50": 1, "p90": 1.4, "p99": 3, "p999": 6, "max": 9}
        for percentile, times in scale.items():
            yield number(f"rtt_{percentile}", noise(RTT[access] * times), "seconds")
        return
    if traffic in ("paced_frames", "reconnect"):
        yield from (number("packets_received", 5000, "packets"), number("packets_disturbed", 10, "packets"))
        for name in ("sent", "into_switch", "out_of_switch", "received"):
            yield number(f"packet_rate_{name}", 2857, "packets/s")
        for measure, times in {"min": 0.8, "mean": 1.1, "p50": 1, "p90": 1.2, "p99": 2, "p999": 4, "max": 30}.items():
            yield number(f"latency_{measure}", noise(LATENCY[access] * times), "seconds")
        return
    if traffic == "idle":
        for name in ("sent", "into_switch", "out_of_switch", "received"):
            yield number(f"packet_rate_{name}", 0, "packets/s")
        yield number("bit_rate_received", 0, "bit/s")
        return
    frame = 1500.0 if access == "vhost-user" else 24_000.0
    rate = noise(GOODPUT[access] / 8 / frame if traffic == "tcp_stream" else _received(load, access))
    for name in ("sent", "into_switch", "out_of_switch", "received"):
        yield number(f"packet_rate_{name}", rate * (1.2 if name == "sent" and load == "saturation" else 1), "packets/s")
    yield number("bit_rate_received", rate * 8 * (frame if traffic == "tcp_stream" else 60), "bit/s")
    if traffic == "tcp_stream":
        yield number("goodput", rate * frame * 8 * 0.95, "bit/s")
        yield number("retransmits", 3, "events")


def _counters(traffic: str, load: str, access: str, noise, dpdk: bool) -> Iterator[tuple[str, schema.Number]]:
    busy = {"saturation": 1.0, "ndr": 0.9, "pdr": 0.9, "equal": 0.6, "paced": 0.02, "none": 0.0}[load]
    switching = noise(SWITCHES_PER_S[access] * busy + 150) * SECONDS
    shares = {"switch": 0.02, "vhost": 0.0 if dpdk else 0.5, "guest": 0.4, "host-other": 0.08}
    for role, share in shares.items():
        if share:
            for kind, part in (("voluntary", 0.9), ("involuntary", 0.1)):
                number = schema.Number(f"context_switches_{kind}", switching * share * part, "events", role)
                yield "context_switches", number
            yield "migrations", schema.Number("migrations", 0, "events", role)
    # fractions of a CPU: user, kernel, softirq, irq, guest, idle
    mover = (0.98, 0.01, 0, 0.01, 0, 0) if dpdk else (0.01, 0.55 * busy, 0.3 * busy, 0.02, 0, 0.97 - 0.85 * busy)
    states = {
        0: ("host-other", (0.02, 0.05, 0.01, 0.01, 0, 0.91)),
        1: ("switch" if dpdk else "vhost", mover),
        2: ("guest", (0.02, 0.1 * busy, 0.02, 0.01, 0.8 * busy, 0.95 - 0.9 * busy)),
        3: ("guest", (0.02, 0.1 * busy, 0.02, 0.01, 0.6 * busy, 0.95 - 0.7 * busy)),
    }
    for cpu, (role, fractions) in states.items():
        for state, fraction in zip(("user", "kernel", "softirq", "irq", "guest", "idle"), fractions, strict=True):
            number = schema.Number(f"cpu_{state}_seconds", fraction * SECONDS, "seconds", role, cpu)
            yield "cpu_time", number
        for name, rate in (
            ("context_switches", switching / SECONDS / 4),
            ("vm_exits", 4000 * busy),
            ("timer_interrupts", 250),
        ):
            yield (
                "perf_software",
                schema.Number(name, rate * SECONDS, "events", role, cpu, enabled_s=2.01, running_s=2.01),
            )
        yield "softirqs", schema.Number("softirq_net_rx", 3000 * busy * (cpu == 1), "events", role, cpu)
    running = {
        "switch": 1.02 if dpdk else 0.01,
        "vhost": 0 if dpdk else 0.85 * busy,
        "guest": 1.5 * busy,
        "host-other": 0.05,
    }
    for role, fraction in running.items():
        yield "cpu_time", schema.Number("run_seconds", fraction * SECONDS, "seconds", role)
        yield "cpu_time", schema.Number("wait_seconds", 0.02 * fraction * SECONDS, "seconds", role)
    yield "ovs_datapath", schema.Number("flow_hits", 70_000 * busy, "packets", "switch")
    yield "ovs_datapath", schema.Number("flow_misses", 4, "packets", "switch")
    if dpdk:
        cycles, used = 5e9, noise(1.2e9) * busy
        for name, value, unit in (
            ("pmd_iterations", 9e5, "events"),
            ("pmd_busy_cycles", used, "cycles"),
            ("pmd_idle_cycles", cycles - used, "cycles"),
            ("pmd_packets", 140_000 * busy, "packets"),
            ("pmd_busy_iterations", 40_000 * busy, "events"),
            ("pmd_idle_iterations", 9e5 - 40_000 * busy, "events"),
        ):
            yield "ovs_pmd", schema.Number(name, value, unit, "switch", 1)
        # As Open vSwitch's histograms: bounds of bins, and how many batches or rounds fell into each.
        for name, counts in {
            "pmd_batch_packets": {"to_0": 0, "to_1": 300, "to_4": 900, "to_16": 2000, "to_32": 6000, "more": 0},
            "pmd_queue_fill": {"to_0": 800_000, "to_4": 5000, "to_38": 20_000, "to_140": 9000, "to_268": 700, "more": 3},
        }.items():
            for bin_, count in counts.items():
                yield "ovs_pmd", schema.Number(f"{name}_{bin_}", count * busy, "events", "switch", 1)


def _flood(load: str, access: str) -> Iterator[schema.Number]:
    received = _received(load, access) * 6
    sent = received * (1.2 if load == "saturation" else 1)
    counts = {"sent": sent, "into_switch": received * 1.02, "out_of_switch": received * 1.02, "received": received}
    for name, value in counts.items():
        yield schema.Number(f"packets_{name}", value, "packets")
    asked, note = (None, "saturation: as fast as the sender can") if load == "saturation" else (20e3, "")
    yield schema.Number("offered_rate", asked, "packets/s", note=note)


def _search(load: str, access: str, repetition: int) -> Iterator[schema.Number]:
    """The bounds lie 4 % apart, and repetitions 1 %. What is too high is lost in the switch."""
    found = NO_DROP[access]
    rate = found and found * (1.1 if load == "pdr" else 1) * (1 + 0.01 * repetition)
    why = "" if rate else "even at the lowest rate, 1000 packets/s, 3 of 3 trials lost more than 0 of their frames"
    for name, value in {"rate": rate, "lower_bound": rate, "upper_bound": 1.04 * rate if rate else 1000.0, "throughput": rate}.items():
        yield schema.Number(f"search_{name}", value, "packets/s", note="" if value else why)
    yield schema.Number("search_ended", float(bool(rate)), "fraction", note=why)
    for name, value in {"trials": 14, "lower_trials": 3 if rate else 0, "lower_bad": 1 if rate else 0}.items():
        yield schema.Number(f"search_{name}", value, "trials")
    goal = {"loss_goal": 0.005 if load == "pdr" else 0.0, "exceed_ratio": 0.5, "width_goal": 0.05}
    beyond = {"upper_unsent": 0.0, "upper_lost_before_switch": 0.0, "upper_lost_in_switch": 0.02, "upper_lost_after_switch": 0.001}
    for name, value in (goal | beyond).items():
        yield schema.Number(f"search_{name}", value, "fraction")
    for name, value in {"seconds": 31.0, "trial_goal": 1.0, "sum_goal": 5.0}.items():
        yield schema.Number(f"search_{name}", value, "seconds")


def _outage(comes_back: bool) -> Iterator[schema.Number]:
    """OVS-DPDK comes back after 1.5 s; kernel OVS never."""
    note = "" if comes_back else "did not come back"
    yield schema.Number("came_back", float(comes_back), "fraction")
    yield schema.Number("switch_away", 0.5, "seconds")
    yield schema.Number("outage", 1.5 if comes_back else None, "seconds", note=note)
    yield schema.Number("outage_packets_lost", 14_000 if comes_back else None, "packets", note=note)


def _run(run: str, case: str, repetition: int, *, access: str, topology: str, failed: bool, traffics: list[tuple[str, str]]) -> dict:
    dpdk = access == "vhost-user"
    last = "host-other" if topology == "vm2host" else "guest"
    roles = {"0": "host-other", "1": "switch" if dpdk else "vhost", "2": "guest", "3": last}
    return {
        "run_id": run,
        "case_id": case,
        "repetition": repetition,
        "order": repetition,
        "status": "failed" if failed else "done",
        "error": "the switch ended by itself" if failed else None,
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 40.0,
        "cpu_roles": roles,
        "placement": [{"thread": "pmd-c01", "tid": 7, "role": "switch", "cpus": [1]}] if dpdk else [],
        "traffics": [f"{traffic}/{load}" for traffic, load in traffics],
    }


def _manifest(topology: str, cases: list, runs: list, repetitions: int, testbed: str, traffics: list, own: str) -> dict:
    windows = {"count": 2, "seconds": SECONDS, "warmup_seconds": 1.0, "own_count": 2, "own_seconds": 1.0}
    return {
        "schema_version": schema.VERSION,
        "name": topology,
        "experiment": {
            "question": f"{NOTE}. Is the notebook whole?",
            "fixed": {"topology": topology},
            "vary": {"switch": sorted({case["values"]["switch"] for case in cases})},
            "traffics": [{"traffic": traffic, "load": load} for traffic, load in traffics],
            "windows": windows,
            "repetitions": repetitions,
            "collectors": ["auto"],
            "notebook": topology,
        },
        "status": "complete",
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T00:05:00+00:00",
        "seed": 7,
        "git": {"commit": "0" * 40, "dirty": False},
        "testbed": testbed,
        "host": {"cpu_model": NOTE, "cpus": 2, "memory_bytes": 24 << 30, "kernel": "6.18", "os": "none"},
        "facts": {
            "kernel": "6.12",
            "kernel_command_line": "mitigations=off",
            "cpu_model": NOTE,
            "cpus": 4,
            "memory_bytes": 8 << 30,
            "hugepages": 1024,
            "collectors": {own: {"profile": PROFILE}} if own else {},
            "versions": {"ovs": "3.5.0", "dpdk": "24.11.4", "qemu": "10.0.13", "perf": "6.12", "kernel": "6.12"},
        },
        "cases": cases,
        "runs": runs,
        "findings": [{"level": "warning", "text": NOTE}],
    }


def with_frame(result: Result, frame: pd.DataFrame) -> Result:
    """The same result, as if these were all its numbers."""
    other = dataclasses.replace(result)
    vars(other)["frame"] = frame  # where the property keeps what it read
    return other
