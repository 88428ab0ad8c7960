# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers in README and docs/, filled in from results: ``python -m vsprof.analysis.pages RESULT…`` (``make pages RUN=…``).

A page marks what it wants: ``<!--= vm2vm.lab ratio udp_flood saturation packet_rate_received | switch=ovs-dpdk | switch=kernel-ovs -->``,
then the number, then ``<!--/-->``. Before the first blank: experiment and testbed, or ``reference`` for results/reference. Marks of other
experiments than the results' stay as they are, so a page keeps the numbers that it has. What a mark can ask for: `ASKS`.
"""

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pandas as pd

from vsprof.analysis import describe, explain, messages, roofline, show, style, what_if
from vsprof.analysis.load import Result, load
from vsprof.analysis.source import Source
from vsprof.analysis.sources import MODEL, source_of
from vsprof.analysis.stats import Estimate
from vsprof.terms import errors, places, units

ROOT = places.ROOT
MARK = re.compile(r"(<!--= (?P<of>\S+) (?P<ask>[^>]*?) -->)(?P<old>.*?)(<!--/-->)", re.DOTALL)
REFERENCE = "reference"
WIDTH = 118
"""Columns of a quoted line, without the mark of the quotation."""


def main(arguments: list[str] | None = None) -> int:
    """Fill the marks of the results named; prints what pages changed. Exit status 2 if a mark can't be filled."""
    try:
        found = {key(result): result for result in map(load, sys.argv[1:] if arguments is None else arguments)}
        for page in pages():
            text = page.read_text(encoding="utf-8")
            if (filled := fill(text, found, page.relative_to(ROOT))) != text:
                page.write_text(filled, encoding="utf-8")
                print(page.relative_to(ROOT))
    except errors.VsprofError as error:
        print(f"vsprof: {error}", file=sys.stderr)
        return error.exit_status
    return 0


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def key(result: Result) -> str:
    """What a page calls a result: ``vm2vm.lab``; in the emulator's time ``vm2vm.emulated``."""
    if result.path.parent == ROOT / "results" and result.path.name == REFERENCE:
        return REFERENCE
    return f"{result.manifest['name']}.{'emulated' if result.emulated else result.testbed}"


def fill(text: str, results: Mapping[str, Result], page: Path) -> str:
    """The text with all marks of these results filled. Raises ``BadInput`` for one that asks for what its result does not have."""

    def filled(mark: re.Match[str]) -> str:
        result = results.get(mark["of"])
        if result is None:
            return mark[0]
        try:
            return f"{mark[1]}{said(result, mark['ask'])}{mark[5]}"
        except (LookupError, ValueError) as error:
            raise messages.mark_unfilled(page, f"{mark['of']} {mark['ask']}", error) from error

    return MARK.sub(filled, text)


def said(result: Result, ask: str) -> str:
    """What stands behind the mark. Raises ``LookupError`` or ``ValueError`` with the reason."""
    # In a table's cell a bar is escaped.
    words, *cases = (part.strip() for part in re.split(r"\\?\|", ask))
    what, *rest = words.split()
    if what not in ASKS:
        raise ValueError(f"one of {', '.join(ASKS)}, not {what}")
    return ASKS[what](result, rest, cases)


# -- what can be asked for ----------------------------------------------------------------------------------------


def _ratio(result: Result, words: list[str], cases: list[str]) -> str:
    """TRAFFIC LOAD METRIC [ROLE] | CASE | BASE: how many times the metric of the base that of the case is."""
    return _interval(_compared(result, words, cases))


def _inverse(result: Result, words: list[str], cases: list[str]) -> str:
    """The same of small ratios: as one part in so many."""
    return _interval(_compared(result, words, cases), shown=lambda value, _: f"1/{units.significant(1 / value)}" if value else "0")


def _compared(result: Result, words: list[str], cases: list[str]) -> Estimate:
    source, where = _counted(result, words)
    case, base = (_case(result, one) for one in cases)
    return source.ratio(result, case, base, **where)


def _value(result: Result, words: list[str], cases: list[str]) -> str:
    """TRAFFIC LOAD METRIC [ROLE] | CASE: the median and its interval."""
    [case] = cases
    return _cell(result, _case(result, case), *_counted(result, words))


def _table(result: Result, words: list[str], _: list[str]) -> str:
    """TRAFFIC LOAD METRIC…: a table, a row a case."""
    traffic, load_, *metrics = words
    columns = [_where([traffic, load_, *metric.split(":")]) for metric in metrics]
    heads = [metric.replace("_", " ").replace("model ", "") for metric in metrics]
    rows = [[f"`{result.cases.loc[case, 'label']}`", *(_cell(result, case, *one) for one in columns)] for case in result.cases.index]
    return _markdown([style.traffic_name(traffic, load_), *heads], rows)


