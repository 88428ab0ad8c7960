# SPDX-License-Identifier: GPL-2.0-or-later
"""What is counted outside the cores: which events, how perf is started, and what is made of what it prints. No machine here has such
counters: perf is the stand-in of perf_stat's tests, and prints what perf stat is documented to print."""

import dataclasses
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.collectors.base import Recorded
from vsprof.collectors.events.processor import Processor
from vsprof.collectors.perf_stat import perf
from vsprof.collectors.uncore import Uncore
from vsprof.runner import window
from vsprof.runner.window import Probe
from vsprof.terms import places
from vsprof.terms.errors import BadInput
from vsprof.terms.placement import Placement
from vsprof.terms.schema import Number

CAPTURED = Path(__file__).with_name("captured")
PLACEMENT = Placement([], {0: "host-other"})
SPR, GNR, ZEN3, ZEN5C = (
    Processor(one) for one in ("GenuineIntel-6-8F-8", "GenuineIntel-6-AD-1", "AuthenticAMD-25-1-1", "AuthenticAMD-26-11-0")
)
LINE = {
    "counter-value": "1.000000",
    "unit": "",
    "event": "e",
    "event-runtime": 1000,
    "pcnt-running": 100.0,
    "metric-value": 0.0,
    "metric-unit": "",
}


@pytest.fixture(autouse=True)
def shipped_files_alone(monkeypatch):
    monkeypatch.setenv(places.EVENTS_NAMED, os.devnull)


@pytest.fixture
def on(tmp_path: Path, local: type) -> Callable[..., Uncore]:
    """The collector on a stand-in for a machine with this processor."""
    if shutil.which("bash") is None or not os.access("/run", os.W_OK):
        pytest.skip("a testbed's collectors need bash and a writable /run")

    def make(processor: Processor, **has: object) -> Uncore:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        text = Path(__file__).with_name("perf_stat").joinpath("pmu.py").read_text()
        (folder / "perf").write_text(text.replace("#!/usr/bin/env python3", f"#!{sys.executable} -S", 1))
        (folder / "perf").chmod(0o755)
        (folder / "pmu.json").write_text(json.dumps({"counters": 16, **has}))
        collector = Uncore(local(str(folder)))
        collector.seen = dataclasses.replace(perf.look(collector.host), processor=processor, pmu="cpu", kvm=False)
        return collector

    return make


def measured(collector: Uncore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Number]:
    """One window by the runner's own script."""
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "window"))
    probes = {"uncore": Probe(collector.begin(), collector.end(), collector.prepare(), collector.finish())}
    collector.host.push(window.script(probes, 0.05), f"{window.FOLDER}.sh")
    collector.host.run(f"bash {window.FOLDER}.sh")
    begin, end = ((tmp_path / "window" / f"uncore.{at}").read_text() for at in ("begin", "end"))
    numbers = list(Uncore.numbers(Recorded(begin, end, 2.0, PLACEMENT)))
    assert len({one.name for one in numbers}) == len(numbers)
    return {one.name: one for one in numbers}


def test_a_window(on, tmp_path, monkeypatch):
    collector = on(GNR)
    assert collector.unavailable() is None
    collector.setup()
    found = measured(collector, tmp_path, monkeypatch)
    collector.teardown()
    count = 1_110_000  # the stand-in's, of every event
    assert found["memory_read_bytes"] == Number("memory_read_bytes", 64 * 2 * count, "bytes", enabled_s=2.0, running_s=2.0)
    assert found["io_write_llc_hits"] == Number("io_write_llc_hits", count, "events", enabled_s=2.0, running_s=2.0)
    assert set(found) == set(collector.wanted)
    assert collector.vocabulary().numbers["memory_read_bytes"].words.startswith("Bytes read from memory")


def test_how_perf_is_asked(on):
    collector = on(SPR)
    assert collector.unavailable() is None
    [asked] = [line for line in collector.prepare().splitlines() if line.strip().startswith("-e ")]
    # Each by itself, in no group, of all units of a kind; and no modifier, for these counters know no modes.
    assert (
        "-e uncore_imc/event=0x05,umask=0xcf,name=UNC_M_CAS_COUNT.RD/,uncore_imc/event=0x05,umask=0xf0,name=UNC_M_CAS_COUNT.WR/,uncore_cha/"
        in asked
    )
    assert "{" not in asked
    assert collector.facts()["events"]["UNC_M_CAS_COUNT.RD"]["source"].startswith("Linux 6.12")


def test_an_event_that_perf_does_not_know_leaves_the_rest(on, tmp_path, monkeypatch):
    collector = on(SPR, unknown=["IO_HIT_ITOM"])
    assert collector.unavailable() is None
    found = measured(collector, tmp_path, monkeypatch)
    assert found["io_write_llc_hits"].value is None
    assert "event syntax error" in found["io_write_llc_hits"].note
    assert found["io_write_llc_misses"].value


def test_the_memory_controllers_of_amd(on, tmp_path, monkeypatch):
    collector = on(ZEN5C)
    assert collector.unavailable() is None
    assert "amd_umc/event=0x0a,rdwrmask=0x1,name=umc_cas_cmd.rd/,amd_umc/event=0x0a,rdwrmask=0x2," in collector.prepare()
    assert measured(collector, tmp_path, monkeypatch)["memory_write_bytes"].value == 64 * 1_110_000


