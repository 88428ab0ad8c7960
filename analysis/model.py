# SPDX-License-Identifier: GPL-2.0-or-later
"""Metrics of the modelled processor: what one packet, megabit or reply costs it, by role, and why.

`of(result)` gives the same tidy table as `metrics.of`: one row per window, metric and role, the value is part / per. It is made of
the model's own windows alone, data included: nothing of it is ever divided by, or set against, a software counter.
Every name begins with `model_`:

- `model_<counter>_per_packet` (megabit, reply): each counter of the model, and each part of its cycles (`cycles_memory`, …);
- `model_cpi` and `model_cpi_<part>` [cycles/instruction]: estimated cycles, in all and by what the processor waited for;
- `model_<miss>_per_kilo_instructions` [events/1,000 instructions]; `model_<miss>_rate`: misses per data access [fraction];
- `model_polling_share` [fraction]: of a poll-mode thread's cycles, those of polls that found nothing;
- `model_<counter>_per_empty_poll`: what such a poll costs;
- `model_<role>_wake_up_<stage>` [seconds]: the stages of a wake-up (collectors/uarch_model/wakeups.py), as the model wrote them.

Idle polling is taken out of all but the last two. A poll-mode thread works whether packets come or not; what it does per packet is
what is left when all that its polls took that found nothing is taken off, which the model counts by themselves (`empty_polls_`). The same
with all polls in it has the ending `_with_polling`. In a result of an early model, which did not, both are the same; `limits` says so.
"""

import functools
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from vsprof.analysis import messages, metrics, read, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.metrics import flowing, joined, quotient, wide_table
from vsprof.analysis.source import WINDOW, WITH_POLLING, Source, of_path, on_path
from vsprof.analysis.tables import in_one_piece
from vsprof.terms import schema

PREFIX = "model_"
SHARES = {"main_thread": "pmd-cpu"}
"""The option of OVS-DPDK that puts its main thread on the poll-mode thread's CPU."""
PARTS = ("base", "l2", "llc", "memory", "frontend", "dtlb", "itlb", "branch", "mode")
"""The CPI stack: work without any waiting, then what was waited for. Their sum is `cycles`."""
CYCLES = [f"cycles_{part}" for part in PARTS]
_READ = read(__file__)
WORDS, MISSES, PUBLISHED = _READ["words"], _READ["misses"], _READ["published"]
"""By counter, what it is called in tables and texts, and what was missed in a figure; by metric, what it is beside published ratios."""
RATES = {"l1d_misses": "model_l1d_miss_rate", "dtlb_misses": "model_dtlb_miss_rate"}
DPDK = ("testpmd", "probe", "vhost-switch")
"""Values of the option `endpoint`: who serves a guest's interface in the place of its kernel."""
DATA = ["model_packets", "model_frames", "model_tcp_bytes", "model_icmp_messages", "model_polls", "model_poll_bursts"]
POLL_MODE = "poll-mode thread"
"""As a role: of the switch's work that of the poll-mode thread alone, in user mode. What the daemon's other threads do by the clock is not
a packet's, and is most where few packets came."""
EMPTY = "empty_polls"
"""How many polls found nothing, and the begin of the names of what they took."""
CYCLE_COUNTS = ("cycles", "walk_cycles", "repeat_cycles", "chain_cycles", *CYCLES)


@functools.cache
def of(result: Result) -> pd.DataFrame:
    """Every metric of the model, in metrics.COLUMNS; empty where the model counted nothing."""
    if not present(result):
        return joined([])
    raw, names = _counts(result)
    busy = _without_polling(raw[flowing(raw)], names)
    counted = [*_metrics(busy, names, ""), *_metrics(raw, names, WITH_POLLING), *_polling(raw, busy, names)]
    return in_one_piece(joined([*counted, *_wake_ups(_rows(result))]))


def present(result: Result) -> bool:
    """True if the model counted anything that is to be trusted."""
    rows = _rows(result)
    return bool((rows["value"].notna() & (rows["role"] != "")).any())


