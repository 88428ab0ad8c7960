# SPDX-License-Identifier: GPL-2.0-or-later
"""The trace's file, byte by byte, and as Perfetto's own trace processor reads it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

from tests.analysis import trace_processor
from vsprof.analysis.perfetto import Slice, Trace, content, fixed, number, varint


@pytest.fixture(scope="session")
def processor_program():
    return trace_processor.program()


def small() -> Trace:
    trace = Trace()
    top = trace.track("a switch")
    cpu = trace.track("CPU 1", top)
    trace.slices(cpu, [
        Slice(100, 900, "outer", "task", {"thread": 7, "of": "vhost"}, ends=(1,)),
        Slice(200, 1000, "is cut where the outer one ends", "guest"),
        Slice(50, 50, "wakes it", "wake", starts=(1,)),
        Slice(900, 950, "next", "task", {"frames": -3}),
    ])  # fmt: skip
    return trace


def read(data: bytes):
    found = perfetto_trace_pb2.Trace()
    found.ParseFromString(data)
    assert found.IsInitialized()
    return found


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (varint(0), b"\0"),
        (varint(300), b"\xac\x02"),
        (number(1, 150), b"\x08\x96\x01"),
        (number(4, -1), b"\x20" + b"\xff" * 9 + b"\x01"),
        (content(2, "testing"), b"\x12\x07testing"),
        (fixed(47, 1), b"\xf9\x02\x01" + bytes(7)),
    ],
)
def test_fields_are_those_of_protobufs_own_examples(made, expected):
    assert made == expected


def test_perfettos_own_descriptors_know_every_field():
    found = read(small().data)
    known = read(small().data)
    known.DiscardUnknownFields()
    assert known.ByteSize() == found.ByteSize() == len(small().data)
    top, cpu, *events = found.packet
    assert (top.track_descriptor.name, cpu.track_descriptor.parent_uuid) == ("a switch", top.track_descriptor.uuid)
    assert top.track_descriptor.child_ordering == top.track_descriptor.EXPLICIT
    kinds = perfetto_trace_pb2.TrackEvent
    assert [(one.timestamp, one.track_event.type, one.track_event.name) for one in events] == [
        (50, kinds.TYPE_INSTANT, "wakes it"),
        (100, kinds.TYPE_SLICE_BEGIN, "outer"),
        (200, kinds.TYPE_SLICE_BEGIN, "is cut where the outer one ends"),
        (900, kinds.TYPE_SLICE_END, ""),
        (900, kinds.TYPE_SLICE_END, ""),
        (900, kinds.TYPE_SLICE_BEGIN, "next"),
        (950, kinds.TYPE_SLICE_END, ""),
    ]
    assert list(events[0].track_event.flow_ids) == list(events[1].track_event.terminating_flow_ids) == [1]
    details = {one.name: one.int_value or one.string_value for one in events[1].track_event.debug_annotations}
    assert details == {"thread": 7, "of": "vhost"}
    assert events[5].track_event.debug_annotations[0].int_value == -3


def test_perfettos_trace_processor_reads_it(processor_program):
    processor = trace_processor.TraceProcessor(processor_program)
    processor.read(small().data)
    assert processor.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0") == []
    on_tracks = "from slice join track on track.id = track_id order by ts, dur"
    assert processor.query(f"select ts, dur, slice.name, category, track.name as track {on_tracks}") == [
        (50, 0, "wakes it", "wake", "CPU 1"),
        (100, 800, "outer", "task", "CPU 1"),
        (200, 700, "is cut where the outer one ends", "guest", "CPU 1"),
        (900, 50, "next", "task", "CPU 1"),
    ]
    assert processor.query("select child.name, parent.name as below from track child join track parent on child.parent_id = parent.id") == [
        ("CPU 1", "a switch")
    ]
    begin, end = "join slice out on slice_out = out.id", "join slice into_ on slice_in = into_.id"
    assert processor.query(f"select out.name, into_.name as woken from flow {begin} {end}") == [("wakes it", "outer")]
    assert processor.query("select key, display_value from args where key like 'debug.%' order by key") == [
        ("debug.frames", "-3"), ("debug.of", "vhost"), ("debug.thread", "7"),
    ]  # fmt: skip


TIMES = st.integers(0, 2**40)
SLICES = st.builds(
    lambda begin, lasts, name, value: Slice(begin, begin + lasts, name, "task", {"value": value}),
    TIMES,
    st.integers(0, 2**20),
    st.text(max_size=5).filter(lambda text: text.isprintable()),
    st.integers(-(2**63), 2**63 - 1),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(SLICES, max_size=12))
def test_whatever_slices_there_are_each_that_begins_ends_and_time_goes_on(slices):
    trace = Trace()
    trace.slices(trace.track("x"), slices)
    _, *events = read(trace.data).packet
    assert [one.timestamp for one in events] == sorted(one.timestamp for one in events)
    depth = 0
    for one in events:
        depth += {1: 1, 2: -1}.get(one.track_event.type, 0)
        assert depth >= 0
    assert depth == 0
    kept = sorted(one.track_event.debug_annotations[0].int_value for one in events if one.track_event.type != 2)
    assert kept == sorted(one.details["value"] for one in slices)
