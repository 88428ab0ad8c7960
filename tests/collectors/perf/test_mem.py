# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads and stores. The text is perf 6.1's of page faults with their addresses, on a machine without a PMU: what a PMU would have put in the
place of `N/A` (event, data_src and its words, weight, physical address) was written by hand after perf_event_open(2) and perf-c2c(1)."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.collectors import perf_mem
from vsprof.collectors.base import Recorded
from vsprof.collectors.perf_mem import PerfMem
from vsprof.terms.errors import BadInput
from vsprof.terms.placement import Placement

CAPTURED = (Path(__file__).parents[1] / "captured" / "perf_mem.end").read_text()
HEAD = (
    "gzip  7/7  [001] U     30042.334049457:      10077 cpu/mem-loads,ldlat=30/P:     7f99c3069960 f (/lib/libc.so.6) {:>16x} {} {:>16}\n"
)
FRAMES = "\t          116960 inflate (/usr/bin/gzip)\n\t             100 main (/usr/bin/gzip)\n"
WORDS = "|OP LOAD|LVL L1 hit|SNP None|TLB L1 hit|LCK No|BLK  N/A"


def recorded(text: str) -> Recorded:
    return Recorded("", json.dumps({"bytes": len(text.encode())}) + "\n" + text, float("nan"), Placement())


def data_src(op=2, lvl=1, snoop=1, lock=1, tlb=1, num=0, remote=0, snoopx=0) -> int:
    """As perf_event_open(2) has it."""
    return op | lvl << 5 | snoop << 19 | lock << 24 | tlb << 26 | num << 33 | remote << 37 | snoopx << 38


def access(source: int, weight: int = 50, physical: int = 0x1040) -> str:
    return HEAD.format(source, WORDS, weight) + FRAMES + f"{physical:>16x}\n"


