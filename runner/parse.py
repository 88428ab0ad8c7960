# SPDX-License-Identifier: GPL-2.0-or-later
"""From what was recorded to numbers, by the collectors' and the traffic's own parsers.

Numbers are only ever computed here, from raw/: so a parser that proves wrong can be fixed, and old results parsed again.
"""

import errno
import functools
import json
import math
import operator
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vsprof.collectors.base import Between, Collector, Recorded
from vsprof.runner import messages, window
from vsprof.runner.experiment import COLLECTORS, SWITCHES, TRAFFIC
from vsprof.switches.base import PortCounters
from vsprof.terms import errors, schema
from vsprof.terms.placement import Placement
from vsprof.testbeds.base import MODELLED
from vsprof.workloads.traffic.base import Window, port_rate

Row = dict[str, object]
DISK = (errno.EIO, errno.ENOSPC)
"""Nobody's mistake in a parser."""


def tables_of_run(folder: Path) -> list[list[Row]]:
    """All tables of the run recorded in ``folder``, in the order of ``Results.record``. Raises ``VsprofError`` where a parser fails, in
    whatever way: it may be a user's own."""
    try:
        return [read(folder) for read in (rows_of_run, functions_of_run, stacks_of_run, spans_of_run)]
    except errors.VsprofError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in DISK:
            raise
        raise messages.not_parsed(folder.name, error, traceback.extract_tb(error.__traceback__)[-1]) from error


def rows_of_run(folder: Path) -> list[Row]:
    """All rows of the run recorded in ``folder`` (raw/<run_id>)."""
    run = json.loads((folder / "run.json").read_text())
    return [row for item in run["traffics"] for row in _rows_of_traffic(folder / item["label"], run, item)]


def functions_of_run(folder: Path) -> list[Row]:
    """The same for what was counted in single functions: rows of the table ``schema.FUNCTION``. None where no collector knows."""
    return _rows(folder, lambda collector, recorded: collector.functions(recorded))


def stacks_of_run(folder: Path) -> list[Row]:
    """The same for what was counted in call stacks: rows of the table ``schema.STACK``."""
    return _rows(folder, lambda collector, recorded: collector.stacks(recorded))


def spans_of_run(folder: Path) -> list[Row]:
    """The same for what happened when: rows of the table ``schema.SPAN``."""
    return _rows(folder, lambda collector, recorded: collector.spans(recorded))


def _rows(folder: Path, parser: Callable[[type[Collector], Recorded], Iterable[schema.Counted]]) -> list[Row]:
    run = json.loads((folder / "run.json").read_text())
    return [
        schema.row(where, name, source, counted)
        for item in run["traffics"]
        for where, name, recorded in _recordings(folder / item["label"], run, item)
        for source in [COLLECTORS[name].source_of(recorded)]
        for counted in parser(COLLECTORS[name], recorded)
    ]


def _rows_of_traffic(folder: Path, run: Mapping[str, Any], item: Mapping[str, Any]) -> Iterable[Row]:
    normal = [one for one in _windows(folder) if not schema.window_owner(one.name)]
    raw = {path.name: path.read_text() for path in (folder / "traffic").iterdir()}
    windows = [_traffic_window(one, run) for one in normal]
    for number in TRAFFIC[item["kind"]].numbers(raw, windows):
        yield schema.row(_where(run, item, ""), item["kind"], _source("software", number, run), number)
    for where, name, recorded in _recordings(folder, run, item):
        source = COLLECTORS[name].source_of(recorded)
        for number in COLLECTORS[name].numbers(recorded):
            yield schema.row(where, name, _source(source, number, run), number)


def _source(source: str, number: schema.Number, run: Mapping[str, Any]) -> str:
    """In modelled time a program's count is still a count, but what it says of time is the model's word."""
    of_time = number.unit == "seconds" or number.unit.endswith("/s")
    return "model" if source == "software" and of_time and run.get("clock") == MODELLED else source


def _recordings(folder: Path, run: Mapping[str, Any], item: Mapping[str, Any]) -> Iterable[tuple[Row, str, Recorded]]:
    """What each collector recorded in each window of a traffic: the window's coordinates, the collector, the recording."""
    placement = Placement.from_json(item["placement"])
    for one in _windows(folder):
        owner = schema.window_owner(one.name)
        for name in [owner] if owner else run["collectors"]:
            yield _where(run, item, one.name), name, own(one / f"{name}.end", placement) if owner else shared(one, name, placement)


def _where(run: Mapping[str, Any], item: Mapping[str, Any], window_name: str) -> Row:
    return {**run["where"], "traffic": item["kind"], "load": item["load"], "window": window_name}


def _windows(folder: Path) -> list[Path]:
    return sorted((one for one in folder.iterdir() if one.name != "traffic"), key=_order)


def _order(folder: Path) -> tuple[str, int]:
    """Normal windows first, then each collector's own; each kind by number."""
    owner = schema.window_owner(folder.name) or ""
    return owner, int(folder.name.removeprefix(f"{owner}-" if owner else "w"))


def rate_out_of(folder: Path, switch: str, names: Sequence[str]) -> float | None:
    """Packets per second that the switch sent out of the ports of these ``names`` in the window of ``folder``; None where it counts other
    ports only.

    Raises ``ValueError`` when what was recorded can't be read.
    """
    return port_rate(_counted(_ports(folder, switch), names), "sent_packets", window.recorded_seconds(folder, window.PORTS))


def _ports(folder: Path, switch: str) -> list[dict[str, PortCounters]]:
    """The counters of all ports of a switch at both ends of a window."""
    return [SWITCHES[switch].parse_port_counters((folder / f"{window.PORTS}.{end}").read_text()) for end in ("begin", "end")]


def _traffic_window(folder: Path, run: Mapping[str, Any]) -> Window:
    samples = window.recorded_samples(folder)
    ports = _ports(folder, run["where"]["switch"])
    into, out = (_counted(ports, _names(run, end)) for end in ("sender", "receiver"))
    return Window(folder.name, samples, window.recorded_seconds(folder, window.PORTS), into, out)


def _names(run: Mapping[str, Any], end: str) -> list[str]:
    """The ports of all senders, or receivers. A run that an earlier vsprof recorded has one of each."""
    return run[f"{end}_ports"] if f"{end}_ports" in run else [run[f"{end}_port"]]


def _counted(ports: list[dict[str, PortCounters]], names: Sequence[str]) -> tuple[PortCounters | None, PortCounters | None]:
    """The counters of ports together at both ends of a window; None twice where the switch counts other ports only. Raises
    ``ValueError``."""
    lacking = [{name for name in names if name not in one} for one in ports]
    if not all(ports) or lacking[0] != lacking[1] or lacking[0] not in (set(), set(names)):
        raise ValueError(f"counters of the ports {sorted(ports[0])} at the begin and {sorted(ports[1])} at the end, not of all: {names}")
    before, after = (None if lacking[0] else functools.reduce(operator.add, (one[name] for name in names)) for one in ports)
    return before, after


def shared(folder: Path, name: str, placement: Placement) -> Recorded:
    """What a collector recorded in a window that all share. One that looks between windows has no times there."""
    begin, end = ((folder / f"{name}.{at}").read_text() for at in ("begin", "end"))
    seconds = math.nan if issubclass(COLLECTORS[name], Between) else window.recorded_seconds(folder, name)
    return Recorded(begin, end, seconds, placement)


def own(recorded: Path, placement: Placement) -> Recorded:
    """Of an own window, whose length the collector itself knows."""
    return Recorded("", recorded.read_text(), math.nan, placement)
