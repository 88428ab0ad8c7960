# SPDX-License-Identifier: GPL-2.0-or-later
"""One figure a file, shown by `show(result, "its_name")`; docs/adding-a-figure.md says what is in it, and how to add one.

Those named `validation_…` are of no result, but of a validation: they have `PART`, `table` and `plot`; explain_validation.py shows them.
"""

import base64
import fnmatch
import html
import importlib
import io
import pkgutil
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import matplotlib as mpl
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imsave

from vsprof.analysis import messages, model
from vsprof.analysis.load import Result
from vsprof.analysis.source import Source
from vsprof.analysis.sources import MODEL, SOFTWARE, SOURCES
from vsprof.terms import messages as terms_messages
from vsprof.terms import units

EMULATED = (
    "<strong>Emulated lab: wall-clock rates are the emulator's.</strong> They show that traffic flows and what limits "
    "it inside the emulator; they are not results about hardware."
)

MODELLED = (
    "<strong>Modelled processor: cycles are an estimate.</strong> The counts come from real software in the emulated lab, the misses "
    "and cycles from a model of the processor that is named here."
)


@dataclass(frozen=True)
class Shown:
    """A figure in a notebook: the image, its caption, and the numbers behind it."""

    figure: Figure
    caption: str
    table: pd.DataFrame

    def _repr_html_(self) -> str:
        image = base64.b64encode(png(self.figure)).decode()
        alt = self.caption.split(". ")[0]
        return (
            f'<figure><img alt="{alt}" src="data:image/png;base64,{image}"><figcaption>{self.caption}</figcaption>'
            f"<details><summary>numbers behind this figure</summary>{numbers(self.table)}</details></figure>"
        )


@dataclass(frozen=True)
class NotShown:
    """Stands where a figure can't, and says why."""

    text: str

    def _repr_html_(self) -> str:
        return f'<p class="not-shown">{_html(self.text)}</p>'


def names(*, of_validation: bool = False) -> list[str]:
    """The figures of results, or of validations: of every file in this folder that is one."""
    found = (one.name for one in pkgutil.iter_modules(__path__) if not one.name.startswith("__"))
    return sorted(name for name in found if name.startswith("validation_") == of_validation)


def show(result: Result, name: str) -> Shown | NotShown:
    """The figure `name` of the result, or the reason why there is none. BadInput where no figure has this name."""
    module = named(name, names())
    table = module.table(result)
    if table.empty:
        reasons = _missing(result, module) or [messages.EMPTY_TABLE]
        return NotShown(messages.not_shown(first_sentence(module), reasons))
    return Shown(module.plot(table), caption(module, result, table), table)


def show_counted(result: Result, name: str) -> Shown | NotShown | None:
    """The same, but nothing where its processor (a PMU, the model) counted nothing: a report need not say so in each place."""
    return show(result, name) if _source(named(name, names())).present(result) else None


def not_taken(result: Result) -> list[str]:
    """Numbers whose collectors ask for a figure that does not draw them, in a sentence each."""
    said = (result.manifest.get("vocabulary") or {}).get("collectors") or {}
    asked = {name: words["figure"] for one in said.values() for name, words in one["numbers"].items() if words["figure"]}
    modules = {name: named(name, names()) for name in names() if asked}
    takers = {name: module.TAKES for name, module in modules.items() if hasattr(module, "TAKES")}
    fit = {name: [figure for figure, pattern in takers.items() if fnmatch.fnmatchcase(name, pattern)] for name in asked}
    return [messages.not_taken(name, figure, fit[name]) for name, figure in asked.items() if figure not in fit[name]]


def per_data(result: Result, source: Source, counters: Sequence[str], **where: object) -> pd.DataFrame:
    """Median, low, high and n of each of a source's counters per unit of data, as of `Source.summary`, and the `counter`."""
    found = source.summary(result, source.per_data(*counters), **where)
    return found.assign(counter=found["metric"].str.removeprefix(source.prefix).str.replace(r"_per_[a-z]+$", "", regex=True))


def caption(module: ModuleType, result: Result, table: pd.DataFrame) -> str:
    """The docstring, then where, how often and how surely it was measured. HTML."""
    example = getattr(module, "SHOWS", None)
    source = SOURCES[table["source"].iloc[0]] if example else _source(module)
    n = sorted({int(value) for value in table.get("n", pd.Series(dtype=int)).dropna()})
    spread = f"n={n[0]}" if len(n) == 1 else f"n={n[0]} to {n[-1]}" if n else "n unknown"
    interval = "no interval from one repetition" if n == [1] else "95 % bootstrap intervals"
    parts = [
        html.escape(_words(module)),
        f"Testbed: {result.testbed}. Source: {html.escape(source.label(result))}.",
        example or f"{getattr(module, 'MIDDLE', 'Medians')} over repetitions ({spread}), {interval}.",
    ]
    if gaps := _missing(result, module):
        parts.append(_html(f"Not in it: {'; '.join(gaps)}."))
    if getattr(module, "WALL_CLOCK", source is SOFTWARE) and result.emulated:
        parts.append(EMULATED)
    if source is MODEL and not example:
        parts += [html.escape(messages.polling_left_in(cases)) for cases in [model.polling_left_in(result)] if cases]
        parts.append(MODELLED)
    return " ".join(parts)


def _html(text: str) -> str:
    """Of a sentence whose names of numbers stand between backticks."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))


def first_sentence(module: ModuleType) -> str:
    return _words(module).split(". ")[0].rstrip(".")


def named(name: str, known: Sequence[str]) -> ModuleType:
    """The figure's file. BadInput where the name is none of those that are `known`."""
    if name not in known:
        raise terms_messages.unknown_value("figure", name, known)
    return importlib.import_module(f"vsprof.analysis.figures.{name}")


def _words(module: ModuleType) -> str:
    return " ".join((module.__doc__ or "").split())


def _source(module: ModuleType) -> Source:
    """Whose metrics a figure draws."""
    return SOURCES[getattr(module, "SOURCE", SOFTWARE.name)]


def _missing(result: Result, module: ModuleType) -> list[str]:
    more = module.missing(result) if hasattr(module, "missing") else []
    return list(dict.fromkeys([*_source(module).missing(result, getattr(module, "NEEDS", ())), *more]))


def png(figure: Figure) -> bytes:
    """The image at the style's resolution. Drawn once: `savefig` draws all twice where it lays a figure out."""
    figure.set_dpi(mpl.rcParams["savefig.dpi"])
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    buffer = io.BytesIO()
    imsave(buffer, canvas.buffer_rgba(), format="png", dpi=figure.dpi)
    return buffer.getvalue()


def numbers(table: pd.DataFrame) -> str:
    """The table behind a figure, its values formatted by their own unit."""
    shown = table.drop(columns=["case_id", "topology", "arm", "setting", "switch", "access", "row", "cpu", "unit"], errors="ignore")
    for column in shown.columns.intersection(["median", "low", "high"]):
        shown[column] = [units.si(value, unit) for value, unit in zip(table[column], table["unit"], strict=True)]
    if "share_of_all" in shown:
        shown["share_of_all"] = [units.si(value, "fraction") for value in table["share_of_all"]]
    return shown.to_html(index=False, border=0, na_rep="–")
