# SPDX-License-Identifier: GPL-2.0-or-later
"""Results in Python: ``vsprof.load("latest")`` gives tables, ratios with intervals, the decomposition of cycles, and figures.

Everything returned is pandas or matplotlib. What a report says is made of the same functions.
"""

import difflib
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import compare, decompose, explain, figures, messages
from vsprof.analysis.load import Result
from vsprof.analysis.load import load as read
from vsprof.analysis.sources import MODEL, SOURCES, source_of
from vsprof.analysis.stats import Estimate
from vsprof.terms import messages as terms_messages
from vsprof.terms import places

__all__ = ["Estimate", "Run", "load"]
Case = str | Mapping[str, object]
"""One case of a run: a switch, an access, a label or an id; or values, such as ``{"switch": "ovs-dpdk", "frame_bytes": 64}``."""


def load(result: str | Path = "latest") -> "Run":
    """Read a result.

    Parameters
    ----------
    result : str or pathlib.Path
        A folder, or a name below the folder of results (``VSPROF_RESULTS``, or ``results`` of the clone or the working folder). The
        ``reference`` run comes with vsprof.

    Returns
    -------
    Run

    Raises
    ------
    vsprof.terms.errors.BadInput
        If there is no such result, or it can't be read; the text names the file.
    """
    known = [Path(result), places.RESULTS / result, places.ROOT / "results" / result]
    return Run(read(next((path for path in known if (path / "manifest.json").is_file()), known[1])))