def profile(result: Result) -> dict:
    """The modelled processor as the manifest has it: id, name, frequency_hz, values, …; empty if there is none."""
    return MODEL.facts(result).get("profile") or {}


def names(result: Result) -> str:
    """The modelled processor's name; of all, where the processor is a factor."""
    return result.modelled or str(profile(result).get("name", "profile not recorded"))


def limits(result: Result) -> list[str]:
    """What a reader must know before trusting the model's numbers; nothing where there are none."""
    if not present(result):
        return []
    texts = [messages.estimated_by_model(names(result), drives_clock=result.modelled is not None)]
    rows = _rows(result)
    notes = rows[(rows["name"] == "cycles") & rows["value"].isna()]
    if len(notes):
        texts.append(messages.untrusted_windows(len(notes), sorted(notes["note"].unique())))
    if cases := polling_left_in(result):
        texts.append(messages.polling_left_in(cases))
    dpdk = {result.values[str(case)].get("endpoint") in DPDK for case in result.cases.index}
    if True in dpdk:
        texts.append(messages.GUESTS_POLL)
    if False in dpdk and rows["traffic"].isin(vocabulary.of_kind("flood")).any():
        texts.append(messages.SENDER_WAITS)
    return texts


def polling_left_in(result: Result) -> list[str]:
    """The labels of cases with a poll-mode thread of which a run has no counts of empty polls by themselves."""
    raw, _ = _counts(result)
    sent = raw[flowing(raw) & (raw["model_polls"] > 0)]
    cases = sent.loc[~sent["run_id"].isin(raw.loc[raw[EMPTY].notna(), "run_id"]), "case_id"].unique()
    return [text for case, text in result.cases["label"].items() if case in cases]


def _missing(result: Result, names: Sequence[str]) -> list[str]:
    rows = _rows(result)
    return [messages.NO_MODEL_NUMBERS] if rows.empty else metrics.missing(rows, names)


def is_poll_mode(result: Result, rows: pd.DataFrame) -> pd.Series:
    """The switch's programs on the CPU that the manifest gives the switch: there the poll-mode thread runs, and no other.

    Where the case puts the daemon's main thread there, too, the two can't be told apart, and nothing is called polling.
    """
    runs = result.manifest.get("runs", [])
    cpus = {(run["run_id"], int(cpu)) for run in runs for cpu, role in (run.get("cpu_roles") or {}).items() if role == "switch"}
    shared = [case for case, values in result.values.items() if SHARES.items() <= values.items()]
    found = ((rows["role"] == "switch") & (rows["mode"] == "user") & ~rows["case_id"].isin(shared)).to_numpy(copy=True)
    seen = rows[found]
    found[found] = [place in cpus for place in zip(seen["run_id"], seen["cpu"], strict=True)]
    return pd.Series(found, index=rows.index)


@functools.cache
def windows(result: Result) -> pd.DataFrame:
    """One row a window that is to be trusted: metrics.WINDOW, DATA, and its `data`: packets, megabits or replies (NaN if none came)."""
    return _data(_carried(result))


def account(result: Result, *, word: str, **where: object) -> dict[int, np.ndarray]:
    """Of one case and traffic, by repetition: what `decompose.Account` holds, with all of schema.ROLES and with PARTS as causes.

    A role that is not of the path, or that the case does not have, is at zero; a cell is NaN where a window did not count it.
    """
    names = [f"{PREFIX}{name}_per_{word}" for name in ("instructions", *CYCLES)]
    table = MODEL.of_roles(result, names, **where)
    wide = table.pivot_table(index=["repetition", "window", "per"], columns=["role", "metric"], values="part", aggfunc="sum")
    full = wide.reindex(columns=pd.MultiIndex.from_product([schema.ROLES, names])).reset_index(level="per")
    full[[(role, name) for role in schema.ROLES if role not in set(table["role"]) for name in names]] = 0.0
    return {int(repetition): run.to_numpy(float) for repetition, run in full.groupby(level="repetition")}


