# SPDX-License-Identifier: GPL-2.0-or-later
"""Files for other programs: folded stacks as flamegraph.pl and difffolded.pl read them, and speedscope's JSON."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.test_stacks import COUNTS, with_stacks
from vsprof.analysis import export
from vsprof.analysis.load import load
from vsprof.terms.errors import BadInput

LINE = re.compile(r"(?P<stack>\S.*\S|\S) (?P<count>\d+)")
"""What flamegraph.pl takes for a stack and its count."""


@pytest.fixture(scope="module")
def sampled(sample, tmp_path_factory):
    """SYNTHETIC: stacks of perf_record, which nobody counted packets for."""
    return load(with_stacks(sample, tmp_path_factory.mktemp("sampled") / "r", COUNTS))


def test_folded_stacks_of_one_case(sampled):
    assert export.fold(export.chosen(sampled, "ovs-dpdk")) == "switch;thread;ovs-dpdk_works (x);deep (y) 40\n"
    assert export.fold(export.chosen(sampled, "ovs-dpdk", traffic="tcp_stream")) == "switch;thread;ovs-dpdk_works (x);z (y) 7\n"


def test_one_file_is_of_one_case(sampled):
    with pytest.raises(BadInput, match="kernel-ovs · vhost-net; ovs-dpdk · vhost-user each have one: name one by --switch"):
        export.fold(export.chosen(sampled))


def test_each_line_is_a_stack_and_a_whole_number(modelled):
    for part in export.chosen(modelled, "kernel-ovs"):
        text = export.fold([part])
        lines = [LINE.fullmatch(line) for line in text.splitlines()]
        assert all(lines)
        assert sum(int(line["count"]) for line in lines) == pytest.approx(part.total, abs=len(lines))


def test_a_difference_has_two_columns_per_million_packets(modelled):
    one, other = (export.chosen(modelled, case, "l1d_misses") for case in ("kernel-ovs", "ovs-dpdk"))
    found = export.difference(export.single(one), other)
    assert (found.unit, found.names) == ("packet", ("kernel-ovs · vhost-net", "ovs-dpdk · vhost-user"))
    rows = {stack: (int(a), int(b)) for stack, a, b in (line.rsplit(" ", 2) for line in export.fold(found).splitlines())}
    # 20,000 instructions a packet, 2 % more in the mean of three repetitions, half of them the vhost worker's, 0.01 misses each.
    assert rows["vhost;sample;vhost_first ([sample])"] == (pytest.approx(1e6 * 20_000 * 1.02 * 0.5 * 0.6 * 0.01, rel=1e-3), 0)
    assert rows["switch;sample;switch_first (sample)"][0] == 0


def test_without_packets_the_second_is_scaled_to_the_first(sample, tmp_path, sampled):
    more = [(traffic, load_, stack, 3 * value) for traffic, load_, stack, value in COUNTS]
    other = load(with_stacks(sample, tmp_path / "r", more))
    found = export.difference(export.single(export.chosen(sampled, "ovs-dpdk")), export.chosen(other))
    assert export.fold(found) == "switch;thread;ovs-dpdk_works (x);deep (y) 40 40\n"
    # Two results of the same case are told apart by their names.
    assert found.names == ("ovs-dpdk · vhost-user of r", "ovs-dpdk · vhost-user of r")


def test_a_profile_is_not_set_against_itself(modelled):
    parts = export.chosen(modelled, "ovs-dpdk", "instructions")
    with pytest.raises(BadInput, match="nothing to compare"):
        export.difference(export.single(parts), parts)


def test_speedscopes_file_has_what_its_schema_asks_for(modelled):
    found = json.loads(export.speedscope(export.chosen(modelled)))
    assert found["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = found["shared"]["frames"]
    assert all(set(frame) <= {"name", "file"} and frame["name"] for frame in frames)
    assert len(found["profiles"]) == 2 * 7  # cases, events
    for profile in found["profiles"]:
        assert profile.keys() == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "none", 0)
        assert len(profile["samples"]) == len(profile["weights"]) > 0
        assert profile["endValue"] == pytest.approx(sum(profile["weights"]))
        assert all(0 <= frame < len(frames) for sample in profile["samples"] for frame in sample)
    assert {"name": "guest_first", "file": "sample"} in frames
    assert "kernel-ovs · vhost-net, UDP flood, saturation: instructions" in [profile["name"] for profile in found["profiles"]]


@given(st.dictionaries(st.text(min_size=1), st.floats(0, 1e12), min_size=1))
def test_any_name_stays_on_its_line(stacks):
    text = export._lines({stack: (round(value),) for stack, value in stacks.items()})
    assert all(line.rpartition(" ")[2].isdigit() for line in text.split("\n") if line)
    assert len(text.splitlines()) <= len(stacks)


def test_a_flame_graph_of_a_difference_tells_both_numbers(modelled):
    one, other = (export.chosen(modelled, case, "instructions") for case in ("kernel-ovs", "ovs-dpdk"))
    svg = export.flame(export.difference(export.single(one), other))
    assert "instructions per packet, UDP flood, saturation" in svg
    assert "kernel-ovs · vhost-net: 6,120; ovs-dpdk · vhost-user: 0; change -6,120 per packet" in svg
    assert "<script" in svg


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"event": "samples"}, "the event 'samples': name one of instructions"),
        ({"traffic": "rain"}, "the traffic 'rain': name one of"),
        ({"switch": "vhost-switch"}, "no case of vm2vm: name one of"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(modelled, words, said):
    with pytest.raises(BadInput, match=re.escape(said)):
        export.chosen(modelled, **words)


def test_a_result_without_profiles_says_who_makes_them(two_switches):
    with pytest.raises(BadInput, match="uarch_model and perf_record"):
        export.chosen(two_switches)