@dataclass(frozen=True)
class Run:
    """A result: what one campaign measured."""

    _result: Result = field(repr=False)

    @property
    def path(self) -> Path:
        """Its folder."""
        return self._result.path

    @property
    def manifest(self) -> dict[str, Any]:
        """What manifest.json says: versions, placement, the outcome of every run."""
        return self._result.manifest

    @property
    def cases(self) -> pd.DataFrame:
        """A row a case, by its id: its label, switch, access, topology and all values."""
        return self._result.cases

    @property
    def measurements(self) -> pd.DataFrame:
        """Every number of the finished runs, tidy: a row a number, with the columns of docs/results.md."""
        return self._result.frame

    @property
    def functions(self) -> pd.DataFrame:
        """What was counted in single functions, a row a count, with the columns of docs/results.md."""
        return self._result.functions.select()

    @property
    def timeline(self) -> pd.DataFrame:
        """What happened when in a part of each window, with the columns of docs/results.md; empty where nobody wrote it down."""
        return self._result.timeline.select()

    @functools.cached_property
    def metrics(self) -> pd.DataFrame:
        """Every metric that is made of these numbers, before any statistics.

        A row a run, window, metric, role and CPU (-1: all of them), with its ``source`` (software, model, hardware). The value is ``part``
        / ``per``: sum both over windows before you divide, so that a long window weighs as much as it should.
        """
        return pd.concat([one.of(self._result).assign(source=name) for name, one in SOURCES.items()], ignore_index=True)

    def summary(self, metric: str, **where: object) -> pd.DataFrame:
        """A metric of all cases and traffics: ``median``, ``low`` and ``high`` (95 % interval; NaN with one repetition), ``n``, ``unit``.

        Parameters
        ----------
        metric : str
            A name in ``metrics``, for example ``packet_rate_received`` or ``model_cycles_per_packet``.
        **where
            Columns that must have a value: ``traffic="udp_flood"``, ``load="saturation"``, ``role="switch"``.

        Returns
        -------
        pandas.DataFrame
            A row a case, traffic, load and role.

        Raises
        ------
        KeyError
            If nobody counted that.
        vsprof.terms.errors.BadInput
            If there is no such column, traffic or load; the text lists those that there are.
        """
        self._check(**where)
        found = source_of(metric).summary(self._result, [metric], **where)
        if found.empty:
            raise KeyError(f"nobody counted {metric} {where or ''}".strip() + self._near(metric))
        return found

    def ratio(
        self, metric: str, of: Case, over: Case, *, traffic: str = "udp_flood", load: str = "saturation", **where: object
    ) -> Estimate:
        """How many times the metric of case ``over`` that of case ``of`` is: above 1, ``of`` has more.

        Repetitions that ran side by side are compared in pairs. The interval is a hierarchical bootstrap's (95 %); see
        ``vsprof.analysis.stats``.

        Parameters
        ----------
        metric : str
            A name in ``metrics``.
        of, over : str or mapping
            The two cases: a switch, an access, a label or an id; or values, such as ``{"switch": "ovs-dpdk", "frame_bytes": 64}``.
        traffic, load : str
            While this was sent.
        **where
            More columns that must have a value: ``role="switch"`` for a part of the path.

        Returns
        -------
        Estimate
            ``median``, ``low``, ``high``, ``n``.

        Raises
        ------
        KeyError
            If nobody counted that in both.
        vsprof.terms.errors.BadInput
            If no case, or more than one, is meant.
        """
        self._check(traffic=traffic, load=load, **where)
        one = source_of(metric).ratio(self._result, self._case(of), self._case(over), traffic=traffic, load=load, metric=metric, **where)
        if not one.n:
            raise KeyError(f"nobody counted {metric} of {traffic}, {load}, in both cases{self._near(metric)}")
        return one

    def compare(self, a: Case, b: Case | None = None, *, other: "Run | None" = None) -> pd.DataFrame:
        """Every metric of ``b`` against ``a``, the surest and largest differences first, as ``vsprof compare`` prints it.

        Parameters
        ----------
        a, b : str or mapping
            The two cases, as in ``ratio``. Without ``b`` it is the case like ``a``, of ``other``.
        other : Run, optional
            The run that ``b`` is of; without it, this one.

        Returns
        -------
        pandas.DataFrame
            ``ratio``, ``low``, ``high``, the smallest difference of the ratio from 1 that such data would show (``detectable``), ``n``,
            ``verdict``, ``better`` (which direction is).

        Raises
        ------
        vsprof.terms.errors.BadInput
            If no case, or more than one, is meant.
        """
        against = other or self
        sides = compare.Side(self._result, self._case(a)), compare.Side(against._result, against._case(a if b is None else b))
        return compare.compared(*sides).table

    def decomposition(
        self, of: Case, over: Case, *, traffic: str = "udp_flood", load: str = "saturation", source: str = MODEL.name
    ) -> pd.DataFrame:
        """By how much each cause and each role multiplies the cycles per unit of data of ``over`` to give those of ``of``.

        Parameters
        ----------
        of, over : str or mapping
            The two cases, as in ``ratio``.
        traffic, load : str
            While this was sent.
        source : str
            ``model``, or ``hardware`` where a PMU counted.

        Returns
        -------
        pandas.DataFrame
            ``part`` is a natural logarithm: the parts of one ``split`` add up to the whole. Empty where nobody counted both cases.

        Raises
        ------
        vsprof.terms.errors.BadInput
            If there is no such traffic, load or source, or no case, or more than one, is meant.
        """
        self._check(traffic=traffic, load=load)
        if source not in SOURCES:
            raise terms_messages.unknown_value("source", source, SOURCES)
        case, base = ((self._result, self._case(one)) for one in (of, over))
        return decompose.between(case, base, source=source, traffic=traffic, load=load)

    def figures(self) -> list[str]:
        """The names of the figures that this result has data for.

        Returns
        -------
        list of str
        """
        return [name for name in figures.names() if isinstance(figures.show(self._result, name), figures.Shown)]

    def figure(self, name: str) -> Figure:
        """A figure, as the report has it.

        Parameters
        ----------
        name : str
            One of ``figures()``.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        KeyError
            If there is none of that name, or the result has no data for it.
        """
        if name not in figures.names():
            raise KeyError(f"no figure {name}: one of {', '.join(figures.names())}")
        shown = figures.show(self._result, name)
        if not isinstance(shown, figures.Shown):
            raise KeyError(shown.text)
        return shown.figure

    def answer(self) -> str:
        """The first sentences of its report.

        Returns
        -------
        str
            Markdown.
        """
        return "\n\n".join(filter(None, [explain.answer(self._result), self._result.doubt]))

    def __str__(self) -> str:
        return f"{self.manifest['name']}, {self.manifest['status']}: {self.path}"

    def _check(self, **where: object) -> None:
        """Raise ``BadInput`` where there is no such column, traffic or load."""
        columns = [name for name in self.metrics.columns if name not in ("metric", "part", "per")]
        for name, value in where.items():
            if name not in columns:
                raise terms_messages.unknown_value("column", name, columns)
            known = sorted(set(self.measurements[name])) if name in ("traffic", "load") else [value]
            if value not in known:
                raise terms_messages.unknown_value(name, value, known)

    def _near(self, metric: str) -> str:
        near = difflib.get_close_matches(metric, sorted(set(self.metrics["metric"])), cutoff=0.5)
        return f"; near it: {', '.join(near)}" if near and metric not in near else ""

    def _case(self, wanted: Case) -> str:
        cases = self.cases
        if isinstance(wanted, str):
            named = next(
                (has for has in (cases.index == wanted, *(cases[one] == wanted for one in ("label", "switch", "access"))) if has.any()),
                None,
            )
            found = [] if named is None else list(cases.index[named])
        else:
            values = {str(case): {**self._result.values[str(case)], **row} for case, row in cases.iterrows()}
            found = [case for case, has in values.items() if all(str(has.get(name)) == str(value) for name, value in wanted.items())]
        if len(found) != 1:
            raise messages.not_one_case(str(wanted), found or list(map(str, cases.index)), bool(found))
        return str(found[0])
