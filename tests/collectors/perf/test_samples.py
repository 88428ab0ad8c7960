# SPDX-License-Identifier: GPL-2.0-or-later
"""The parser of samples, on what perf 6.1 (Debian 12) and 6.12 (Debian 13) printed of one and the same work: a pipe, and gzip.

Both ran on one machine without a PMU, with callers found by the frame pointer (fp) and out of copied stacks (dwarf).
"""

import json
from pathlib import Path

import pytest

from vsprof.collectors import perf_text
from vsprof.collectors.base import Recorded
from vsprof.collectors.perf_record import PerfRecord, samples
from vsprof.collectors.perf_text import Recording
from vsprof.terms.errors import BadInput
from vsprof.terms.placement import Placement, Thread

CAPTURED = Path(__file__).parents[1] / "captured"
VERSIONS = ("6.1", "6.12")
CALLERS = ("fp", "dwarf")


def recording(text: str, **header: object) -> Recording:
    return Recording({"bytes": len(text.encode()), **header}, text)


def recorded(text: str, placement: Placement | None = None, **header: object) -> Recorded:
    return Recorded("", recording(text, **header).recorded(), float("nan"), placement or Placement())


def captured(version: str, callers: str) -> str:
    return (CAPTURED / "perf" / f"samples-{version}-{callers}.txt").read_text()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("callers", CALLERS)
