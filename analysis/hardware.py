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

Idle polling is taken out as in `model`: each iteration of a poll-mode thread that found nothing (`pmd_idle_iterations`), at its price
in the same run's idle windows. The same with all polls in it has the ending `_with_polling`. `hardware_clock_ratio` is core cycles
per TSC cycle on the poll-mode thread's CPU, by which `hardware_pmd_cycles_per_packet` makes core cycles of what the switch says.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from vsprof.analysis import messages, metrics, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.source import COLUMNS, WINDOW, WITH_POLLING, Source, of_path, on_path
from vsprof.terms import expression, schema
from vsprof.terms.expression import Formula

PREFIX = "hardware_"
MODES = ("user", "kernel", "guest")
WHOLE = "all"
COLLECTOR, OUTSIDE = "perf_stat", "uncore"
"""Of the processor's counters; and of what is counted outside the cores."""
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
    rows, formulas = _rows(result), _formulas(result)
    if rows.empty or not formulas:
        return metrics.joined(_outside(result))
    cleaned = _without_polling(result, rows)
    busy = cleaned[metrics.flowing(cleaned)]
    found = [*_computed(result, busy, formulas, ""), *_computed(result, rows, formulas, WITH_POLLING)]
    table = metrics.joined([pd.DataFrame(found, columns=COLUMNS)])
    return metrics.joined([table, *_clocks(result, table), *_outside(result)])


def catalogued(result: Result) -> pd.DataFrame:
    """What the catalogue's formulas say of the whole path, in all modes together, by the catalogue's own names; in COLUMNS."""
    said, formulas, words = HARDWARE.facts(result).get("metrics") or {}, _formulas(result), {*vocabulary.per_data().values(), None}
    shown = (_shown(name, str(one["unit"]), expression.leaves(name, formulas), word) for name, one in said.items() for word in words)
    rows = HARDWARE.rows(result, role="path", metric=sorted({f"{PREFIX}{one[0]}" for one in shown if one}))
    return rows.assign(metric=rows["metric"].str.removeprefix(PREFIX))


def present(result: Result) -> bool:
    """True if a PMU counted anything that is to be trusted."""
    rows = _rows(result)
    return bool(((rows["source"] == "hardware") & rows["value"].notna()).any())


def _label(result: Result) -> str:
    """What stands wherever hardware's numbers are shown: `hardware counters (AMD EPYC …)`."""
    said = HARDWARE.facts(result)
    return f"hardware counters ({said.get('processor_name') or said.get('processor') or 'processor not recorded'})"


def account(result: Result, *, word: str, **where: object) -> dict[int, np.ndarray]:
    """As model.account, with CAUSES: the pipeline slots' shares of each role's cycles, and what they leave unexplained.

    A repetition is one row: its events were counted in different windows. Without slots (or of a role without them) all is unexplained.
    """
    names = [f"{PREFIX}{name}" for name in (f"instructions_per_{word}", f"cycles_per_{word}", *SLOTS)]
    rows = HARDWARE.of_roles(result, names, **where).set_index(["repetition", "role", "metric"])
    wide = (rows["part"] / rows["per"]).unstack(["role", "metric"]).reindex(columns=pd.MultiIndex.from_product([schema.ROLES, names]))
    # Shape (repetitions, roles, metrics).
    cells = wide.to_numpy(float).reshape(len(wide), len(schema.ROLES), len(names))
    instructions, cycles, slots = cells[..., :1], cells[..., 1:2], np.nan_to_num(cells[..., 2:])
    parts = np.concatenate([instructions, cycles * slots, cycles * (1 - slots.sum(-1, keepdims=True))], axis=-1)
    # A role that the case does not have is at zero.
    parts = np.where(np.isnan(cycles), 0.0, parts)
    return {int(repetition): np.array([[1.0, *run.ravel()]]) for repetition, run in zip(wide.index, parts, strict=True)}


def _missing(result: Result, names: Sequence[str]) -> list[str]:
    """Why the catalogue's metrics `names` can't be shown."""
    said, known, rows = HARDWARE.facts(result), _formulas(result), _rows(result)
    if rows.empty:
        return [messages.NO_HARDWARE_NUMBERS]
    reasons = []
    for name in names:
        if name in (said.get("missing") or {}):
            reasons.append(str(said["missing"][name]))
        elif name.casefold() not in known:
            reasons.append(messages.not_counted_by_pmu(name))
        else:
            uses = set(expression.leaves(name, known))
            empty = rows[rows["name"].str.casefold().isin(uses) & rows["value"].isna()]
            reasons += [f"`{name}`: {note}" for note in empty["note"]]
    return list(dict.fromkeys(reasons))


