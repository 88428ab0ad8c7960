# SPDX-License-Identifier: GPL-2.0-or-later
"""This machine as a testbed; and the same with a stand-in for perf that has a PMU."""

import dataclasses
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vsprof.collectors import perf_stat
from vsprof.collectors.base import Recorded
from vsprof.collectors.events.processor import Processor
from vsprof.collectors.perf_stat import PerfStat, perf, preflight
from vsprof.runner import window
from vsprof.runner.window import Probe
from vsprof.terms import places
from vsprof.terms.placement import Placement
from vsprof.terms.schema import Number

os.environ[places.EVENTS_NAMED] = os.devnull
ZEN4 = Processor("AuthenticAMD-25-11-1", "a Zen 4")
PLACEMENT = Placement([], {0: "host-other", 1: "switch"})


@pytest.fixture(autouse=True)
def folders_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A campaign is alone on its machine; tests of several files run at once, and would take away each other's files."""
    for module in (perf_stat, preflight):
        monkeypatch.setattr(module, "FOLDER", f"{module.FOLDER}-of-test-{os.getpid()}")
    yield
    shutil.rmtree(perf_stat.FOLDER, ignore_errors=True)


@pytest.fixture
def with_pmu(tmp_path: Path, local: type) -> Callable[..., PerfStat]:
    """``with_pmu({"counters": 3}, events=[…])``: the collector on a stand-in for a Zen 4 that has this PMU."""
    if not os.access("/run", os.W_OK):
        pytest.skip("a testbed's collectors need a writable /run")

    def make(has: dict | None = None, **options: object) -> PerfStat:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        text = Path(__file__).with_name("pmu.py").read_text()
        (folder / "perf").write_text(text.replace("#!/usr/bin/env python3", f"#!{sys.executable} -S", 1))
        (folder / "perf").chmod(0o755)
        (folder / "pmu.json").write_text(json.dumps(has or {}))
        collector = PerfStat(local(str(folder)), **options)
        collector.seen = dataclasses.replace(perf.look(collector.host), processor=ZEN4, pmu="cpu", kvm=False)
        return collector

    return make


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Number]]:
    """Measure one window by the runner's own script, and return its numbers."""
    if shutil.which("bash") is None or not os.access("/run", os.W_OK):
        pytest.skip("the window's script needs bash and a writable /run")
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "window"))

    def measure(collector: PerfStat, number: int = 1, count: int = 1, seconds: float = 0.05, **others: Probe) -> list[Number]:
        collector.next_window(number, count)
        probes = {"perf_stat": Probe(collector.begin(), collector.end(), collector.prepare(), collector.finish()), **others}
        collector.host.push(window.script(probes, seconds), f"{window.FOLDER}.sh")
        collector.host.run(f"bash {window.FOLDER}.sh")
        begin, end = ((tmp_path / "window" / f"perf_stat.{at}").read_text() for at in ("begin", "end"))
        return list(PerfStat.numbers(Recorded(begin, end, seconds, PLACEMENT)))

    return measure
