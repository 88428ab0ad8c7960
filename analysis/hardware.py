# SPDX-License-Identifier: GPL-2.0-or-later
"""Metrics of the processor's own counters: what one packet, megabit or reply cost, by role and mode, and why.

`of(result)` gives the same tidy table as `metrics.of`, one row per run, traffic, metric and role. It is made of what the collector
`perf_stat` counted, by the formulas that the manifest keeps from the event catalogue. Every name begins with `hardware_`, and goes on
as the model's where both mean the same (`hardware_cpi`, `model_cpi`); a last `_user`, `_kernel` or `_guest` is the mode, without one it
is all modes together. What the catalogue calls `…_per_packet` is `…_per_megabit` for TCP and `…_per_reply` for ping, as elsewhere here.

A window counts one group of events, in one mode, so a metric is computed from the sums over those windows in which all its events
were counted together. Where there are none (its events do not fit into one group, or its modes are added up), each event is first
divided by the data of its own windows (without data: by their seconds); `scaled` names those metrics. A repetition is one value:
its groups have few windows each, too few to be resampled, so intervals come from repetitions.

Idle polling is taken out as in `model`: each iteration of a poll-mode thread that found nothing (collector `ovs_pmd`), at its price
in the same run's idle windows. The same with all polls in it has the ending `_with_polling`. `hardware_clock_ratio` is core cycles
per TSC cycle on the poll-mode thread's CPU, by which `hardware_pmd_cycles_per_packet` makes core cycles of what the switch says.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis import messages, metrics, vocabulary
from analysis.load import Result
from analysis.metrics import host_is_endpoint
from analysis.source import COLUMNS, WINDOW, Source, of_path
from terms import expression, schema
from terms.expression import Formula

COLLECTOR = "perf_stat"
PREFIX = "hardware_"
WITH_POLLING = "_with_polling"
MODES = ("user", "kernel", "guest")
WHOLE = "all"
PER_PACKET = "_per_packet"
SLOTS = ("retiring", "bad_speculation", "frontend_bound", "backend_bound")
CAUSES = (*SLOTS, "unexplained")
"""What a cycle's pipeline slots went to; the rest is what events of different windows leave over, and may be below zero."""
WORDS = {"frontend_bound": "front end", "backend_bound": "back end"}
RUN = ["case_id", "run_id", "repetition", "traffic", "load"]
DATA = ("packets", "seconds")
"""What a formula may use beside events: as in the catalogue."""


@functools.cache
def of(result: Result) -> pd.DataFrame:
    """Every metric, in COLUMNS; empty where no PMU counted."""
    rows = _rows(result)
    formulas = _formulas(result)
    if rows.empty or not formulas:
        return metrics.joined([])
    cleaned = _without_polling(result, rows)
    busy = cleaned[cleaned["traffic"] != "idle"]
    found = [*_computed(result, busy, formulas, ""), *_computed(result, rows, formulas, WITH_POLLING)]
    table = pd.DataFrame(found, columns=COLUMNS) if found else metrics.joined([])
    return pd.concat([part for part in (table, _clocks(result, table)) if not part.empty] or [table], ignore_index=True)


def present(result: Result) -> bool:
    """True if a PMU counted anything that is to be trusted."""
    rows = _rows(result)
    return bool(((rows["source"] == "hardware") & rows["value"].notna()).any())


def facts(result: Result) -> dict[str, Any]:
    """What the manifest says of the collector: processor, preflight, groups, metrics, …"""
    return ((result.manifest.get("facts") or {}).get("collectors") or {}).get(COLLECTOR) or {}


def label(result: Result) -> str:
    """What stands wherever hardware's numbers are shown: `hardware counters (AMD EPYC …)`."""
    return f"hardware counters ({facts(result).get('processor_name') or facts(result).get('processor') or 'processor not recorded'})"


def account(result: Result, *, word: str, **where: object) -> dict[int, np.ndarray]:
    """As model.account, with CAUSES: the pipeline slots' shares of each role's cycles, and what they leave unexplained.

    A repetition is one row: its events were counted in different windows. Without slots (or of a role without them) all is unexplained.
    """
    shown = {f"{PREFIX}{name}": name for name in (f"instructions_per_{word}", f"cycles_per_{word}", *SLOTS)}
    table = HARDWARE.rows(result, metric=list(shown), **where)
    hosted = set(table["case_id"].unique()) & host_is_endpoint(result.frame)
    of_path = [role for role in schema.ROLES if hosted or role != "host-other"]
    found = {}
    for repetition, run in table[table["role"].isin(of_path)].groupby("repetition"):
        values = {(row.role, shown[row.metric]): row.part / row.per for row in run.itertuples()}
        found[int(repetition)] = np.array([[1.0, *(cell for role in schema.ROLES for cell in _cells(values, role, word))]])
    return found


