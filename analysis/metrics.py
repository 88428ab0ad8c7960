# SPDX-License-Identifier: GPL-2.0-or-later
"""Metrics out of raw counts. Each is a quotient whose two sides are kept apart until windows are summed.

`of(result)` gives a tidy table with one row per run and window:
case_id, run_id, repetition, traffic, load, window, metric, role, cpu, part, per, unit
(the value is part / per; role is "all" and cpu -1 where a metric has none).

What a count is divided by follows the traffic. Kernel OVS passes a TCP super-packet of up to 64 KB (GSO) as one
packet, OVS-DPDK without TSO passes each MTU-sized packet: "per packet" would compare unlike things, so TCP is
divided by megabits of goodput, the flood and paced frames by packets received, the paced ping by replies.
"""

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vsprof.analysis import messages, read, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.source import COLUMNS, WINDOW, Source, on_path, samples
from vsprof.analysis.tables import in_one_piece

Quotients = Mapping[str, tuple[str, str, str]]
"""By metric what was counted, what it is divided by, and the unit."""
TIMED = "timed_packets"
"""Where not all bursts are timed: the packets of those that were."""
ONE = "1"
"""What a number is divided by that is told as it was written."""
STAGES = ("dequeue", "parse", "lookup", "enqueue", "other")
"""Of vhost-switch's way, in order."""
STATES = ("user", "kernel", "softirq", "irq", "guest", "idle", "steal")


def _quotients(group: Mapping[str, Any]) -> Any:
    """A group of metrics.yaml, or the groups in one."""
    if any(isinstance(inner, dict) for inner in group.values()):
        return {name: _quotients(inner) for name, inner in group.items()}
    return {name: (name, ONE, said) if isinstance(said, str) else tuple(said) for name, said in group.items()}


_READ = _quotients(read(__file__))
TRAFFIC: Quotients = _READ["traffic"]
WHOLE: Mapping[str, Quotients] = _READ["whole"]
RTT, LATENCY = (tuple(name for name in TRAFFIC if name.startswith(of)) for of in ("rtt_", "latency_"))
OUTAGE, SEARCH = ({name: unit for name, (_, _, unit) in WHOLE[of].items()} for of in ("outage", "search"))
"""With units."""
_KNOWN = {name for group in (TRAFFIC, *WHOLE.values()) for name, (part, _, _) in group.items() if name in part.split()}
"""Numbers of traffics that are metrics of the same name."""


@functools.cache
def of(result: Result) -> pd.DataFrame:
    """Every metric of the result, in COLUMNS; a metric whose counts are missing is NaN or absent."""
    return in_one_piece(joined(_tables(result)))


def _tables(result: Result) -> Iterator[pd.DataFrame]:
    """One after the other: a long campaign has millions of rows, of which few copies are to be held at once."""
    frame = result.numbers
    own = _own(frame)
    yield from _made(TRAFFIC, own, own)
    yield from _made(_READ["streams"], own, own[own["traffic"].isin(vocabulary.of_kind("stream"))])
    for window, quotients in WHOLE.items():
        yield from _made(quotients, own, own[own["window"] == window])
    yield from _events(result)
    for by, those in {"cpu": frame["cpu"] >= 0, "role": (frame["cpu"] < 0) & (frame["role"] != "")}.items():
        yield from _made(_READ["time"][by], own, frame[those & (frame["collector"] == "cpu_time")], by=by)
    for name, quotients in _of_switches(frame).items():
        yield from _made(quotients, own, frame[frame["collector"] == name], role="switch")
    yield from _own_headlines(own)


def poll_mode(frame: pd.DataFrame) -> dict[str, str]:
    """The collectors that count a poll-mode thread's cycles, and their number for the packets that these were spent on."""
    counted = frame[frame["name"].isin(["pmd_busy_cycles", TIMED])].groupby("collector", observed=True)["name"].unique()
    return {str(name): TIMED if TIMED in names else "pmd_packets" for name, names in counted.items() if "pmd_busy_cycles" in names}


def _of_switches(frame: pd.DataFrame) -> dict[str, Quotients]:
    """By collector, what is made of what a switch says of itself."""
    return {**dict.fromkeys(poll_mode(frame), _READ["switch"]["poll mode"]), **_READ["switch"]}


def _made(quotients: Quotients, own: pd.DataFrame, rows: pd.DataFrame, *, by: str = "", role: str = "all") -> Iterator[pd.DataFrame]:
    """Metrics of one collector's rows, in all or by CPU or role; `own` says how long windows were."""
    names = {name for part, per, _ in quotients.values() for name in re.findall(r"\b[a-z]\w+", f"{part} {per}")}
    extra = [by] if by else []
    wide = _timed(own, rows, names - {"seconds"}, extra) if "seconds" in names else wide_table(rows, names, extra)
    for metric, (*sides, unit) in quotients.items():
        # Most are a column: pandas.eval takes a millisecond for anything.
        part, per = (1.0 if side == ONE else wide[side] if side in wide else wide.eval(side) for side in sides)
        yield quotient(wide, metric, part, per, unit, role)


