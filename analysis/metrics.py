# SPDX-License-Identifier: GPL-2.0-or-later
"""Metrics out of raw counts. Each is a quotient whose two sides are kept apart until windows are summed.

`of(result)` gives a tidy table with one row per run and window:
case_id, run_id, repetition, traffic, load, window, metric, role, cpu, part, per, unit
(the value is part / per; role is "all" and cpu -1 where a metric has none).

What a count is divided by follows the traffic. Kernel OVS passes a TCP super-packet of up to 64 KB (GSO) as one
packet, OVS-DPDK without TSO passes each MTU-sized packet: "per packet" would compare unlike things, so TCP is
divided by megabits of goodput, the flood and paced frames by packets received, the paced ping by replies.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from analysis import messages, vocabulary
from analysis.load import Result
from analysis.source import COLUMNS, WINDOW, Source
from analysis.tables import in_one_piece

RATES = {
    "packet_rate_sent": "packets/s",
    "packet_rate_into_switch": "packets/s",
    "packet_rate_out_of_switch": "packets/s",
    "packet_rate_received": "packets/s",
    "bit_rate_received": "bit/s",
    "goodput": "bit/s",
}
RTT = ("rtt_min", "rtt_mean", "rtt_p50", "rtt_p90", "rtt_p99", "rtt_p999", "rtt_max")
LATENCY = ("latency_min", "latency_mean", "latency_p50", "latency_p90", "latency_p99", "latency_p999", "latency_max")
OUTAGE = {"came_back": "fraction", "outage": "seconds", "switch_away": "seconds", "outage_packets_lost": "packets"}
"""What is counted over a switch's restart, and its unit."""
SEARCH = {
    "search_rate": "packets/s",
    "search_lower_bound": "packets/s",
    "search_upper_bound": "packets/s",
    "search_throughput": "packets/s",
    "search_ended": "fraction",
    "search_trials": "trials",
    "search_lower_trials": "trials",
    "search_lower_bad": "trials",
    "search_seconds": "seconds",
    "search_upper_unsent": "fraction",
    "search_upper_lost_before_switch": "fraction",
    "search_upper_lost_in_switch": "fraction",
    "search_upper_lost_after_switch": "fraction",
    "search_loss_goal": "fraction",
    "search_exceed_ratio": "fraction",
    "search_width_goal": "fraction",
    "search_trial_goal": "seconds",
    "search_sum_goal": "seconds",
}
"""What a search for a no-drop or a partial-drop rate came to, and what it was to do; with units."""
SEARCHED = ("ndr", "pdr")
"""The loads whose rate was searched."""
HOPS = {
    "loss_before_switch": ("packets_sent", "packets_into_switch"),
    "loss_in_switch": ("packets_into_switch", "packets_out_of_switch"),
    "loss_after_switch": ("packets_out_of_switch", "packets_received"),
    "loss_total": ("packets_sent", "packets_received"),
}
STAGES = ("dequeue", "parse", "lookup", "enqueue", "other")
"""Of vhost-switch's way, in order."""
STATES = ("user", "kernel", "softirq", "irq", "guest", "idle")
_KNOWN = {*RATES, *RTT, *LATENCY, *OUTAGE, *SEARCH, *HOPS, "frames_lost", "pmd_busy"}
"""Metrics that are made of what traffics write by functions of their own."""


@functools.cache
def of(result: Result) -> pd.DataFrame:
    """Every metric of the result, in COLUMNS; a metric whose counts are missing is NaN or absent."""
    frame = result.numbers
    parts = [
        traffic(frame), loss(frame), latency(frame), frames(frame), outage(frame), search(frame), events(frame), cpu(frame), pmd(frame),
        stages(frame), flow_table(frame), main_thread(frame), own_headlines(frame),
    ]  # fmt: skip
    return in_one_piece(pd.concat([part for part in parts if not part.empty] or [_empty()], ignore_index=True))