def _cells(values: Mapping[tuple[str, str], float], role: str, word: str) -> list[float]:
    """A role's instructions and its cycles by cause, per unit of data; zeros where the case does not have it."""
    if (role, f"cycles_per_{word}") not in values:
        return [0.0] * (1 + len(CAUSES))
    cycles = values[role, f"cycles_per_{word}"]
    slots = [values.get((role, name), 0.0) for name in SLOTS]
    return [values.get((role, f"instructions_per_{word}"), np.nan), *(cycles * slot for slot in slots), cycles * (1 - sum(slots))]


def missing(result: Result, names: Sequence[str]) -> list[str]:
    """Why the catalogue's metrics `names` can't be shown."""
    if _rows(result).empty:
        return [messages.no_hardware_numbers()]
    said, known = facts(result), _formulas(result)
    rows = _rows(result)
    reasons = []
    for name in names:
        if name in (said.get("missing") or {}):
            reasons.append(str(said["missing"][name]))
        elif name.casefold() not in known:
            reasons.append(messages.not_counted_by_pmu(name))
        else:
            uses = set(expression.leaves(name, known))
            empty = rows[rows["name"].str.casefold().isin(uses) & rows["value"].isna()]
            reasons += [f"`{name}`: {note}" for note in dict.fromkeys(empty["note"])]
    return list(dict.fromkeys(reasons))


def limits(result: Result) -> list[str]:
    """What a reader must know before trusting hardware's numbers; nothing where there are none."""
    if not present(result):
        return []
    said = facts(result)
    texts = [messages.preflight_found(str(one["text"])) for one in said.get("preflight", []) if one.get("state") != "ok"]
    if said.get("vendor_defined"):
        texts.append(messages.vendor_defined())
    empty = _rows(result)
    empty = empty[empty["value"].isna()]
    texts += [messages.events_left_empty(sorted(rows["name"].unique()), str(note)) for note, rows in empty.groupby("note", sort=True)]
    if names := scaled(result):
        texts.append(messages.scaled_metrics(names))
    return texts


@functools.cache
def scaled(result: Result) -> list[str]:
    """The catalogue's metrics whose events were never all counted in the same window: ratios of sums over different windows."""
    rows, formulas = _rows(result), _formulas(result)
    counted = rows[rows["value"].notna()]
    windows = [set(names.str.casefold()) for _, names in counted.groupby([*WINDOW, "mode"])["name"]]
    known = {name.casefold() for name in counted["name"].unique()}
    found = []
    for name in facts(result).get("metrics", {}):
        uses = {leaf for leaf in expression.leaves(name, formulas) if leaf not in DATA}
        if len(uses) > 1 and uses <= known and not any(uses <= window for window in windows):
            found.append(name)
    return found


# -- from rows to sums -------------------------------------------------------------------------------------------


@functools.cache
def _rows(result: Result) -> pd.DataFrame:
    """The collector's rows of normal windows, the kernel's own events among them."""
    here = result.frame[(result.frame["testbed"] == result.testbed) & (result.frame["collector"] == COLLECTOR)]
    return here[here["window"] != ""]


def _formulas(result: Result) -> dict[str, Formula]:
    metrics_said = facts(result).get("metrics") or {}
    return {name.casefold(): Formula(expression.parse(one["expression"]), float(one["factor"])) for name, one in metrics_said.items()}


def _without_polling(result: Result, rows: pd.DataFrame) -> pd.DataFrame:
    """The counts of the poll-mode thread's CPU without iterations that found nothing, at their price in the same run's idle windows."""
    iterations = _iterations(result)
    keys = [*WINDOW, "cpu"]
    rows = rows.merge(iterations, on=keys, how="left") if not iterations.empty else rows.assign(idle=np.nan, iterations=np.nan)
    polls = rows["idle"].notna() & rows["mode"].isin(["user", WHOLE]) & (rows["source"] == "hardware")
    idle = rows[polls & (rows["traffic"] == "idle") & rows["value"].notna()]
    sums = idle.groupby(["run_id", "cpu", "mode", "name"])[["value", "iterations"]].sum()
    price = (sums["value"] / sums["iterations"].where(sums["iterations"] > 0)).rename("price").reset_index()
    rows = rows.merge(price, on=["run_id", "cpu", "mode", "name"], how="left")
    taken = (rows["price"] * rows["idle"]).fillna(0.0)
    return rows.assign(value=(rows["value"] - taken).where(taken == 0, (rows["value"] - taken).clip(lower=0)))