def names(*texts: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in PerfMem.numbers(recorded("".join(texts))):
        found[one.name] = found.get(one.name, 0) + (one.value or 0)
    return found


@pytest.mark.parametrize(
    ("source", "level"),
    [
        ({"num": 1}, "l1"), ({"num": 0xC}, "lfb"), ({"num": 2}, "l2"), ({"num": 3}, "l3"), ({"num": 0xD}, "memory"),
        ({"num": 0xD, "remote": 1}, "remote_memory"), ({"num": 3, "remote": 1}, "remote_cache"), ({"num": 9}, "cxl"),
        # Where the number says nothing, the older bits do.
        ({"num": 0xF, "lvl": 0x42}, "l3"), ({"lvl": 0x0A}, "l1"), ({"lvl": 0x102}, "remote_memory"), ({"lvl": 0x402}, "remote_cache"),
        ({"lvl": 0x44}, "unknown"), ({}, "unknown"),
    ],
)  # fmt: skip
def test_from_where_a_load_got_its_data(source, level):
    found = names(access(data_src(**source)))
    assert found["mem_loads"] == found[f"mem_loads_{level}"] == 1


def test_a_store_to_a_line_that_another_core_then_had_to_take():
    hitm = access(data_src(num=3, lvl=0x42, snoop=0x10), physical=0x1050)
    found = names(hitm, access(data_src(op=4), physical=0x1044), access(data_src(op=4), physical=0x1080))
    assert (found["mem_loads_hitm"], found["mem_stores"], found["mem_stores_contended"], found["mem_contended_lines"]) == (1, 2, 1, 1)
    # Given by a peer is the same; where no physical address is known, no line is.
    found = names(access(data_src(num=3, snoopx=2), physical=0))
    assert (found["mem_loads_hitm"], found["mem_contended_lines"]) == (1, 0)


def test_latency_walks_and_what_is_no_access():
    loads = [access(data_src(num=1, tlb=0x2A), weight) for weight in (10, 20, 90)]
    found = names(*loads, access(data_src(num=1), 0), access(data_src(op=1)))
    assert (found["mem_loads"], found["mem_dtlb_walks"]) == (4, 3)
    assert (found["mem_load_latency_mean"], found["mem_load_latency_p50"], found["mem_load_latency_p99"]) == (40, 20, 90)


def test_functions_and_stacks_have_the_same_sums():
    one = recorded(access(data_src(num=3)) + access(data_src(op=4)))
    counts = {(count.name, count.function): count.value for count in PerfMem.functions(one)}
    assert counts == {("mem_loads", "inflate"): 1, ("mem_loads_l3", "inflate"): 1, ("mem_stores", "inflate"): 1}
    assert {count.stack for count in PerfMem.stacks(one)} == {"gzip;main (gzip);inflate (gzip)"}
    assert PerfMem.source_of(one) == "hardware"


def test_the_whole_text():
    one = Recorded("", CAPTURED, float("nan"), Placement())
    told = {count.name: 0.0 for count in PerfMem.stacks(one)}
    for count in PerfMem.stacks(one):
        told[count.name] += count.value
    assert told["mem_loads"] == CAPTURED.count("|OP LOAD|")
    assert told["mem_stores"] == CAPTURED.count("|OP STORE|")
    assert told["mem_loads_l3"] == CAPTURED.count("|LVL L3 hit|")
    assert told["mem_loads_remote_cache"] == CAPTURED.count("Remote Cache")
    assert told["mem_loads_hitm"] == CAPTURED.count("|SNP HitM|")
    assert told["mem_dtlb_walks"] == CAPTURED.count("Walker hit")
    # The locked ones write where a load then took the line from.
    assert told["mem_stores_contended"] == CAPTURED.count("|LCK Yes|") > 0


def test_here_it_says_why_not(here):
    why = PerfMem(here).unavailable()
    if why is None:
        pytest.skip("this machine samples loads and stores")
    assert "perf c2c record does not work here" in why
    assert "PEBS" in why


def test_how_perf_is_asked(local, tmp_path):
    (tmp_path / "perf").write_text('#!/bin/sh\necho "$@" >> ' + f"{tmp_path}/asked\ncase $1 in script) printf 'x\\n';; esac\n")
    (tmp_path / "perf").chmod(0o755)
    collector = PerfMem(local(str(tmp_path)), least_latency=100, stack_bytes=0)
    assert collector.unavailable() is None
    collector.setup()
    collector.measure(0.01)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == "c2c record --ldlat 100 -- -q -N -a -o /dev/null -- true"
    assert asked[-2].startswith("c2c record --ldlat 100 -- -q -N -a -F 499 --call-graph fp -m ")
    assert "-F comm,pid,tid,cpu,time,misc,period,event,addr,data_src,weight,phys_addr,ip,sym,dso" in asked[-1]


@pytest.mark.parametrize("latency", [-1, 70_000, "30", True])
def test_latencies_that_will_not_do(latency):
    with pytest.raises(BadInput, match="least_latency"):
        PerfMem.check_options({"least_latency": latency})


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from([HEAD.format(5, WORDS, 3), access(0x229100142), FRAMES, "  1000\n", "\n", "|OP ", "ffff |OP x| 7\n", "  zz\n"])
        | st.text(max_size=20),
        max_size=12,
    )
)
def test_any_text(pieces):
    try:
        found = list(PerfMem.numbers(recorded("".join(pieces) + "\n")))
    except ValueError:
        return
    assert found


def test_no_access_and_a_text_that_was_cut():
    assert [(one.name, one.value) for one in PerfMem.numbers(recorded(""))] == [("mem_loads", None)]
    cut = Recorded("", '{"bytes": 99999}\n' + access(data_src()), float("nan"), Placement())
    assert "99999 bytes" in next(iter(PerfMem.numbers(cut))).note
    assert list(PerfMem.stacks(cut)) == []


def test_fields_are_those_of_perf_record_and_the_addresses():
    assert all("addr,data_src,weight,phys_addr" in fields for fields in perf_mem.FIELDS)
