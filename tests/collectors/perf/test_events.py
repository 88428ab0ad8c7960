# SPDX-License-Identifier: GPL-2.0-or-later
"""The option ``events`` of perf_record. The text is perf 6.1's own of the kernel's events, on a machine without a PMU; what a PMU adds is
asked of a stand-in for perf, which knows the answers that perf is documented to give."""

import dataclasses
import os
from pathlib import Path

import pytest

from tests.collectors.perf.test_samples import HEAD, KERNEL, recorded
from vsprof.collectors.events.processor import Processor
from vsprof.collectors.perf_record import PerfRecord, events, samples
from vsprof.collectors.perf_stat import perf
from vsprof.terms import places
from vsprof.terms.errors import BadInput

CAPTURED = Path(__file__).parents[1] / "captured" / "perf" / "samples-events-6.1.txt"
ASKED = {"page-faults": ["page-faults"], "context-switches": ["context_switches"]}
ZEN4, SPR, N1 = (Processor(one) for one in ("AuthenticAMD-25-11-1", "GenuineIntel-6-8F-8", "0x00000000410fd0c0"))
STAND_IN = """#!/bin/sh
# Counts all but what is to be refused; samples precisely what PRECISE names, and what is not precise.
while [ $# -gt 1 ] && [ "$1" != -e ]; do [ "$1" = record ] && record=yes; shift; done
case $2 in *REFUSED*) echo "event syntax error: '$2'"; exit 129;; esac
if [ "$record" ]; then
    case $2 in *:GHp*|*/GHp*) case $2 in *PRECISE*) ;; *) echo "precise mode is not supported"; exit 255;; esac;; esac
else
    echo "1000;;event;1000000;100.00;;"
fi
"""


@pytest.fixture(autouse=True)
def shipped_files_alone(monkeypatch):
    monkeypatch.setenv(places.EVENTS_NAMED, os.devnull)


@pytest.fixture
def on(tmp_path, local):
    """The collector on a stand-in for a machine with this processor; what the catalogue calls `precise` can be sampled so."""

    def make(processor, names, precise="nothing", refused="nothing"):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "perf").write_text(STAND_IN.replace("PRECISE", precise).replace("REFUSED", refused))
        (folder / "perf").chmod(0o755)
        collector = PerfRecord(local(str(folder)), events=names)
        core = perf.Ran(0, "1;;task-clock;1;100.00;;\n1;;cycles;1;100.00;;\n1;;instructions;1;100.00;;")
        collector._seen = dataclasses.replace(
            perf.look(collector.host), perf="perf version 6.12", processor=processor, pmu="cpu", core=core
        )
        return collector

    return make


def test_each_sample_stands_for_so_many_events_of_its_own_name():
    text = CAPTURED.read_text()
    window = recorded(text, events=ASKED, kernels_own=True)
    found = samples.read(window.end).samples
    assert len(found) == 26
    sums = {name: sum(one.value for one in PerfRecord.stacks(window) if one.name == name) for name in ("page-faults", "context_switches")}
    periods = [line.split() for line in text.splitlines() if line.endswith(": ")]
    for event, [name] in ASKED.items():
        # The period stands between the time and the event.
        assert sums[name] == sum(int(words[-2]) for words in periods if words[-1] == f"{event}:") > 0
        assert sums[name] == sum(one.value for one in PerfRecord.numbers(window) if one.name == f"sampled_{name}")
        assert sums[name] == sum(one.value for one in PerfRecord.functions(window) if one.name == name)
    assert PerfRecord.source_of(window) == "software"
    assert not [one for one in PerfRecord.numbers(window) if one.name == "samples"]
    [note] = {one.note for one in PerfRecord.numbers(window) if one.name == "sampled_page-faults" and one.mode == "kernel"} or {""}
    assert not note or "samples of page-faults" in note


def test_the_same_text_without_names_is_of_samples():
    window = recorded(CAPTURED.read_text())
    assert sum(one.value for one in PerfRecord.stacks(window)) == 26