def _iterations(result: Result) -> pd.DataFrame:
    """By window and CPU: a poll-mode thread's iterations, and those that found nothing (`idle`)."""
    counted = result.numbers[result.numbers["collector"] == "ovs_pmd"]
    wide = metrics.wide_table(counted, ["pmd_iterations", "pmd_idle_iterations"], ["cpu"])
    return wide.rename(columns={"pmd_iterations": "iterations", "pmd_idle_iterations": "idle"}).dropna()


@dataclass(frozen=True)
class Sums:
    """One run's counts of one role, by mode."""

    counts: Mapping[str, Mapping[str, Mapping[str, float]]]
    """Mode, event (casefolded), window: what was counted."""
    spans: Mapping[str, Mapping[str, float]]
    """Mode, window: seconds for which was counted."""
    rates: Mapping[str, float]
    """Window: packets, megabits or replies per second."""

    def modes(self) -> list[str]:
        return [mode for mode in MODES if mode in self.counts]

    def together(self, mode: str, uses: Iterable[str]) -> dict[str, float] | None:
        """The sums over the windows in which all of ``uses`` were counted in ``mode``, and their DATA; None if there are none."""
        of_mode = self.counts.get(mode, {})
        windows = set.intersection(*(set(of_mode.get(name, {})) for name in uses))
        if not windows:
            return None
        spans = self.spans[mode]
        counts = {name: sum(of_mode[name][window] for window in windows) for name in uses}
        data = sum(spans[window] * self.rates.get(window, np.nan) for window in windows)
        return {**counts, "packets": data, "seconds": sum(spans[window] for window in windows)}

    @functools.cached_property
    def has_data(self) -> bool:
        """True if each of the windows says how much it carried, and they carried anything."""
        rates = [self.rates.get(window, np.nan) for spans in self.spans.values() for window in spans]
        return sum(rates) > 0

    def scaled(self, mode: str, uses: Iterable[str]) -> dict[str, float] | None:
        """The same, each divided by the data of its own windows; by their seconds where there are no data."""
        parts = {name: self._per_unit(mode, name) for name in uses}
        return _joined({name: part for name, part in parts.items() if part}) if all(parts.values()) else None

    def _per_unit(self, mode: str, name: str) -> dict[str, float] | None:
        """An event and DATA per unit of data, or, if there are no data in this run, per second."""
        sums = self.together(mode, [name])
        base = sums["packets" if self.has_data else "seconds"] if sums else 0
        if not sums or not base > 0:
            return None
        return {name: sums[name] / base, "packets": 1.0 if self.has_data else np.nan, "seconds": sums["seconds"] / base}

    def of(self, mode: str, uses: Sequence[str]) -> dict[str, float] | None:
        """What a formula is given that ``uses`` these events; None where one was not counted."""
        if mode != WHOLE or all(name in self.counts.get(WHOLE, {}) for name in uses):
            return self.together(mode, uses) or self.scaled(mode, uses)
        modes = {name: [WHOLE] if name in self.counts.get(WHOLE, {}) else self.modes() for name in uses}
        parts = {name: [self._per_unit(mode, name) for mode in modes[name]] for name in uses}
        # All modes of a run, or none: a part would pass for the whole.
        if not all(one and all(one) for one in parts.values()):
            return None
        return _joined({name: _added(name, [part for part in one if part]) for name, one in parts.items()})