def _own_headlines(own: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Numbers of a traffic's own that it names among its headlines, as they were written: the mean over windows."""
    for name in own["traffic"].unique():
        for line in vocabulary.traffic(name).headlines:
            written = own[(own["traffic"] == name) & (own["name"] == line.metric)]
            if line.metric not in _KNOWN and not written.empty:
                wide = wide_table(written, [line.metric])
                yield quotient(wide, line.metric, wide[line.metric], 1.0, written["unit"].iloc[0])


def happened(result: Result, **where: object) -> tuple[int, int]:
    """In how many runs something did that is 1 if it did, as `came_back` or `search_ended`, and in how many it could have."""
    runs = samples(SOFTWARE.rows(result, **where, role="all", cpu=-1))
    return round(sum(float(run[:, 0].sum()) for run in runs)), len(runs)


def _events(result: Result) -> Iterator[pd.DataFrame]:
    """Each counted event per second and per unit of data (`x_per_second`, `x_per_packet`, …), by role and CPU.

    `context_switches` is the sum of voluntary and involuntary ones by role. Role "all" sums the roles; role "path"
    leaves out `host-other`, among whose threads are vsprof's own collectors, unless the host is an endpoint itself
    (vm2host), where its receiver can't be told from them. Per CPU counts stay by CPU.
    """
    frame = result.numbers
    # The switch's own counters have metrics of their own.
    others = frame["collector"].isin(list(_of_switches(frame))) | (frame["collector"] == frame["traffic"])
    counted = frame[(frame["unit"] == "events") & ~others]
    if counted.empty:
        return
    sums = summed(counted, [*WINDOW, "name", "role", "cpu"])
    kinds = sums[sums["name"].isin(["context_switches_voluntary", "context_switches_involuntary"])]
    sums = pd.concat([sums, summed(kinds, [*WINDOW, "role", "cpu"]).assign(name="context_switches")], ignore_index=True)
    by_role = sums[sums["cpu"] == -1]
    parts = {"all": by_role, "path": by_role[on_path(result, by_role)]}
    totals = [summed(part, [*WINDOW, "name"]).assign(role=role, cpu=-1) for role, part in parts.items()]
    sums = pd.concat([sums[(sums["role"] != "") | (sums["cpu"] >= 0)], *totals], ignore_index=True)
    sums = sums.merge(data_rates(frame), on=WINDOW, how="left")
    yield from rates(sums, sums["name"], sums["enabled_s"].fillna(sums["window_seconds"]), "events")


def rates(sums: pd.DataFrame, names: pd.Series, span: pd.Series, unit: str | pd.Series) -> Iterator[pd.DataFrame]:
    """Counts in `span` seconds, as metrics per second and per unit of data; `sums` has each window's `data_rate`."""
    yield quotient(sums, names + "_per_second", sums["value"], span, unit + "/s")
    word = sums["traffic"].map(vocabulary.per_data())
    data = quotient(sums, names + "_per_" + word, sums["value"], sums["data_rate"] * span, unit + "/" + word)
    yield data[word.notna().to_numpy()]


def stage_events(result: Result) -> pd.DataFrame:
    """What a PMU counted in each stage of a switch's way, per packet of the bursts that were sampled: `enqueue cache-misses`, … .
    Hardware's numbers, so in no table of the others."""
    here = result.frame[(result.frame["testbed"] == result.testbed) & result.frame["name"].str.startswith("pmu_")]
    names = [name for name in here["name"].unique() if name not in ("pmu_packets", "pmu_bursts")]
    wide = wide_table(here, ["pmu_packets", *names])
    words = {name: " ".join(name.split("_", 2)[1:]) for name in names}
    return joined(quotient(wide, words[name], wide[name], wide["pmu_packets"], "events/packet", "switch") for name in names)


def pmd_cycles(frame: pd.DataFrame, collector: str, packets: str) -> pd.DataFrame:
    """By run and traffic: the sums of what the poll-mode thread counted, and `tsc_per_second`: busy and idle cycles each second."""
    names = ["pmd_busy_cycles", "pmd_idle_cycles", packets]
    wide = _timed(_own(frame), frame[frame["collector"] == collector], names).dropna(subset=[*names, "seconds"])
    sums = wide.groupby(WINDOW[:-1])[[*names, "seconds"]].sum().reset_index()
    return sums.assign(tsc_per_second=(sums["pmd_busy_cycles"] + sums["pmd_idle_cycles"]) / sums["seconds"])


def missing(numbers: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Why the raw numbers `names` can't be shown: the notes of empty values, or that nobody counted them."""
    counted = set(numbers["name"].unique())
    never = [name for name in dict.fromkeys(names) if name not in counted]
    without: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        rows = numbers[numbers["name"] == name]
        for note in rows.loc[rows["value"].isna(), "note"].replace("", np.nan).dropna().unique():
            without.setdefault(str(note), []).append(f"`{name}`")
    return [messages.never_counted(never)] * bool(never) + [f"{', '.join(of)}: {note}" for note, of in without.items()]


@functools.cache
def sent(result: Result) -> list[tuple[str, str]]:
    """The (traffic, load) pairs of a result, in the one order."""
    return [pair for pair in style.traffics(result.frame) if pair[0]]


def carrying(result: Result) -> list[tuple[str, str]]:
    """Those of them that carry something, by which counts are divided."""
    return [pair for pair in sent(result) if vocabulary.traffic(pair[0]).data]


def flowing(rows: pd.DataFrame) -> pd.Series:
    """Which rows are of a traffic in which anything flows."""
    return ~rows["traffic"].isin(vocabulary.of_kind("nothing"))


def _whole(where: dict[str, object]) -> dict[str, object]:
    """A series is unambiguous only with its role and CPU; unless asked for, take the usual one."""
    of_switch = ("pmd_", "stage_", "running", "flow_hit", "upcalls", "main_thread")
    usual = {**dict.fromkeys(of_switch, "switch"), "context_switches": "path"}
    role = next((role for start, role in usual.items() if str(where.get("metric", "")).startswith(start)), "all")
    return {"role": role, "cpu": -1, **where}


def _own(frame: pd.DataFrame) -> pd.DataFrame:
    """What the traffic itself counted: it is its own collector."""
    return frame.loc[frame["collector"] == frame["traffic"], [*WINDOW, "name", "value", "unit"]]


def wide_table(frame: pd.DataFrame, names: Collection[str], extra: Sequence[str] = ()) -> pd.DataFrame:
    """One row a window (and `extra`), one column a name; NaN where it could not be counted."""
    keys = [*WINDOW, *extra]
    rows = frame[frame["name"].isin(names)]
    if rows.empty:
        # With the keys' own types: what is merged with it must find the same.
        return rows[keys].assign(**dict.fromkeys(names, np.array([], float)))
    # Where one part could not be counted there is no sum: one over the rest would pass for the whole.
    wide = rows.groupby([*keys, "name"])["value"].sum(skipna=False).unstack("name")
    return wide.reindex(columns=list(names)).reset_index()


def _timed(own: pd.DataFrame, rows: pd.DataFrame, names: Collection[str], extra: Sequence[str] = ()) -> pd.DataFrame:
    """`wide_table` with the `seconds` that the rows were counted for: their own span, else the window's."""
    wide = wide_table(rows, names, extra).merge(wide_table(own, ["window_seconds"]), on=WINDOW, how="left")
    spans = rows[rows["name"].isin(names)].groupby(WINDOW)["enabled_s"].max().rename("seconds").reset_index()
    wide = wide.merge(spans, on=WINDOW, how="left")
    return wide.assign(seconds=wide["seconds"].astype(float).fillna(wide["window_seconds"]))


def summed(rows: pd.DataFrame, keys: list[str], *, sort: bool = True) -> pd.DataFrame:
    """By `keys` the sum of `value`, NaN if one part could not be counted (a sum of the rest would pass for the whole), and the longest
    `enabled_s`."""
    grouped = rows.groupby(keys, sort=sort)
    return grouped[["value"]].sum(skipna=False).assign(enabled_s=grouped["enabled_s"].max()).reset_index()


def data_rates(frame: pd.DataFrame) -> pd.DataFrame:
    """For each window its length and its `data_rate`: packets, megabits or replies per second, by traffic."""
    carried = {name: data for name in frame["traffic"].unique() if (data := vocabulary.traffic(name).data)}
    wide = wide_table(_own(frame), ["window_seconds", *sorted({data.number for data in carried.values()})])
    wide["data_rate"] = np.nan
    for name, data in carried.items():
        rate = wide[data.number] * data.scale / (1.0 if data.rate else wide["window_seconds"])
        wide["data_rate"] = wide["data_rate"].where(wide["traffic"] != name, rate)
    return wide[[*WINDOW, "window_seconds", "data_rate"]]


def quotient(
    wide: pd.DataFrame, metric: str | pd.Series, part: pd.Series, per: pd.Series | float, unit: str | pd.Series, role: str = "all"
) -> pd.DataFrame:
    """A metric of each row, with the row's own role and CPU where it has them, in COLUMNS."""
    return wide[WINDOW].assign(metric=metric, role=wide.get("role", role), cpu=wide.get("cpu", -1), part=part, per=per, unit=unit)


def joined(rows: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Tables in COLUMNS as one, without what could not be counted."""
    filled = [row.dropna(subset=["part", "per"]) for row in rows]
    return pd.concat([row for row in filled if not row.empty] or [pd.DataFrame(columns=COLUMNS)], ignore_index=True)[COLUMNS]


SOFTWARE = Source("software", of, _whole, lambda result, names: missing(result.numbers, names))