def _cell(result: Result, case: str, source: Source, where: Mapping[str, str]) -> str:
    one = source.estimate(result, case_id=case, **where)
    return _interval(one, source.unit(result, case_id=case, **source.usual(dict(where))))


def _headlines(result: Result, _: list[str], __: list[str]) -> str:
    """The tables of `vsprof show`, a column a case: what was measured, and, at saturation, what the modelled processor counted."""
    frames = [describe.headlines(result).frame]
    if MODEL.present(result):
        frames.append(show.at_saturation(describe.headlines(result, MODEL).frame))
    return "\n".join(_markdown(list(frame.columns), frame.to_numpy().tolist()) for frame in frames)


def _run(result: Result, _: list[str], __: list[str]) -> str:
    """Where the numbers come from, in a few words."""
    commit = str((result.manifest.get("git") or {}).get("commit", "–"))[:12]
    time = f"predicted for an {result.modelled}" if result.modelled else "in the emulator's time" if result.emulated else "natively"
    count = result.repetitions
    return f"{time}, {count} repetition{'s' if count != 1 else ''} on {result.manifest['started'][:10]} with vsprof {commit}"


def _answer(result: Result, _: list[str], __: list[str]) -> str:
    """The first sentences of its report, quoted."""
    paragraphs = ["\n".join(f"> {line}" for line in _wrapped(one)) for one in explain.answer(result).split("\n\n")]
    return "\n\n" + "\n>\n".join(paragraphs) + "\n\n"


def _show(result: Result, _: list[str], __: list[str]) -> str:
    """What `vsprof show` prints of it."""
    lines = show.text(result).splitlines()
    # The lines of its tables are as long as they must be.
    return "\n\n```\n" + "\n".join("\n".join(_wrapped(line)) if "  " not in line.strip() else line for line in lines) + "\n```\n\n"


def _changes(result: Result, _: list[str], __: list[str]) -> str:
    """What each of the experiment's changes does to each switch's rate: a table."""
    return _beside("change", what_if.beside(result, lambda one: what_if.in_percent(one.ratio)))


def _speeds(result: Result, _: list[str], __: list[str]) -> str:
    """What each does to the instructions that the switch's processors end in a second: a table."""
    return _beside("change", what_if.beside(result, lambda one: what_if.in_percent(one.speed)))


def _elasticities(result: Result, _: list[str], __: list[str]) -> str:
    """The same by elasticities, of the changes that have one."""
    return _beside("elasticity of the rate to", what_if.beside(result, what_if.elasticity))


def _bounds(result: Result, _: list[str], __: list[str]) -> str:
    """What bounds each switch: a list."""
    lines = (textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in roofline.answer(result).splitlines())
    return "\n\n" + "\n".join(lines) + "\n\n"


ASKS: dict[str, Callable[[Result, list[str], list[str]], str]] = {
    one.__name__.removeprefix("_"): one
    for one in (_ratio, _inverse, _value, _table, _headlines, _run, _answer, _show, _changes, _speeds, _elasticities, _bounds)
}


# -- how it is found and told -------------------------------------------------------------------------------------


def _where(words: list[str]) -> tuple[Source, dict[str, str]]:
    """TRAFFIC LOAD METRIC [ROLE], a role's blanks as underscores; and whose number that is."""
    traffic, load_, metric, *role = words
    found = {"traffic": traffic, "load": load_, "metric": metric, **({"role": role[0].replace("_", " ")} if role else {})}
    return source_of(metric), found


def _case(result: Result, wanted: str) -> str:
    """The one case with all these values, such as ``switch=ovs-dpdk frame_bytes=64``."""
    pairs = dict(pair.split("=", 1) for pair in wanted.split())
    has = {str(case): {**result.values[str(case)], "switch": row.switch, "access": row.access} for case, row in result.cases.iterrows()}
    found = [case for case, values in has.items() if all(str(values.get(name)) == value for name, value in pairs.items())]
    if len(found) != 1:
        raise LookupError(f"{len(found)} cases have {wanted or 'any value'}: {', '.join(found or map(str, result.cases.index))}")
    return found[0]


def _counted(result: Result, words: list[str]) -> tuple[Source, dict[str, str]]:
    """The same of a metric that some case of the result has: else its name is wrong, most likely."""
    source, where = _where(words)
    if source.rows(result, metric=where["metric"]).empty:
        raise LookupError(f"nobody counted {' '.join(words)}")
    return source, where


def _interval(one: Estimate, unit: str = "", shown: Callable[[float | None, str], str] = describe.number) -> str:
    return describe.with_interval(one, unit, f" (n={one.n})", shown) if one.n else "–"


def _markdown(heads: list[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n\n" + "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines) + "\n"


def _beside(head: str, table: pd.DataFrame) -> str:
    return _markdown([head, *table.columns], ([name, *row] for name, row in zip(table.index, table.to_numpy().tolist(), strict=True)))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False) or [""]


if __name__ == "__main__":
    sys.exit(main())