def _added(name: str, parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The parts of several modes: counts add up, DATA is the same in each but for noise."""
    return {name: sum(part[name] for part in parts), **{key: float(np.mean([part[key] for part in parts])) for key in DATA}}


def _joined(parts: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    counts = {name: part[name] for name, part in parts.items()}
    return {**counts, **{key: float(np.mean([part[key] for part in parts.values()])) for key in DATA}}


def _sums(result: Result, rows: pd.DataFrame) -> Iterator[tuple[tuple, str, Sums]]:
    """Each run and traffic, each role with the totals `all` and `path` (see metrics.events), and what it counted."""
    hosts = host_is_endpoint(result.frame)
    rows = rows[rows["cpu"] >= 0].assign(name=lambda t: t["name"].str.casefold())
    rates = metrics.data_rates(result.numbers).set_index(WINDOW)["data_rate"]
    for key, run in rows.groupby(RUN, sort=False):
        of_run = rates.loc[rates.index.get_level_values("run_id") == key[1]]
        of_run = of_run[(of_run.index.get_level_values("traffic") == key[3]) & (of_run.index.get_level_values("load") == key[4])]
        by_window = {str(window): float(rate) for window, rate in zip(of_run.index.get_level_values("window"), of_run, strict=True)}
        path = run if key[0] in hosts else run[run["role"] != "host-other"]
        parts = {**{str(role): part for role, part in run.groupby("role")}, WHOLE: run, "path": path}
        for role, part in parts.items():
            yield key, role, _sum(part, by_window)


def _sum(rows: pd.DataFrame, rates: Mapping[str, float]) -> Sums:
    """The sum over CPUs; a window in which one CPU's value is empty does not count for that event."""
    summed = rows.groupby(["mode", "name", "window"])["value"].sum(skipna=False).dropna()
    counts: dict[str, dict[str, dict[str, float]]] = {}
    for (mode, name, window), value in summed.items():
        counts.setdefault(mode, {}).setdefault(name, {})[window] = float(value)
    spans: dict[str, dict[str, float]] = {}
    for (mode, window), span in rows.groupby(["mode", "window"])["enabled_s"].max().items():
        spans.setdefault(mode, {})[window] = float(span)
    return Sums(counts, spans, rates)


# -- from sums to metrics ----------------------------------------------------------------------------------------


def _computed(result: Result, rows: pd.DataFrame, formulas: Mapping[str, Formula], ending: str) -> Iterator[dict[str, object]]:
    said = facts(result)["metrics"]
    uses = {name: list(dict.fromkeys(expression.leaves(name, formulas))) for name in said}
    for key, role, sums in _sums(result, rows):
        word = vocabulary.per_data().get(str(key[3]))
        for name, leaves in uses.items():
            shown = _shown(name, str(said[name]["unit"]), leaves, word)
            events = [leaf for leaf in leaves if leaf not in DATA]
            for mode in [WHOLE, *sums.modes()] if shown and events else ():
                counts = sums.of(mode, events)
                value = None if counts is None else expression.compute(name, formulas, counts).value
                if value is not None and not np.isnan(value):
                    metric = f"{PREFIX}{shown[0]}{'' if mode == WHOLE else f'_{mode}'}{ending}"
                    where = dict(zip(RUN, key, strict=True))
                    yield {**where, "window": "", "metric": metric, "role": role, "cpu": -1, "part": value, "per": 1.0, "unit": shown[1]}


def _shown(name: str, unit: str, leaves: Sequence[str], word: str | None) -> tuple[str, str] | None:
    """A metric's name and unit with this traffic, whose unit of data is ``word``; None if it means nothing with it.

    A count alone says nothing: it grows with the windows that it was counted in.
    """
    if "packets" in leaves:
        if word is None or (word != "packet" and not name.endswith(PER_PACKET)):
            return None
        return name.removesuffix(PER_PACKET) + f"_per_{word}" * name.endswith(PER_PACKET), unit.replace("/packet", f"/{word}")
    return None if unit in ("events", "cycles", "instructions", "slots") else (name, unit)


def _clocks(result: Result, table: pd.DataFrame) -> pd.DataFrame:
    """Core cycles per TSC cycle where the poll-mode thread runs, and the switch's own cycles per packet in core cycles.

    A poll-mode thread that never sleeps counts TSC cycles all the time, busy or idle, so their sum is TSC hertz x seconds. The role
    `switch` is that thread's CPU.
    """
    tsc = metrics.pmd_cycles(result.numbers)
    rate = table[(table["metric"] == f"{PREFIX}cycles_per_second{WITH_POLLING}") & (table["role"] == "switch")]
    both = rate.merge(tsc, on=RUN, how="inner")
    if both.empty:
        return metrics.joined([])
    ratio = both["part"] / both["tsc_per_second"]
    rows = [
        both.assign(metric=f"{PREFIX}clock_ratio", part=ratio, per=1.0, unit="core cycles/TSC cycle"),
        both.assign(metric=f"{PREFIX}pmd_cycles_per_packet", part=ratio * both["busy_cycles"], per=both["packets"], unit="cycles/packet"),
    ]
    return metrics.joined([row[COLUMNS] for row in rows])


HARDWARE = Source(
    "hardware",
    of,
    of_path,
    missing,
    PREFIX,
    present,
    label,
    limits,
    account,
    {name: WORDS.get(name, name.replace("_", " ")) for name in CAUSES},
    COLLECTOR,
)