# -- from rows to counts ----------------------------------------------------------------------------------------


@functools.cache
def _rows(result: Result) -> pd.DataFrame:
    own = result.own_numbers
    return own[own["source"] == "model"]


@functools.cache
def _counts(result: Result) -> tuple[pd.DataFrame, list[str]]:
    """One row a window and role, and one more (`polling`) for the poll-mode thread; columns: every counter, then DATA.

    A role that a case has is in all of the case's windows, with zeros where it never ran. EMPTY is how many polls that found nothing were
    counted by themselves, and EMPTY_ with a counter's name what of it they took; NaN where they were not.
    """
    rows = _rows(result)
    data = _carried(result)
    rows = rows[(rows["role"] != "") & rows["value"].notna()]
    rows = rows.assign(polling=is_poll_mode(result, rows))
    names = sorted(name for name in rows["name"].unique() if not name.startswith(EMPTY))
    wide = rows.pivot_table(index=[*WINDOW, "role", "polling"], columns="name", values="value", aggfunc="sum").reset_index()
    # A result of an earlier vsprof has none of them, nor has one without a poll-mode thread.
    absent = [name for name in (EMPTY, *(f"{EMPTY}_{name}" for name in names)) if name not in wide]
    wide = wide.assign(**dict.fromkeys(absent, np.nan))
    full = wide[WINDOW].drop_duplicates().merge(wide[["case_id", "role", "polling"]].drop_duplicates(), on="case_id")
    wide = full.merge(wide, on=full.columns.to_list(), how="left").fillna(dict.fromkeys(names, 0.0)).merge(data, on=WINDOW, how="left")
    return wide.assign(on_path=on_path(result, wide)), names


def _carried(result: Result) -> pd.DataFrame:
    """One row a window, one column each of DATA.

    No kernel receives what goes to an endpoint with DPDK: there `model_packets` are the frames that a poll-mode switch gave to endpoints,
    and behind any other switch what came out of its port, by the window's rate. What comes back and leaves by a card or a device (pvp) is
    given to no endpoint.
    """
    rows = _rows(result)
    data = wide_table(rows[rows["role"] == ""], [*DATA, "window_seconds"])
    case, cases = data["case_id"].map, result.cases
    served = cases.index.map(lambda one: result.values[str(one)].get("endpoint")).isin(DPDK)
    by_dpdk = pd.Series((cases["access"] == "virtio-user") | served, cases.index)
    given = data["model_frames"].where(data["model_frames"] > 0, _came_out(result, data))
    return data.assign(model_packets=data["model_packets"].where(~case(by_dpdk), given)).drop(columns="window_seconds")


def _came_out(result: Result, data: pd.DataFrame) -> pd.Series:
    """Packets that left the switch for the receiver in each of the model's windows, by the rate of the window around it."""
    rates = result.numbers[result.numbers["name"] == "packet_rate_received"].set_index([*WINDOW])["value"]
    around = data[WINDOW].assign(window="w" + data["window"].str.rpartition("-")[2])
    return pd.Series(rates.reindex(pd.MultiIndex.from_frame(around)).to_numpy(), data.index) * data["window_seconds"]