def traffic(frame: pd.DataFrame) -> pd.DataFrame:
    """Rates over the windows, TCP's mean frame as the receiver's interface got it [bytes], retransmits per second; of frames that come by
    themselves, the share that reached the endpoint."""
    wide = wide_table(_own(frame), [*RATES, "retransmits", "window_seconds"])
    seconds = wide["window_seconds"]
    rows = [quotient(wide, name, wide[name] * seconds, seconds, unit) for name, unit in RATES.items()]
    rows.append(quotient(wide, "retransmits_per_second", wide["retransmits"], seconds, "events/s"))
    forward = wide_table(_own(frame), ["packet_rate_into_switch", "packet_rate_to_endpoint"])
    came, reached = forward["packet_rate_into_switch"], forward["packet_rate_to_endpoint"]
    rows.append(quotient(forward, "reached_endpoint", reached, came, "fraction")[reached.notna().to_numpy()])
    # Streams alone: their frames have no fixed size, and how big they arrive tells whether offloads work. Bits and
    # packets are of one interface, read in one instant: counters of two ends would not divide cleanly.
    tcp = wide[wide["traffic"].map(vocabulary.per_data()) == "megabit"]
    seconds = tcp["window_seconds"]
    size = tcp["bit_rate_received"] / 8 * seconds
    packets = tcp["packet_rate_received"] * seconds
    rows.append(quotient(tcp, "frame_bytes_received", size, packets, "bytes"))
    rows.append(quotient(tcp, "packets_per_megabyte", packets, size / 1e6, "packets/MB"))
    return joined(rows)