def test_what_is_named_is_counted_and_nothing_else(on, tmp_path, monkeypatch):
    collector = on(SPR)
    collector.events = ["unc_m_cas_count.rd", "memory_write_bytes"]
    assert collector.unavailable() is None
    found = measured(collector, tmp_path, monkeypatch)
    assert found["UNC_M_CAS_COUNT.RD"] == Number("UNC_M_CAS_COUNT.RD", 1_110_000, "events", enabled_s=2.0, running_s=2.0)
    assert set(found) == {"UNC_M_CAS_COUNT.RD", "memory_write_bytes"}
    assert "UNC_M_CAS_COUNT.RD" in collector.vocabulary().numbers


def test_an_imported_event_is_counted(on, tmp_path, monkeypatch):
    (tmp_path / "events" / "sapphire-rapids").mkdir(parents=True)
    odd = {"EventName": "my-own", "EventCode": "0x83", "PortMask": "0x1", "Unit": "IIO"}
    (tmp_path / "events" / "sapphire-rapids" / "mine.json").write_text(json.dumps([odd]))
    monkeypatch.setenv(places.EVENTS_NAMED, str(tmp_path / "events"))
    collector = on(SPR)
    collector.events = ["my-own"]
    assert collector.unavailable() is None
    assert "uncore_iio/event=0x83,ch_mask=0x1" in collector.prepare()
    header = collector.begin().partition("'")[2].partition("'")[0]
    count = json.dumps({**LINE, "event": "my-own", "counter-value": "7"})
    assert [one.value for one in Uncore.numbers(Recorded(header, count, 1.0, PLACEMENT))] == [7.0]


@pytest.mark.parametrize("name", ["L1D.REPLACEMENT", "cpi", "nothing"])
def test_what_cores_count_or_nobody_is_refused(on, name):
    collector = on(SPR)
    collector.events = [name]
    with pytest.raises(BadInput, match=r"is counted by core: name it under perf_stat|no metric or event 'nothing'"):
        collector.unavailable()


@pytest.mark.parametrize("events", ["memory_read_bytes", [], [1]])
def test_bad_options(events):
    with pytest.raises(BadInput, match=r"uncore: events is .*, need a list of at least one name, such as \[memory_read_bytes\]"):
        Uncore.check_options({"events": events})


def test_where_there_is_nothing_to_count(on):
    assert on(ZEN3).unavailable() == "the catalogue has no event outside the cores of zen3"
    assert "event syntax error" in on(SPR, unknown=["uncore_"]).unavailable()


HEADER = json.dumps({"formulas": {"bytes": ["64 * (A.RD + B)", 1.0, "bytes"], "hits": ["C", 1.0, "events"]}, "left_out": {"C": "not here"}})


def numbers(*counts: dict, header: str = HEADER) -> dict[str, Number]:
    text = "# started on a day\n" + "\n".join(json.dumps({**LINE, **count}) for count in counts)
    return {one.name: one for one in Uncore.numbers(Recorded(f"{header}\nack\n", text, 2.0, PLACEMENT))}


def test_one_line_of_each_unit_is_one_sum():
    lines = [{"event": f"A.RD [uncore_imc_{unit}]", "counter-value": f"{unit}.0"} for unit in range(4)]
    found = numbers(*lines, {"event": "b", "counter-value": "4"})
    assert found["bytes"].value == 64 * (0 + 1 + 2 + 3 + 4)
    assert (found["hits"].value, found["hits"].note) == (None, "not here")


def test_what_perf_printed():
    """perf 6.1's own output of a window, with events of the kernel under the names of those that no machine here has."""
    begin, end = (CAPTURED.joinpath(f"uncore.{at}").read_text() for at in ("begin", "end"))
    counts = {one["event"]: float(one["counter-value"]) for line in end.splitlines() if line.startswith("{") for one in [json.loads(line)]}
    found = {one.name: one.value for one in Uncore.numbers(Recorded(begin, end, 0.3, PLACEMENT))}
    assert found["memory_read_bytes"] == 64 * counts["UNC_M_CAS_COUNT.RD"] > 0
    assert found["io_write_llc_misses"] == counts["UNC_CHA_TOR_INSERTS.IO_MISS_ITOM"]


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"pcnt-running": 50.0}, "it counted 50.0 % of the time only"),
        ({"counter-value": "<not supported>", "event-runtime": 0}, "perf did not count it: not supported"),
        ({"event-runtime": 0}, "its counter never ran"),
        ({"event": "other"}, "perf printed no count"),
        ({"counter-value": "many"}, "perf printed no count"),
    ],
)
def test_one_unit_that_is_not_to_be_trusted_leaves_no_value(changed, note):
    value = numbers({"event": "A.RD"}, {"event": "A.RD"}, {"event": "B", **changed})["bytes"]
    assert value.value is None
    assert note in value.note


@given(
    st.text() | st.builds(json.dumps, st.recursive(st.none() | st.text() | st.floats(), lambda one: st.dictionaries(st.text(), one))),
    st.text(),
)
def test_any_text_is_read_or_refused(begin, end):
    for first in (begin, HEADER):
        try:
            list(Uncore.numbers(Recorded(first, end, 1.0, PLACEMENT)))
        except ValueError:
            assert first != HEADER