def test_each_sample_is_read(version, callers):
    text = captured(version, callers)
    found = samples.read(recorded(text).end).samples
    assert len(found) == text.count("cpu-clock:") > 25
    # A sample that interrupted a program has U where perf says what it interrupted.
    assert sum(one.mode == "user" for one in found) == text.count("] U ") > 0
    assert {one.cpu for one in found} <= {0, 1}
    assert {one.event for one in found} == {"cpu-clock"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("callers", CALLERS)
def test_all_samples_are_counted_once_whatever_they_are_sorted_by(version, callers):
    text = captured(version, callers)
    one = recorded(text)
    numbers = list(PerfRecord.numbers(one))
    busy = sum(number.value for number in numbers if number.name == "samples")
    idle = sum(number.value for number in numbers if number.name == "samples_idle")
    assert busy + idle == text.count("cpu-clock:")
    assert sum(count.value for count in PerfRecord.functions(one)) == busy
    assert sum(count.value for count in PerfRecord.stacks(one)) == busy
    assert PerfRecord.source_of(one) == "software"


@pytest.mark.parametrize("version", VERSIONS)
def test_copied_stacks_lead_from_a_stripped_program_to_where_it_began(version):
    folded = {count.stack for count in PerfRecord.stacks(recorded(captured(version, "dwarf"))) if count.stack.startswith("gzip;")}
    whole = [stack for stack in folded if "__libc_start_call_main (libc.so.6);(unknown) (gzip);" in stack]
    assert whole
    assert max(stack.count("(gzip)") for stack in whole) >= 4


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("callers", CALLERS)
def test_both_versions_give_the_same_places_for_a_function_without_a_name(version, callers):
    places = samples.unnamed(recording(captured(version, callers)))
    # One loop of gzip's, of which 6.1 says 4bb8 at once, and 6.12 gzip+0x4bb8 behind an address in memory.
    assert 0x4BB8 in places["/usr/bin/gzip"]
    assert all(place < 100_000 for place in places["/usr/bin/gzip"])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_place_that_was_named_has_its_name(version):
    names = {"/usr/bin/gzip": {"4bb8": "gzip+0x4b00"}}
    counts = {one.function: one.value for one in PerfRecord.functions(recorded(captured(version, "fp"), names=names))}
    assert (
        counts["gzip+0x4b00"]
        == captured(version, "fp").count("4bb8 [unknown]") + captured(version, "fp").count("[unknown] (/usr/bin/gzip+0x4bb8)")
        > 0
    )


def test_the_rate_is_that_at_which_samples_came():
    numbers = list(PerfRecord.numbers(recorded(captured("6.12", "fp"))))
    rates = [number.value for number in numbers if number.name == "sampling_rate"]
    assert all(0 < rate < 510 for rate in rates)  # 499 were asked for; those of other programs are not in the text
    assert next(number.value for number in numbers if number.name == "window_seconds") < 1.3


@pytest.mark.parametrize("version", VERSIONS)
def test_lost_samples_are_counted(version):
    text = (CAPTURED / "perf" / f"samples-lost-{version}.txt").read_text()
    numbers = {number.name: number.value for number in PerfRecord.numbers(recorded(text))}
    told = [int(line.rpartition(" ")[2]) for line in text.splitlines() if "PERF_RECORD_LOST" in line]
    assert len(told) >= 2
    assert numbers["samples_lost"] == sum(told)
    assert numbers["samples"] is not None


HEAD = "CPU 0/KVM     660/668     [002] {}       145.410750123: {}: \n"
KERNEL = "\tffffffffc055d7e0 kvm_set_msr_common ([kernel.kallsyms])\n"
PLACEMENT = Placement([Thread("vCPU", 668, "guest", (2,)), Thread("pmd", 5, "switch", (1,))], {1: "switch", 2: "guest"})


def one(misc: str, frames: str, event: str = "cpu-clock", **header: object) -> samples.Sample:
    (found,) = samples.read(recorded(HEAD.format(misc, event) + frames + "\n", PLACEMENT, **header).end).samples
    return found


def test_what_ran_in_a_guest_has_no_function():
    found = one("G", "")
    assert (found.mode, found.role(PLACEMENT)) == ("guest", "guest")
    assert found.frames[0].folded() == "(unknown) (guest kernel)"
    assert one("g", "").frames[0].object == "guest programs"


def test_a_guest_sample_has_the_threads_name_on_the_host():
    text = HEAD.format("K", "cpu-clock") + KERNEL + "\n" + HEAD.format("G", "cpu-clock").replace("CPU 0/KVM", "[guest/660]") + "\n"
    assert [s.comm for s in samples.read(recorded(text).end).samples] == ["CPU 0/KVM"] * 2
    assert samples.read(recorded(text.partition("\n\n")[2]).end).samples[0].comm == samples.GUEST


def test_a_function_of_a_module_is_the_modules():
    modules = [["0xffffffffc0530000", "1388544", "kvm"], ["0xffffffffc0700000", "4096", "tun"]]
    assert one("K", KERNEL, modules=modules).frames[0].folded() == "kvm_set_msr_common ([kvm])"
    assert one("K", KERNEL.replace("c055d7e0", "c0701000"), modules=modules).frames[0].object == "kernel"  # behind the last
    assert one("K", KERNEL).frames[0].object == "kernel"


@pytest.mark.parametrize("where", ["/proc/kcore", "/proc/kcore+0x7fff81392400", "[kernel.kallsyms]+0xd7e0", "[unknown]"])
def test_the_kernel_by_all_its_names(where):
    found = one("K", KERNEL.replace("[kernel.kallsyms]", where)).frames[0]
    assert (found.object, found.kernel) == ("kernel", True)


@pytest.mark.parametrize("where", ["/lib/modules/6.1.0/kernel/net/openvswitch/openvswitch.ko.xz", "[openvswitch]", "/x/openvswitch.ko"])
def test_a_module_by_all_its_names(where):
    assert one("K", f"\tffffffffc0aa0000 ovs_flow_tbl_lookup ({where})\n").frames[0].object == "openvswitch"


@pytest.mark.parametrize("frame", ["operator() (/usr/bin/a b)", "std::map<int, (lambda)>::find(int) (/usr/lib/x.so.1 (deleted))"])
def test_names_with_brackets_and_blanks(frame):
    found = one("U", f"\t    558229e4ea11 {frame}\n").frames[0]
    assert found.object in ("a b", "x.so.1")
    assert not found.kernel


def test_what_a_program_used_for_something_else_than_a_frame_is_no_caller():
    frames = "\t 1 poll (/lib/libc.so.6)\n\t 2 main (/bin/a)\n\t 7f3390976ef8 [unknown] ([unknown])\n\t 9 never (/bin/a)\n"
    assert [frame.function for frame in one("U", frames).frames] == ["poll", "main"]
    astray = "\tffffffff81000000 read ([kernel.kallsyms])\n\t 1 poll (/lib/libc.so.6)\n\t8d0ddb1cd143f200 [unknown] ([unknown])\n"
    assert [frame.function for frame in one("K", astray).frames] == ["read", "poll"]


def test_the_idle_task_is_idle_but_for_interrupts():
    idle = "swapper       0/0       [001] K        74.440566: cpu-clock: \n\tffffffff81d0fa3f {} ([kernel.kallsyms])\n\n"
    text = idle.format("pv_native_safe_halt") + idle.format("handle_softirqs")
    numbers = list(PerfRecord.numbers(recorded(text)))
    assert [n.value for n in numbers if n.name == "samples_idle"] == [1]
    assert [(n.value, n.role) for n in numbers if n.name == "samples"] == [(1, "softirq")]
    assert [count.stack for count in PerfRecord.stacks(recorded(text))] == ["swapper;handle_softirqs ([kernel])"]


@pytest.mark.parametrize(
    ("event", "source"), [("cycles", "hardware"), ("cycles:GH", "hardware"), ("cpu-clock", "software"), ("cpu-clock:GH", "software")]
)
def test_the_source_is_that_of_the_event(event, source):
    one = recorded(HEAD.format("K", event) + KERNEL + "\n")
    assert PerfRecord.source_of(one) == source


def test_a_text_that_was_cut_gives_no_profile():
    whole = recording(captured("6.1", "fp"))
    half = Recorded("", Recording(whole.header, whole.text[: len(whole.text) // 2]).recorded(), 1.0, Placement())
    (number,) = PerfRecord.numbers(half)
    assert number.value is None
    assert f"of {len(whole.text.encode())} bytes" in number.note
    assert list(PerfRecord.functions(half)) == list(PerfRecord.stacks(half)) == []


def test_a_window_without_samples_says_so():
    (number,) = PerfRecord.numbers(recorded(""))
    assert number.value is None
    assert "no sample" in number.note


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"bytes": "x"}', '{"bytes": 3}\nabc\n', '{"bytes": 9, "modules": 7}\n' + HEAD.format("K", "c") + KERNEL]
)
def test_what_is_no_recording_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        list(PerfRecord.numbers(Recorded("", text, 1.0, Placement())))


def test_a_name_is_the_same_in_each_run():
    given = ["vhost-1234", "kworker/u8:2-events", "ksoftirqd/1", "pmd-c01/id:7", "CPU 0/KVM", "a;b"]
    assert [perf_text.thread_name(name) for name in given] == ["vhost", "kworker", "ksoftirqd", "pmd-c01/id:7", "CPU 0/KVM", "a:b"]


@pytest.mark.parametrize(
    "options",
    [{"frequency": 0}, {"frequency": 20_000}, {"frequency": "fast"}, {"stack_bytes": 7}, {"stack_bytes": -8}, {"stack_bytes": True}],
)
def test_options_that_will_not_do(options):
    with pytest.raises(BadInput, match="need"):
        PerfRecord.check_options(options)


def test_options_that_will():
    PerfRecord.check_options({"frequency": 199, "stack_bytes": 0})
    PerfRecord.check_options({})


def test_json_keeps_what_was_recorded():
    whole = recording("a\n", names={"/x": {"1": "f"}})
    assert Recording.read(whole.recorded()) == whole
    assert json.loads(whole.recorded().partition("\n")[0])["bytes"] == 2


@pytest.fixture
def flood() -> Recorded:
    """The begin of a window of the lab: OVS-DPDK, 64 B UDP at saturation, perf 6.12, 8 KiB of stack."""
    placement = Placement.from_json(json.loads((CAPTURED / "perf" / "placement.json").read_text()))
    return Recorded("", (CAPTURED / "perf_record.end").read_text(), float("nan"), placement)


def test_the_lab_by_role(flood):
    counts = {(n.role, n.cpu, n.mode): n.value for n in PerfRecord.numbers(flood) if n.name == "samples"}
    # By hand, out of the file: `pmd-c01/id:7 … [001] U`, and `[guest/…] … [002] G`.
    assert counts["switch", 1, "user"] == flood.end.count("[001] U  ")
    assert counts["guest", 2, "guest"] == flood.end.count("[002] G ") > 20
    assert "[guest/" not in "".join(count.stack for count in PerfRecord.stacks(flood))


def test_a_poll_mode_threads_stack_leads_into_the_kernel(flood):
    (deepest,) = [c for c in PerfRecord.stacks(flood) if c.role == "switch" and c.stack.endswith("_raw_spin_unlock_irq ([kernel])")]
    frames = deepest.stack.split(";")
    assert frames[0] == "pmd-c01/id:7"
    polled, written = frames.index("rte_vhost_dequeue_burst (librte_vhost.so.25.0)"), frames.index("eventfd_write ([kernel])")
    assert polled < written
    # A stripped program's functions, named by where they begin.
    assert "ovs-vswitchd-dpdk+0xb6b50 (ovs-vswitchd-dpdk)" in frames[:polled]


def test_modules_of_the_lab(flood):
    objects = {count.object for count in PerfRecord.functions(flood) if count.mode == "kernel"}
    assert objects == {"kernel", "kvm"}