def _without_polling(raw: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The counts without polls that found nothing, and never below zero."""
    counted = raw[[f"{EMPTY}_{name}" for name in names]].to_numpy()
    empty = np.where(raw[[EMPTY]].notna(), counted, 0.0)
    # Each is rounded where it is written.
    left = (raw[names] - empty).clip(lower=0)
    # Parts that were cut at zero must not make the stack differ from its sum.
    if set(CYCLES) <= set(names):
        left["cycles"] = left[CYCLES].sum(axis=1)
    return raw.assign(**left)


# -- from counts to metrics -------------------------------------------------------------------------------------


def _metrics(counts: pd.DataFrame, names: list[str], ending: str) -> Iterator[pd.DataFrame]:
    wide = _data(_with_totals(counts, names))
    sent, ran = wide[wide["traffic"].isin(vocabulary.per_data())], wide[wide["instructions"] > 0]
    word = sent["traffic"].map(vocabulary.per_data())
    for name in names:
        yield quotient(sent, f"{PREFIX}{name}_per_" + word + ending, sent[name], sent["data"], unit(name, word))
    accesses = ran.get("loads", np.nan) + ran.get("stores", np.nan)
    ratios = [
        *((f"{PREFIX}cpi{name.removeprefix('cycles')}", name, ran["instructions"], "cycles/instruction") for name in ("cycles", *CYCLES)),
        *((f"{PREFIX}{name}_per_kilo_instructions", name, ran["instructions"] / 1e3, "events/1,000 instructions") for name in MISSES),
        *((metric, name, accesses, "fraction") for name, metric in RATES.items()),
    ]
    for metric, name, per, its_unit in ratios:
        if name in ran:
            yield quotient(ran, metric + ending, ran[name], per, its_unit)


def unit(counter: str, word: str | pd.Series) -> str | pd.Series:
    """That of a metric which is this counter per `word`."""
    return ("cycles/" if counter in CYCLE_COUNTS else "instructions/" if counter == "instructions" else "events/") + word


def _polling(raw: pd.DataFrame, busy: pd.DataFrame, names: list[str]) -> Iterator[pd.DataFrame]:
    """What a poll-mode thread spends on polls that find nothing: one of them, and the share of all of them."""
    threads = raw[raw[EMPTY] > 0]
    for name in names:
        yield quotient(threads, f"{PREFIX}{name}_per_empty_poll", threads[f"{EMPTY}_{name}"], threads[EMPTY], unit(name, "poll"))
    if "cycles" in names:
        threads = raw.loc[busy.index].dropna(subset=EMPTY)
        taken = threads["cycles"] - busy.loc[threads.index, "cycles"]
        yield quotient(threads, f"{PREFIX}polling_share", taken, threads["cycles"], "fraction")


def _wake_ups(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for name in rows.loc[rows["name"].str.contains("_wake_up_"), "name"].unique():
        wide = wide_table(rows, [name])
        yield quotient(wide, f"{PREFIX}{name}", wide[name], 1.0, "seconds", "path")


def _with_totals(counts: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """By role, POLL_MODE, the sum `all`, and `path`: without host-other, unless the host is an endpoint (as metrics.events has it)."""
    by_role = _summed(counts, names, [*WINDOW, "role"])
    parts = {"all": counts, "path": counts[counts["on_path"]], POLL_MODE: counts[counts["polling"]]}
    totals = [_summed(part, names, WINDOW).assign(role=role) for role, part in parts.items()]
    return pd.concat([by_role, *totals], ignore_index=True)


def _summed(counts: pd.DataFrame, names: list[str], keys: list[str]) -> pd.DataFrame:
    grouped = counts.groupby(keys, sort=False)
    return pd.concat([grouped[names].sum(), grouped[DATA].first()], axis=1).reset_index()


def _data(wide: pd.DataFrame) -> pd.DataFrame:
    """Adds `data`: packets, megabits or replies of the window itself; NaN where none came."""
    data = pd.Series(np.nan, index=wide.index)
    for name in wide["traffic"].unique():
        if (carried := vocabulary.traffic(name).data) and carried.modelled in wide:
            data = data.where(wide["traffic"] != name, wide[carried.modelled] * carried.modelled_scale)
    return wide.assign(data=data.where(data > 0))


MODEL = Source(
    "model",
    of,
    of_path,
    _missing,
    prefix=PREFIX,
    present=present,
    # What stands wherever CPI or cycles are shown.
    label=lambda result: f"estimated (model: {names(result)})",
    limits=limits,
    account=account,
    causes=dict(zip(PARTS, style.CAUSES, strict=True)),
    collector="uarch_model",
)