def own_headlines(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers of a traffic's own that it names among its headlines, as they were written: the mean over windows."""
    own = _own(frame)
    rows = []
    for name in own["traffic"].unique():
        for line in vocabulary.traffic(name).headlines:
            written = own[(own["traffic"] == name) & (own["name"] == line.metric)]
            if line.metric not in _KNOWN and not written.empty:
                wide = wide_table(written, [line.metric])
                rows.append(quotient(wide, line.metric, wide[line.metric], 1.0, written["unit"].iloc[0]))
    return joined(rows)


def loss(frame: pd.DataFrame) -> pd.DataFrame:
    """Loss per hop as a fraction of the packets *sent*, so that hops add up to the total; offered against received.

    Counters of two ends are not read in the same instant: a hop without loss can come out slightly negative. It
    stays so, and figures flag it.
    """
    counts = sorted({name for pair in HOPS.values() for name in pair})
    own = _own(frame)
    flood = wide_table(own[own["window"] == "flood"], [*counts, "offered_rate"])
    rows = [
        quotient(flood, name, flood[before] - flood[after], flood["packets_sent"], "fraction") for name, (before, after) in HOPS.items()
    ]
    rows.append(quotient(flood, "offered_rate", flood["offered_rate"], 1.0, "packets/s"))
    rows.append(quotient(flood, "received_fraction", flood["packets_received"], flood["packets_sent"], "fraction"))
    return joined(rows)


def latency(frame: pd.DataFrame) -> pd.DataFrame:
    """Round-trip times [seconds]: the mean over windows of each window's percentile; requests left unanswered."""
    wide = wide_table(_own(frame), [*RTT, "requests", "replies", "request_rate"])
    rows = [quotient(wide, name, wide[name], 1.0, "seconds") for name in RTT]
    rows.append(quotient(wide, "unanswered", wide["requests"] - wide["replies"], wide["requests"], "fraction"))
    rows.append(quotient(wide, "request_rate", wide["request_rate"], 1.0, "packets/s"))
    return joined(rows)


def frames(frame: pd.DataFrame) -> pd.DataFrame:
    """One-way latency of single frames [seconds], as the mean over windows; the share that was lost, and that could not be timed."""
    own = _own(frame)
    wide = wide_table(own, [*LATENCY, "packets_received", "packets_disturbed"])
    rows = [quotient(wide, name, wide[name], 1.0, "seconds") for name in LATENCY]
    rows.append(quotient(wide, "disturbed", wide["packets_disturbed"], wide["packets_received"], "fraction"))
    whole = wide_table(own[own["window"] == "stream"], ["packets_lost", "packets_offered"])
    rows.append(quotient(whole, "frames_lost", whole["packets_lost"], whole["packets_offered"], "fraction"))
    return joined(rows)


def outage(frame: pd.DataFrame) -> pd.DataFrame:
    """What a restart of the switch did. What did not come back has no outage, but a `came_back` of 0."""
    own = _own(frame)
    wide = wide_table(own[own["window"] == "outage"], list(OUTAGE))
    return joined(quotient(wide, name, wide[name], 1.0, unit) for name, unit in OUTAGE.items())


def search(frame: pd.DataFrame) -> pd.DataFrame:
    """What each search for a rate came to. One that found none has a `search_ended` of 0, its bounds, and no `search_rate`."""
    own = _own(frame)
    wide = wide_table(own[own["window"] == "search"], list(SEARCH))
    return joined(quotient(wide, name, wide[name], 1.0, unit) for name, unit in SEARCH.items())


def searches_ended(result: Result, case_id: str, load: str) -> tuple[int, int]:
    """How many searches of a case for the rate of a load found one, and how many there were."""
    runs = SOFTWARE.sample(result, case_id=case_id, traffic="udp_flood", load=load, metric="search_ended", role="all", cpu=-1)
    return round(sum(float(run[:, 0].sum()) for run in runs)), len(runs)


def events(frame: pd.DataFrame) -> pd.DataFrame:
    """Each counted event per second and per unit of data (`x_per_second`, `x_per_packet`, …), by role and CPU.

    `context_switches` is the sum of voluntary and involuntary ones by role. Role "all" sums the roles; role "path"
    leaves out `host-other`, among whose threads are vsprof's own collectors, unless the host is an endpoint itself
    (vm2host), where its receiver can't be told from them. Per CPU counts stay by CPU.
    """
    others = ["ovs_pmd", "ovs_datapath", "ovs_main_thread", "vhost_switch"]  # the switch's own counters have metrics of their own
    counted = frame[(frame["unit"] == "events") & (frame["collector"] != frame["traffic"])]
    counted = counted[~counted["collector"].isin(others)]
    if counted.empty:
        return _empty()
    keys = [*WINDOW, "name", "role", "cpu"]
    sums = _sums(counted, keys)
    sums = pd.concat([sums, _context_switches(sums)], ignore_index=True)
    by_role = sums[sums["cpu"] == -1]
    path = by_role[(by_role["role"] != "host-other") | by_role["case_id"].isin(host_is_endpoint(frame))]
    totals = [_total(by_role, "all"), _total(path, "path")]
    sums = pd.concat([sums[(sums["role"] != "") | (sums["cpu"] >= 0)], *totals], ignore_index=True)
    sums = sums.merge(data_rates(frame), on=WINDOW, how="left")
    span = sums["enabled_s"].fillna(sums["window_seconds"])
    second = quotient(sums, sums["name"] + "_per_second", sums["value"], span, "events/s")
    word = sums["traffic"].map(vocabulary.per_data())
    data = quotient(sums, sums["name"] + "_per_" + word, sums["value"], sums["data_rate"] * span, "events/" + word)
    return joined([second, data[word.notna().to_numpy()]])


def cpu(frame: pd.DataFrame) -> pd.DataFrame:
    """CPU time as a fraction of one CPU: `cpu_<state>` by CPU, `running` and `waiting` (for a CPU) by role."""
    counted = frame[frame["collector"] == "cpu_time"]
    rows = []
    wide = _timed(frame, counted[counted["cpu"] >= 0], [f"cpu_{state}_seconds" for state in STATES], ["cpu"])
    for state in STATES:
        used = wide[f"cpu_{state}_seconds"]
        rows.append(quotient(wide, f"cpu_{state}", used, wide["seconds"], "fraction", cpu=wide["cpu"]))
    by_role = counted[(counted["cpu"] < 0) & (counted["role"] != "")]
    wide = _timed(frame, by_role, ["run_seconds", "wait_seconds"], ["role"])
    for metric, name in (("running", "run_seconds"), ("waiting", "wait_seconds")):
        rows.append(quotient(wide, metric, wide[name], wide["seconds"], "fraction", role=wide["role"]))
    return joined(rows)


def pmd(frame: pd.DataFrame) -> pd.DataFrame:
    """The poll-mode thread: busy share, cycles per packet while busy, packets per batch, iterations per second.

    Busy is told from idle polling before anything is divided by packets. Cycles are TSC cycles as ovs-vswitchd reads
    them; in the emulated lab that is the emulator's time-stamp counter, so only shares of them mean anything.
    """
    names = ["pmd_iterations", "pmd_busy_iterations", "pmd_busy_cycles", "pmd_idle_cycles", "pmd_packets"]
    wide = _timed(frame, frame[frame["collector"] == "ovs_pmd"], names)
    busy, idle, packets = wide["pmd_busy_cycles"], wide["pmd_idle_cycles"], wide["pmd_packets"]
    quotients = {
        "pmd_busy": (busy, busy + idle, "fraction"),
        "pmd_idle": (idle, busy + idle, "fraction"),
        "pmd_cycles_per_packet": (busy, packets, "cycles/packet"),
        "pmd_packets_per_busy_iteration": (packets, wide["pmd_busy_iterations"], "packets"),
        "pmd_iterations_per_second": (wide["pmd_iterations"], wide["seconds"], "1/s"),
    }
    return joined(quotient(wide, name, *sides, role="switch") for name, sides in quotients.items())


def stages(frame: pd.DataFrame) -> pd.DataFrame:
    """The same of vhost-switch's poll-mode thread, under the same names; and what each stage of its way takes of the cycles per packet."""
    costs = [f"stage_{stage}_cycles" for stage in STAGES]
    names = ["pmd_packets", "pmd_bursts", "timed_packets", "empty_polls", "pmd_busy_cycles", "pmd_idle_cycles", "pmd_sleeps", *costs]
    wide = _timed(frame, frame[frame["collector"] == "vhost_switch"], names)
    busy, idle, timed = wide["pmd_busy_cycles"], wide["pmd_idle_cycles"], wide["timed_packets"]
    quotients = {
        "pmd_busy": (busy, busy + idle, "fraction"),
        "pmd_idle": (idle, busy + idle, "fraction"),
        "pmd_cycles_per_packet": (busy, timed, "cycles/packet"),
        "pmd_packets_per_busy_iteration": (wide["pmd_packets"], wide["pmd_bursts"], "packets"),
        "pmd_iterations_per_second": (wide["pmd_bursts"] + wide["empty_polls"], wide["seconds"], "1/s"),
        "pmd_sleeps_per_second": (wide["pmd_sleeps"], wide["seconds"], "1/s"),
        **{f"{cost}_per_packet": (wide[cost], timed, "cycles/packet") for cost in costs},
    }
    return joined(quotient(wide, name, *sides, role="switch") for name, sides in quotients.items())


def stage_events(result: Result) -> pd.DataFrame:
    """What a PMU counted in each stage of vhost-switch's way, per packet of the bursts that were sampled: `enqueue cache-misses`, … .
    Hardware's numbers, so in no table of the others."""
    here = result.frame[(result.frame["testbed"] == result.testbed) & (result.frame["collector"] == "vhost_switch")]
    names = [name for name in here["name"].unique() if name.startswith("pmu_") and name not in ("pmu_packets", "pmu_bursts")]
    wide = wide_table(here, ["pmu_packets", *names])
    words = {name: " ".join(name.split("_", 2)[1:]) for name in names}
    return joined(quotient(wide, words[name], wide[name], wide["pmu_packets"], "events/packet", role="switch") for name in names)


def pmd_cycles(frame: pd.DataFrame) -> pd.DataFrame:
    """By run and traffic: the poll-mode thread's `busy_cycles` and `packets`, and `tsc_per_second`: busy and idle cycles each second."""
    keys = WINDOW[:-1]
    names = ["pmd_busy_cycles", "pmd_idle_cycles", "pmd_packets"]
    wide = _timed(frame, frame[frame["collector"] == "ovs_pmd"], names).dropna(subset=[*names, "seconds"])
    sums = wide.groupby(keys)[[*names, "seconds"]].sum().reset_index()
    tsc = (sums["pmd_busy_cycles"] + sums["pmd_idle_cycles"]) / sums["seconds"]
    return sums.assign(busy_cycles=sums["pmd_busy_cycles"], packets=sums["pmd_packets"], tsc_per_second=tsc)[
        [*keys, "busy_cycles", "packets", "tsc_per_second"]
    ]


def flow_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The share of packets that the datapath's flow table knew without asking the daemon; `upcalls_per_second`: those it did not know."""
    wide = _timed(frame, frame[frame["collector"] == "ovs_datapath"], ["flow_hits", "flow_misses", "flow_lost"])
    hits, misses = wide["flow_hits"], wide["flow_misses"]
    share = quotient(wide, "flow_hit_share", hits, hits + misses, "fraction", role="switch")
    return joined([share, quotient(wide, "upcalls_per_second", misses, wide["seconds"], "events/s", role="switch")])


def main_thread(frame: pd.DataFrame) -> pd.DataFrame:
    """The main thread of ovs-vswitchd, which is no poll-mode thread: its time on a CPU and waiting for one, how often it was switched, and
    how many packets it moved itself."""
    switches = ["main_thread_switches_voluntary", "main_thread_switches_involuntary"]
    names = ["main_thread_run_seconds", "main_thread_wait_seconds", *switches, "main_thread_packets"]
    wide = _timed(frame, frame[frame["collector"] == "ovs_main_thread"], names)
    quotients = {
        "main_thread_running": (wide["main_thread_run_seconds"], "fraction"),
        "main_thread_waiting": (wide["main_thread_wait_seconds"], "fraction"),
        "main_thread_context_switches_per_second": (wide[switches[0]] + wide[switches[1]], "events/s"),
        "main_thread_packets_per_second": (wide["main_thread_packets"], "packets/s"),
    }
    return joined(quotient(wide, name, part, wide["seconds"], unit, role="switch") for name, (part, unit) in quotients.items())


def missing(result: Result, names: Sequence[str]) -> list[str]:
    """Why the raw numbers `names` can't be shown: the notes of empty values, or that nobody counted them."""
    return missing_in(result.numbers, names)


def missing_in(numbers: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """The same of a part of the result's frame."""
    counted = set(numbers["name"].unique())
    never = [name for name in dict.fromkeys(names) if name not in counted]
    reasons = [messages.never_counted(never)] if never else []
    without: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        rows = numbers[numbers["name"] == name]
        for note in rows.loc[rows["value"].isna(), "note"].replace("", np.nan).dropna().unique():
            without.setdefault(str(note), []).append(f"`{name}`")
    reasons += [f"{', '.join(without[note])}: {note}" for note in without]
    return reasons


@functools.cache
def sent(result: Result) -> list[tuple[str, str]]:
    """The (traffic, load) pairs of a result, in the one order."""
    seen = result.frame[["traffic", "load"]].drop_duplicates().itertuples(index=False, name=None)
    return sorted((pair for pair in seen if pair[0]), key=vocabulary.place)


def carrying(result: Result) -> list[tuple[str, str]]:
    """Those of them that carry something, by which counts are divided."""
    return [pair for pair in sent(result) if vocabulary.data(pair[0])]


def searched(result: Result) -> bool:
    """Whether a no-drop or a partial-drop rate was searched, found or not."""
    return bool((result.numbers["name"] == "search_ended").any())


def _whole(where: dict[str, object]) -> dict[str, object]:
    """A series is unambiguous only with its role and CPU; unless asked for, take the usual one."""
    of_switch = ("pmd_", "stage_", "running", "flow_hit", "upcalls", "main_thread")
    usual = {**dict.fromkeys(of_switch, "switch"), "context_switches": "path"}
    role = next((role for start, role in usual.items() if str(where.get("metric", "")).startswith(start)), "all")
    return {"role": role, "cpu": -1, **where}


def _own(frame: pd.DataFrame) -> pd.DataFrame:
    """What the traffic itself counted: it is its own collector."""
    return frame[frame["collector"] == frame["traffic"]]


def wide_table(frame: pd.DataFrame, names: Sequence[str], extra: Sequence[str] = ()) -> pd.DataFrame:
    """One row a window (and `extra`), one column a name; NaN where it could not be counted."""
    keys = [*WINDOW, *extra]
    rows = frame[frame["name"].isin(names)]
    if rows.empty:
        # With the keys' own types: what is merged with it must find the same.
        return rows[keys].assign(**dict.fromkeys(names, np.array([], float)))
    # Where one part could not be counted there is no sum: one over the rest would pass for the whole.
    wide = rows.groupby([*keys, "name"])["value"].sum(skipna=False).unstack("name")
    return wide.reindex(columns=list(names)).reset_index()


def _timed(frame: pd.DataFrame, rows: pd.DataFrame, names: Sequence[str], extra: Sequence[str] = ()) -> pd.DataFrame:
    """`wide_table` with the `seconds` that the rows were counted for: their own span, else the window's."""
    wide = wide_table(rows, names, extra).merge(wide_table(_own(frame), ["window_seconds"]), on=WINDOW, how="left")
    spans = rows[rows["name"].isin(names)].groupby(WINDOW)["enabled_s"].max().rename("seconds").reset_index()
    wide = wide.merge(spans, on=WINDOW, how="left")
    return wide.assign(seconds=wide["seconds"].astype(float).fillna(wide["window_seconds"]))


def _sums(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """By `keys` the sum of `value`, NaN if one part could not be counted, and the longest `enabled_s`."""
    grouped = rows.groupby(keys)
    return grouped[["value"]].sum(skipna=False).assign(enabled_s=grouped["enabled_s"].max()).reset_index()


def _total(by_role: pd.DataFrame, name: str) -> pd.DataFrame:
    """The sum over roles, as a role of its own called `name`."""
    return _sums(by_role, [*WINDOW, "name"]).assign(role=name, cpu=-1)


def host_is_endpoint(frame: pd.DataFrame) -> set[str]:
    return set(frame.loc[frame["topology"] == "vm2host", "case_id"].unique())


def _context_switches(sums: pd.DataFrame) -> pd.DataFrame:
    """Voluntary and involuntary together, by role."""
    kinds = sums[sums["name"].isin(["context_switches_voluntary", "context_switches_involuntary"])]
    return _sums(kinds, [*WINDOW, "role", "cpu"]).assign(name="context_switches")


def data_rates(frame: pd.DataFrame) -> pd.DataFrame:
    """For each window its length and its `data_rate`: packets, megabits or replies per second, by traffic."""
    carried = {name: data for name in frame["traffic"].unique() if (data := vocabulary.data(name))}
    wide = wide_table(_own(frame), ["window_seconds", *sorted({data.number for data in carried.values()})])
    wide["data_rate"] = np.nan
    for name, data in carried.items():
        rate = wide[data.number] * data.scale / (1.0 if data.rate else wide["window_seconds"])
        wide["data_rate"] = wide["data_rate"].where(wide["traffic"] != name, rate)
    return wide[[*WINDOW, "window_seconds", "data_rate"]]


def quotient(
    wide: pd.DataFrame,
    metric: str | pd.Series,
    part: pd.Series,
    per: pd.Series | float,
    unit: str | pd.Series,
    *,
    role: str | pd.Series | None = None,
    cpu: int | pd.Series | None = None,
) -> pd.DataFrame:
    role = wide.get("role", "all") if role is None else role
    cpu = wide.get("cpu", -1) if cpu is None else cpu
    return wide[WINDOW].assign(metric=metric, role=role, cpu=cpu, part=part, per=per, unit=unit)


def joined(rows: Iterable[pd.DataFrame]) -> pd.DataFrame:
    filled = [row.dropna(subset=["part", "per"]) for row in rows]
    filled = [row for row in filled if not row.empty]
    return pd.concat(filled, ignore_index=True)[COLUMNS] if filled else _empty()


def _empty() -> pd.DataFrame:
    return pd.DataFrame(columns=COLUMNS)


SOFTWARE = Source("software", of, _whole, missing)