def limits(result: Result) -> list[str]:
    """What a reader must know before trusting hardware's numbers; nothing where there are none."""
    if not present(result):
        return []
    said = HARDWARE.facts(result)
    texts = [messages.preflight_found(str(one["text"])) for one in said.get("preflight", []) if one.get("state") != "ok"]
    if said.get("vendor_defined"):
        texts.append(messages.VENDOR_DEFINED)
    empty = _rows(result)[_rows(result)["value"].isna()]
    texts += [messages.events_left_empty(sorted(rows["name"].unique()), str(note)) for note, rows in empty.groupby("note", sort=True)]
    if names := scaled(result):
        texts.append(messages.scaled_metrics([f"`{name}`" for name in names]))
    return texts


@functools.cache
def scaled(result: Result) -> list[str]:
    """The catalogue's metrics whose events were never all counted in the same window: ratios of sums over different windows."""
    rows, formulas = _rows(result), _formulas(result)
    counted = rows[rows["value"].notna()]
    windows = [set(names.str.casefold()) for _, names in counted.groupby([*WINDOW, "mode"])["name"]]
    known = {name.casefold() for name in counted["name"].unique()}
    uses = {name: set(expression.leaves(name, formulas)) - set(DATA) for name in HARDWARE.facts(result).get("metrics", {})}
    return [name for name, of in uses.items() if len(of) > 1 and of <= known and not any(of <= window for window in windows)]


# -- from rows to sums -------------------------------------------------------------------------------------------


@functools.cache
def _rows(result: Result, collector: str = COLLECTOR) -> pd.DataFrame:
    """A collector's rows of normal windows, the kernel's own events among them."""
    here = result.frame[(result.frame["testbed"] == result.testbed) & (result.frame["collector"] == collector)]
    return here[here["window"] != ""]


def _formulas(result: Result) -> dict[str, Formula]:
    said = HARDWARE.facts(result).get("metrics") or {}
    return {name.casefold(): Formula(expression.parse(one["expression"]), float(one["factor"])) for name, one in said.items()}


def _without_polling(result: Result, rows: pd.DataFrame) -> pd.DataFrame:
    """The counts of the poll-mode thread's CPU without iterations that found nothing, at their price in the same run's idle windows."""
    iterations = metrics.wide_table(result.numbers, ["pmd_iterations", "pmd_idle_iterations"], ["cpu"]).dropna()
    iterations = iterations.rename(columns={"pmd_iterations": "iterations", "pmd_idle_iterations": "idle"})
    keys = [*WINDOW, "cpu"]
    rows = rows.merge(iterations, on=keys, how="left") if not iterations.empty else rows.assign(idle=np.nan, iterations=np.nan)
    polls = rows["idle"].notna() & rows["mode"].isin(["user", WHOLE]) & (rows["source"] == "hardware")
    idle = rows[polls & ~metrics.flowing(rows) & rows["value"].notna()]
    sums = idle.groupby(["run_id", "cpu", "mode", "name"])[["value", "iterations"]].sum()
    price = (sums["value"] / sums["iterations"].where(sums["iterations"] > 0)).rename("price").reset_index()
    rows = rows.merge(price, on=["run_id", "cpu", "mode", "name"], how="left")
    taken = (rows["price"] * rows["idle"]).fillna(0.0)
    return rows.assign(value=(rows["value"] - taken).where(taken == 0, (rows["value"] - taken).clip(lower=0)))


class Sums:
    """What was counted of one role in one run, of whose rows it is made: by mode and event (casefolded) an array over windows, NaN where it
    was not counted; DATA likewise."""

    def __init__(self, rows: pd.DataFrame) -> None:
        # Over CPUs; a window in which one CPU's value is empty does not count for that event.
        counts = rows.groupby(["mode", "window", "name"])["value"].sum(skipna=False).unstack("name")
        windows = rows.groupby(["mode", "window"])[["enabled_s", "data_rate"]].max()
        data = windows.assign(packets=windows["enabled_s"] * windows["data_rate"], seconds=windows["enabled_s"])[list(DATA)]
        modes = {mode: counts.loc[mode].dropna(axis=1, how="all") for mode in (WHOLE, *MODES) if mode in counts.index}
        self.counts = {mode: {**_arrays(table), **_arrays(data.loc[mode])} for mode, table in modes.items() if len(table.columns)}
        self.modes = [mode for mode in self.counts if mode != WHOLE]
        # Each of the windows says how much it carried, and they carried anything.
        self.per = "packets" if windows["data_rate"].sum(skipna=False) > 0 else "seconds"

    def of(self, mode: str, uses: Sequence[str]) -> dict[str, float] | None:
        """What a formula is given that ``uses`` these events; None where one was not counted."""
        whole = self.counts.get(WHOLE, {})
        apart = [name for name in uses if name not in whole] if mode == WHOLE else []
        if not apart and (together := self._together(mode, uses)):
            return together
        parts = {name: [self._per_unit(one, name) for one in (self.modes if name in apart else [mode])] for name in uses}
        # All modes of a run, or none: a part would pass for the whole.
        if not all(one and all(one) for one in parts.values()):
            return None
        # Counts of several modes add up, DATA is the same in each but for noise.
        data = {key: float(np.mean([np.mean([part[key] for part in one]) for one in parts.values()])) for key in DATA}
        return {**{name: sum(part[name] for part in one) for name, one in parts.items()}, **data}

    def _together(self, mode: str, uses: Sequence[str]) -> dict[str, float] | None:
        """The sums over the windows in which all of ``uses`` were counted in ``mode``, and their DATA; None if there are none."""
        counts = self.counts.get(mode, {})
        if not counts.keys() >= set(uses):
            return None
        windows = ~np.isnan([counts[name] for name in uses]).any(axis=0)
        return {name: float(counts[name][windows].sum()) for name in (*uses, *DATA)} if windows.any() else None

    def _per_unit(self, mode: str, name: str) -> dict[str, float] | None:
        """An event and DATA, divided by the data of its own windows; if there are none in this run, by their seconds."""
        sums = self._together(mode, [name])
        base = sums[self.per] if sums else 0
        if not sums or not base > 0:
            return None
        return {name: sums[name] / base, "packets": 1.0 if self.per == "packets" else np.nan, "seconds": sums["seconds"] / base}