@pytest.mark.parametrize(
    ("printed", "names"),
    [
        ("ls_l1_d_tlb_miss.all_l2_miss", ["dtlb_walks"]), ("cycles:GHpp", ["cycles"]), ("cycles", ["cycles"]),
        ("irq:softirq_entry", ["softirqs"]), ("irq:softirq_exit", []),
    ],
)  # fmt: skip
def test_an_event_has_its_modifiers_behind_its_name_or_not(printed, names):
    asked = {"ls_l1_d_tlb_miss.all_l2_miss": ["dtlb_walks"], "cycles": ["cycles"], "irq:softirq_entry": ["softirqs"]}
    (one,) = samples.read(recorded(HEAD.format("K", f"     2003 {printed}") + KERNEL + "\n", events=asked).end).samples
    assert (list(one.names), one.weight) == (names, 2003)


def test_what_was_left_out_has_a_reason():
    window = recorded(CAPTURED.read_text(), events=ASKED, left_out={"llc_misses": "perf did not count it"})
    [found] = [one for one in PerfRecord.numbers(window) if one.name == "sampled_llc_misses"]
    assert (found.value, found.note) == (None, "perf did not count it")


def test_a_metric_is_sampled_by_all_of_its_events(on):
    collector = on(ZEN4, ["llc_misses", "l1d_misses"])
    assert collector.unavailable() is None
    assert collector.facts_of_events()["events"] == {
        "llc_misses": [
            "cpu/event=0x43,umask=0x08,name=ls_dmnd_fills_from_sys.dram_io_near/GH",
            "cpu/event=0x43,umask=0x40,name=ls_dmnd_fills_from_sys.dram_io_far/GH",
        ],
        "l1d_misses": ["cpu/event=0x60,umask=0xe8,name=l2_request_g1.all_dc/GH"],
    }
    assert collector._header()["events"]["ls_dmnd_fills_from_sys.dram_io_far"] == ["llc_misses"]
    assert collector._header()["kernels_own"] is False


def test_as_precise_as_the_machine_can(on):
    collector = on(SPR, "branch_misses,l1d_misses", precise="BR_MISP_RETIRED")
    assert collector.unavailable() is None
    told = collector.facts_of_events()
    assert told["precise"] == ["branch_misses"]
    assert told["events"]["branch_misses"] == ["cpu/event=0xc5,name=BR_MISP_RETIRED.ALL_BRANCHES/GHpp"]
    assert told["events"]["l1d_misses"][0].endswith("/GH")


def test_an_event_that_is_not_counted_leaves_the_rest(on):
    collector = on(SPR, ["llc_misses", "dtlb_walks"], refused="LONGEST_LAT")
    assert collector.unavailable() is None
    assert "event syntax error" in collector.facts_of_events()["left_out"]["llc_misses"]
    assert "event syntax error" in on(SPR, ["llc_misses"], refused="LONGEST_LAT").unavailable()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["cpi"], "no plain sum"),
        (["l1d_misses_per_packet"], "no plain sum"),
        (["l1d_missess"], "no metric or event"),
        (["memory_read_bytes"], "no plain sum"),
        (["UNC_M_CAS_COUNT.RD"], "outside the cores"),
        (["page-faults", "l1d_misses"], "together"),
    ],
)
def test_what_can_not_be_sampled(on, names, said):
    with pytest.raises(BadInput, match=said):
        on(SPR, names).unavailable()


def test_what_a_processor_does_not_have(on):
    with pytest.raises(BadInput, match="can't sample walk_cycles on this testbed"):
        on(ZEN4, ["walk_cycles"]).unavailable()


@pytest.mark.parametrize("given", [[], "", " , ", [1], {"a": 1}, None, 7])
def test_names_that_are_none(given):
    with pytest.raises(BadInput, match="events"):
        PerfRecord.check_options({"events": given})


def test_names_in_words_or_as_a_list():
    assert events.names_of("a, b c") == events.names_of(["a", "b", "c"]) == ["a", "b", "c"]
    PerfRecord.check_options({"events": "l1d_misses"})


def test_without_a_pmu_it_says_so(here):
    collector = PerfRecord(here, events=["l1d_misses"])
    why = collector.unavailable()
    if why is None:
        pytest.skip("this machine has a PMU")
    assert "PMU" in why or "perf" in why
