# SPDX-License-Identifier: GPL-2.0-or-later
"""The guides do what they say: their files work as they stand, their commands are understood. What needs the lab is not run.

The example of docs/adding-a-pmu-event.md is tested with the event catalogue, that of docs/adding-a-cpu-profile.md with the profiles.
"""

import inspect
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from vsprof.analysis import figures
from vsprof.analysis.load import load
from vsprof.collectors.base import Recorded
from vsprof.runner import cli
from vsprof.runner import experiment as experiments
from vsprof.terms import units
from vsprof.terms.placement import Placement
from vsprof.workloads.endpoints.base import Counters
from vsprof.workloads.traffic.base import Sample, Window

ROOT = Path(__file__).parents[1]
PAGES = {path.stem: path.read_text() for path in (*sorted((ROOT / "docs").glob("adding-*.md")), ROOT / "docs" / "experiments.md")}
SOFTNET = " ".join(["{:08x}"] * 13)
"""/proc/net/softnet_stat of Linux 6.1: a line a CPU."""


def blocks(page: str, kind: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)
    return [text for its_kind, text in found if its_kind == kind]


def example(page: str) -> ModuleType:
    """The page's file as a module."""
    module = ModuleType(page)
    exec(compile(blocks(page, "python")[0], page, "exec"), module.__dict__)
    return module


def test_the_collector_counts():
    collector = example("adding-a-collector").COLLECTOR
    line = lambda cpu, seen: SOFTNET.format(seen, 2 * seen, 3 * seen, *[0] * 9, cpu)  # noqa: E731
    begin, end = ("\n".join(line(cpu, seen) for cpu in (0, 2)) for seen in (5, 12))
    found = list(collector.numbers(Recorded(begin, end, 2.0, Placement([], {0: "host-other", 2: "guest"}))))
    assert {(one.name, one.cpu): (one.value, one.role) for one in found if one.cpu == 2} == {
        ("softnet_processed", 2): (7, "guest"), ("softnet_dropped", 2): (14, "guest"), ("softnet_squeezed", 2): (21, "guest"),
    }  # fmt: skip
    assert {one.name for one in found} == set(collector.says)
    assert not units.unknown(("softnet", one.unit, one.name) for one in found)


def test_the_table_of_units_has_all_that_are_known():
    rows = re.findall(r"^\| (.*?) \| (?:`…_per|divided|as it was)", PAGES["adding-a-collector"], re.MULTILINE)
    assert set(units.KNOWN) <= {unit for row in rows for unit in re.findall(r"`(.*?)`", row)}


def test_the_switch_and_the_traffic_lack_nothing():
    for made in (example("adding-a-switch").SWITCH, example("adding-a-traffic").TRAFFIC):
        assert not inspect.isabstract(made)


def test_the_traffic_has_the_number_that_it_is_judged_by():
    traffic = example("adding-a-traffic").TRAFFIC
    ends = (Sample(*[Counters(clock, received, 0, 0, 0)] * 2) for clock, received in ((1.0, 10), (3.0, 50)))
    numbers = {one.name: one.value for one in traffic.numbers({}, [Window("w1", tuple(ends), 2.0, (None, None), (None, None))])}
    assert numbers == {"window_seconds": 2.0, "answer_rate": 20.0}
    assert traffic.data.number == traffic.headlines[0].metric == "answer_rate"


def test_the_figure_is_drawn_of_the_result_that_the_page_names(monkeypatch):
    module = example("adding-a-figure")
    monkeypatch.setattr(figures, "named", lambda name, known: module)
    shown = figures.show(load(ROOT / "results" / "reference"), "waiting")
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert {"switch", "vhost"} >= set(shown.table["role"])


def test_an_experiment_is_what_the_page_says_of_it():
    whole, *parts = (yaml.safe_load(text) for text in blocks("experiments", "yaml"))
    cases = [len(experiments.cases(experiments.parse(whole, "page")))]
    for part in parts:
        more = {"traffic": part} if isinstance(part, list) else part
        changed = {**whole, "vary": {"switch": ["kernel-ovs", "ovs-dpdk"]}, "fixed": {"topology": "vm2vm"}, **more}
        cases.append(len(experiments.cases(experiments.parse(changed, "page"))))
    assert cases == [6, 6, 6, 6, 6, 3, 6, 2, 2]


def commands() -> list[tuple[str, str]]:
    lines = [(page, line) for page in PAGES for block in blocks(page, "") for line in block.splitlines()]
    return [(page, line.partition("vsprof ")[2]) for page, line in lines if line.startswith(("build/venv/bin/vsprof ", "vsprof "))]


@pytest.mark.parametrize(("page", "line"), commands())
def test_a_command_is_understood(page, line):
    asked = cli._parser().parse_args(shlex.split(line))
    assert callable(asked.do)
