# SPDX-License-Identifier: GPL-2.0-or-later
"""The profiles of a result: what of an event was counted in which call stack of a case, or in which function where no callers are known.

All windows and repetitions of a case are summed. What one collector counted never meets what another did.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field

import pandas as pd

from vsprof.analysis import model, source, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.tables import Asked

OF_PROFILE = ["case_id", "traffic", "load", "collector", "source", "name", "unit"]
PLACE = ["run_id", "window"]
FUNCTION = ["role", "mode", "object", "function"]
STACK = ["role", "stack"]
NO_ROLE = "no role"
KEPT = 16
"""Profiles whose stacks are kept: one is compared with several others in turn."""


@dataclass(frozen=True)
class Profile:
    """One case's counts of one event, by one collector while one traffic was sent. calls: by call stack; else by function alone."""

    result: Result = field(repr=False)
    case: str
    traffic: str
    load: str
    collector: str
    source: str
    event: str
    unit: str
    calls: bool
    total: float

    @property
    def label(self) -> str:
        """Of its case."""
        return str(self.result.cases.loc[self.case, "label"])

    @property
    def name(self) -> str:
        return f"{self.label}, {style.traffic_name(self.traffic, self.load)}: {self.event}"

    @property
    def per(self) -> str:
        """What `data` is of: packet, megabit, reply."""
        return vocabulary.per_data()[self.traffic]

    @functools.cached_property
    def data(self) -> float | None:
        """How many packets, megabits or replies its windows had, as the model counted them; None where nobody did."""
        if self.source != "model":
            return None
        # A run's windows of each traffic have the same names.
        windows = source.select(model.windows(self.result), case_id=self.case, traffic=self.traffic, load=self.load)
        counted = windows.dropna(subset=["data"]).set_index(PLACE)["data"]
        own = pd.MultiIndex.from_frame(self._sums(PLACE)[PLACE])
        return float(counted[counted.index.isin(own)].sum()) or None

    def folded(self) -> dict[str, float]:
        """The counts by folded stack: the role, then the thread and its functions from the outermost in; without callers the role, what
        has the function, and the function."""
        rows = self._sums(STACK if self.calls else FUNCTION)
        if self.calls:
            stacks = rows["role"].replace("", NO_ROLE) + ";" + rows["stack"]
        else:
            stacks = pd.Series([_flat(row.role, row.mode, row.object, row.function) for row in rows.itertuples()], dtype=object)
        return rows["value"].groupby(stacks.to_numpy()).sum().to_dict()

    @functools.lru_cache(maxsize=KEPT)  # noqa: B019 - of few, which the result has in any case
    def on_path(self) -> dict[str, float]:
        """Those of the path from endpoint to endpoint, by their role."""
        stacks = self.folded()
        rows = pd.DataFrame({"stack": list(stacks), "role": [stack.partition(";")[0] for stack in stacks]}).assign(case_id=self.case)
        return {stack: stacks[stack] for stack in rows.loc[source.on_path(self.result, rows), "stack"]}

    def _sums(self, columns: list[str]) -> pd.DataFrame:
        table = self.result.stacks if self.calls else self.result.functions
        own = (self.case, self.traffic, self.load, self.collector, self.source, self.event, self.unit)
        where = {name: value for name, value in zip(OF_PROFILE, own, strict=True) if name in table.names}
        return table.sums(columns, testbed=self.result.testbed, **where)


@functools.cache
def stored(result: Result) -> list[Profile]:
    """All that the result has: cases and traffics in the order of all figures, with callers before without, the largest event first.

    By function only what is not known by call stack.
    """
    by_stack, by_function = (_totals(result, table) for table in (result.stacks, result.functions))
    both = pd.concat([by_stack.assign(calls=True), by_function.assign(calls=False)]).drop_duplicates(OF_PROFILE)
    traffics = {pair: at for at, pair in enumerate(style.traffics(both))}
    largest = both.groupby("name")["value"].sum().rank(ascending=False)
    cases = list(result.cases.index)
    rows = sorted(
        both.itertuples(),
        key=lambda row: (cases.index(row.case_id), traffics[row.traffic, row.load], not row.calls, row.collector, largest[row.name]),
    )
    return [Profile(result, *(getattr(row, name) for name in OF_PROFILE), row.calls, row.value) for row in rows]


def usual(profiles: Iterable[Profile]) -> list[Profile]:
    """Of one traffic alone: at saturation, the flood first, where there is such; else the first."""
    found = list(profiles)
    sent = list(dict.fromkeys((one.traffic, one.load) for one in found))
    wanted = (vocabulary.at_saturation(sent) or sent)[:1]
    return [one for one in found if (one.traffic, one.load) in wanted]


def _totals(result: Result, table: Asked) -> pd.DataFrame:
    # A table of which no row has a load has no column for it.
    known = [name for name in OF_PROFILE if name in table.names]
    return table.sums(known, testbed=result.testbed)[[*OF_PROFILE, "value"]]


def _flat(role: str, mode: str, place: str, function: str) -> str:
    shown = f"[{place}]" if mode == "kernel" else place
    return ";".join(text.replace(";", ":") for text in (role or NO_ROLE, place, f"{function} ({shown})"))