def _arrays(table: pd.DataFrame) -> dict[str, np.ndarray]:
    return {name: table[name].to_numpy(float) for name in table}


def _sums(result: Result, rows: pd.DataFrame) -> Iterator[tuple[tuple, str, Sums]]:
    """Each run and traffic, each role with the totals `all` and `path` (see metrics.of), and what it counted."""
    rows = rows[rows["cpu"] >= 0].assign(name=lambda t: t["name"].str.casefold())
    rows = rows.merge(metrics.data_rates(result.numbers), on=WINDOW, how="left")
    for key, run in rows.groupby(RUN, sort=False):
        for role, part in [*run.groupby("role"), (WHOLE, run), ("path", run[on_path(result, run)])]:
            yield key, str(role), Sums(part)


# -- from sums to metrics ----------------------------------------------------------------------------------------


def _computed(result: Result, rows: pd.DataFrame, formulas: Mapping[str, Formula], ending: str) -> Iterator[dict[str, object]]:
    said = HARDWARE.facts(result)["metrics"]
    uses = {name: list(dict.fromkeys(expression.leaves(name, formulas))) for name in said}
    for key, role, sums in _sums(result, rows):
        word = vocabulary.per_data().get(str(key[3]))
        for name, leaves in uses.items():
            shown = _shown(name, str(said[name]["unit"]), leaves, word)
            events = [leaf for leaf in leaves if leaf not in DATA]
            for mode in [WHOLE, *sums.modes] if shown and events else ():
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


def _clocks(result: Result, table: pd.DataFrame) -> list[pd.DataFrame]:
    """Core cycles per TSC cycle where the poll-mode thread runs, and the switch's own cycles per packet in core cycles.

    A poll-mode thread that never sleeps counts TSC cycles all the time, busy or idle, so their sum is TSC hertz x seconds. The role
    `switch` is that thread's CPU.
    """
    # Where bursts are timed one by one, the thread may sleep between them.
    always = [one for one in metrics.poll_mode(result.numbers).items() if one[1] != metrics.TIMED]
    if not always:
        return []
    tsc = pd.concat([metrics.pmd_cycles(result.numbers, *one) for one in always], ignore_index=True)
    rate = table[(table["metric"] == f"{PREFIX}cycles_per_second{WITH_POLLING}") & (table["role"] == "switch")]
    both = rate.merge(tsc, on=RUN, how="inner")
    ratio = both["part"] / both["tsc_per_second"]
    cycles = {"part": ratio * both["pmd_busy_cycles"], "per": both["pmd_packets"], "unit": "cycles/packet"}
    return [
        both.assign(metric=f"{PREFIX}clock_ratio", part=ratio, per=1.0, unit="core cycles/TSC cycle"),
        both.assign(metric=f"{PREFIX}pmd_cycles_per_packet", **cycles),
    ]


def _outside(result: Result) -> Iterator[pd.DataFrame]:
    """What was counted outside the cores: per second and per unit of data, of the whole host, for there is no telling who asked."""
    counted = _rows(result, OUTSIDE).dropna(subset="value")
    if counted.empty:
        return
    sums = metrics.summed(counted, [*WINDOW, "name", "unit"]).merge(metrics.data_rates(result.numbers), on=WINDOW, how="left")
    yield from metrics.rates(sums, PREFIX + sums["name"], sums["window_seconds"], sums["unit"])


HARDWARE = Source(
    "hardware",
    of,
    of_path,
    _missing,
    prefix=PREFIX,
    present=present,
    label=_label,
    limits=limits,
    account=account,
    causes={name: WORDS.get(name, name.replace("_", " ")) for name in CAUSES},
    collector=COLLECTOR,
)
