# SPDX-License-Identifier: GPL-2.0-or-later
"""From what the plug-in wrote to numbers, on a real window (captured/: OVS-DPDK, 64 B UDP at an equal rate; of each core only
the threads that ran most).

The expected values were taken out of the file by hand.
"""

import copy
import json
import math
import re
from pathlib import Path

import pytest

from vsprof.collectors.base import Load, Recorded
from vsprof.collectors.uarch_model import UarchModel, numbers, profiles, spots, symbols
from vsprof.terms.placement import Placement, Thread

CAPTURED = Path(__file__).parents[1] / "captured" / "uarch_model.end"
WINDOW = json.loads(CAPTURED.read_text())
# As placed in the run that was captured.
PLACEMENT = Placement(
    [
        Thread("ovs-vswitchd-dp", 621, "switch", (0,)),
        Thread("ovs_vhost3", 635, "switch", (0,)),
        Thread("revalidator6", 643, "switch", (0,)),
        Thread("pmd-c01/id:7", 652, "switch", (1,)),
        Thread("guest1:qemu-system-x86", 658, "host-other", (0,)),
        Thread("guest1:CPU 0/KVM", 668, "guest", (2,)),
        Thread("guest2:CPU 0/KVM", 684, "guest", (3,)),
    ],
    {0: "host-other", 1: "switch", 2: "guest", 3: "guest"},
)


def of(data: object = None, *, text: str | None = None):
    whole = json.dumps(WINDOW if data is None else data) if text is None else text
    return list(UarchModel.numbers(Recorded("", whole, math.nan, PLACEMENT)))


def one(found, name, cpu=None, role=None, mode="all", note=""):
    (number,) = [n for n in found if (n.name, n.cpu, n.role, n.mode, n.note) == (name, cpu, role, mode, note)]
    return number


def changed(change) -> dict:
    data = copy.deepcopy(WINDOW)
    change(data)
    return data


@pytest.fixture(scope="module")
def found():
    return of()


def test_the_poll_mode_threads_counts_are_the_switchs(found):
    modes = next(task for task in WINDOW["window"]["cores"][1]["tasks"] if task["id"] == 652)["modes"]
    assert one(found, "instructions", 1, "switch", "user").value == modes["host_user"]["instructions"] > 90_000_000
    assert one(found, "instructions", 1, "switch", "kernel").value == modes["host_kernel"]["instructions"]
    assert one(found, "cycles", 1, "switch", "user").value == modes["host_user"]["cycles"]


def test_a_guests_kernel_and_its_programs_are_told_apart_by_the_note(found):
    assert one(found, "instructions", 2, "guest", "guest", "the guest's kernel").value > 7_000_000
    assert one(found, "instructions", 2, "guest", "kernel").value > 6_000_000
    assert not [n for n in found if n.note == "the guest's programs"]


def test_what_runs_on_the_idle_tasks_stack_are_interrupts(found):
    swapper = next(task for task in WINDOW["window"]["cores"][3]["tasks"] if task["id"] == 0)
    assert one(found, "instructions", 3, "softirq", "kernel").value == swapper["modes"]["host_kernel"]["instructions"]


def test_threads_that_nobody_placed_are_the_hosts_own_and_those_of_one_role_are_summed(found):
    other = [t for t in WINDOW["window"]["cores"][0]["tasks"] if PLACEMENT.role_of_thread(t["id"]) == "host-other" and t["id"]]
    assert len(other) >= 1
    expected = sum(task["modes"]["host_kernel"]["loads"] for task in other)
    assert one(found, "loads", 0, "host-other", "kernel").value == expected


def test_role_of_ksoftirqd_whoever_placed_it():
    assert numbers.role_of({"id": 17, "name": "ksoftirqd/0"}, Placement(), 0) == "softirq"
    assert numbers.role_of({"id": 0, "name": "swapper/1"}, PLACEMENT, 1) == "softirq"


def test_a_thread_that_was_never_seen_to_come_has_the_role_of_its_processor():
    unknown = {"id": -1, "name": ""}
    placed = Placement(PLACEMENT.threads, {2: "guest"})
    assert [numbers.role_of(unknown, placed, cpu) for cpu in (0, 2)] == ["host-other", "guest"]


def test_a_counter_that_is_not_named_is_zero(found):
    core = WINDOW["window"]["cores"][1]["tasks"][0]["modes"]["host_user"]
    assert "vm_entries" not in core
    assert one(found, "vm_entries", 1, "switch", "user").value == 0


def test_every_counter_has_its_number_but_the_stalls_which_are_parts_of_the_cycles(found):
    names = {n.name for n in found if n.cpu is not None}
    counters = {name for name in profiles.counters() if not name.startswith("stall_")}
    assert names == counters | {f"cycles_{part}" for part in numbers.CYCLES} | {"cycles"}
    assert {n.unit for n in found if n.name.startswith(("cycles", "walk_cycles"))} == {"cycles"}
    assert one(found, "l1d_misses", 1, "switch", "user").unit == "events"


def test_the_parts_of_the_cycles_sum_up(found):
    for cpu, role, mode in ((1, "switch", "user"), (0, "host-other", "kernel"), (3, "softirq", "kernel")):
        parts = [one(found, f"cycles_{part}", cpu, role, mode).value for part in numbers.CYCLES]
        # Each part is rounded where it is written, of each thread.
        assert sum(parts) == pytest.approx(one(found, "cycles", cpu, role, mode).value, abs=50)


def test_the_parts_are_those_of_the_plug_in():
    source = (Path(numbers.__file__).parent / "cpi.h").read_text()
    (listed,) = re.findall(r"#define CPI_PARTS\(X\) (.*)", source)
    assert tuple(re.findall(r"X\((\w+)\)", listed)) == numbers.CYCLES
    modes = (Path(numbers.__file__).parent / "counters.c").read_text()
    assert all(f'"{mode}"' in modes for mode in numbers.MODES)


def test_no_number_is_there_twice(found):
    keys = [(n.name, n.cpu, n.role, n.mode, n.note) for n in found]
    assert len(set(keys)) == len(keys)


def test_what_was_carried_inside_the_window(found):
    seconds = WINDOW["window"]["seconds"]
    assert one(found, "window_seconds").value == seconds
    # Frames of UDP to a guest whose kernel drops them: no TCP, no ICMP.
    assert one(found, "model_packets").value == 2033
    assert one(found, "model_tcp_bytes").value == one(found, "model_icmp_messages").value == 0
    assert (one(found, "model_polls").value, one(found, "model_poll_bursts").value) == (172353, 506)
    assert one(found, "model_packets").enabled_s == seconds


def with_empty_polls(data):
    """Two threads of the switch that poll on one processor."""
    counters = {"instructions": 500, "loads": 80, "cycles_base": 120, "cycles_l2": 30, "cycles": 150}
    tasks = data["window"]["cores"][1]["tasks"]
    tasks[:] = [one for one in tasks if one["id"] == 652]
    tasks[0].update(empty_polls=3, empty=counters)
    tasks.append({**tasks[0], "id": 621, "name": "ovs-vswitchd-dp", "empty_polls": 0, "empty": {"cycles": 0}})


def test_what_empty_polls_took_is_a_part_of_what_their_thread_did():
    found = of(changed(with_empty_polls))
    assert (one(found, "empty_polls", 1, "switch", "user").value, one(found, "empty_polls", 1, "switch", "user").unit) == (3, "events")
    assert one(found, "empty_polls_instructions", 1, "switch", "user").value == 500
    assert one(found, "empty_polls_stores", 1, "switch", "user").value == 0
    assert one(found, "empty_polls_cycles_l2", 1, "switch", "user").unit == "cycles"
    assert one(found, "empty_polls_cycles", 1, "switch", "user").value < one(found, "cycles", 1, "switch", "user").value
    mode = [n.name for n in found if (n.cpu, n.role, n.mode) == (1, "switch", "user") and not n.name.startswith("empty_polls")]
    assert [n.name for n in found if n.name.startswith("empty_polls_")] == [f"empty_polls_{name}" for name in mode]


def test_a_thread_that_never_polled_has_no_empty_polls(found):
    assert not any(n.name.startswith("empty_polls") for n in found)


def test_a_poll_mode_thread_that_always_found_something_has_none_and_says_so():
    found = of(changed(lambda data: data["window"]["cores"][1]["tasks"][0].update(empty_polls=0, empty={"cycles": 0})))
    assert one(found, "empty_polls", 1, "switch", "user").value == one(found, "empty_polls_cycles", 1, "switch", "user").value == 0


def test_frames_are_what_was_returned_whatever_process_gave_them():
    hooks = {"bursts/host_user/5": [7, 0], "frames/host_user/6": [7, 180], "frames/host_user/9": [2, 20]}
    found = of(changed(lambda data: [core.update(hooks=hooks if index == 1 else {}) for index, core in enumerate(data["window"]["cores"])]))
    assert (one(found, "model_frames").value, one(found, "model_frames").unit) == (200, "packets")
    assert one(found, "model_poll_bursts").value == 7


def test_a_segments_header_is_no_payload():
    hooks = {"segments/guest_kernel": [10, 10 * 32 + 14480], "segments/host_kernel": [2, 64], "messages/guest_kernel": [3, 252]}
    found = of(changed(lambda data: data["window"]["cores"][2].update(hooks=hooks)))
    assert one(found, "model_tcp_bytes").value == 14480
    assert one(found, "model_icmp_messages").value == 3


def test_acknowledgements_alone_are_no_payload():
    found = of(changed(lambda data: data["window"]["cores"][2].update(hooks={"segments/guest_kernel": [10, 200]})))
    assert one(found, "model_tcp_bytes").value == 0


def wrong(share: float) -> dict:
    def change(data):
        for vcpu in data["status"]["vcpus"]:
            vcpu.update(translations_checked=1000, translations_wrong=int(1000 * share))

    return changed(change)


def test_a_model_whose_translations_are_not_qemus_is_not_believed():
    (number,) = of(wrong(0.02))
    assert (number.name, number.value) == ("cycles", None)
    assert "80 of 4000" in number.note


def test_a_translation_that_raced_with_its_change_is_no_reason_for_distrust():
    assert len(of(wrong(0.01))) == len(of())


def test_what_was_not_checked_is_not_trusted():
    assert "no address" in numbers.distrust({"vcpus": [{"translations_checked": 0, "translations_wrong": 0}]})


GARBAGE = {
    "nothing": "",
    "no JSON": "error: no window was closed",
    "half": CAPTURED.read_text()[:5000],
    "a number": "7",
    "a list": "[]",
    "a word": '"window"',
    "null": "null",
    "no window": '{"status": {"vcpus": []}}',
    "an empty window": '{"window": {}, "status": {"vcpus": []}}',
    "no status": '{"window": {"seconds": 1, "cores": []}}',
    "a status of words": '{"window": {"seconds": 1, "cores": []}, "status": []}',
    "no seconds": '{"window": {"seconds": null, "cores": []}, "status": {"vcpus": []}}',
    "seconds of words": '{"window": {"seconds": "long", "cores": []}, "status": {"vcpus": []}}',
    "seconds beyond numbers": f'{{"window": {{"seconds": 1{"0" * 400}, "cores": []}}, "status": {{"vcpus": []}}}}',
    "cores of words": '{"window": {"seconds": 1, "cores": ["x"]}, "status": {"vcpus": [{"translations_checked": 9, "translations_wrong": 0}]}}',
    "depth": "[" * 100_000,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_a_value_error(name):
    with pytest.raises(ValueError):  # noqa: PT011
        of(text=GARBAGE[name])


def _places(value, path=()):
    """The way to each part of a document; of lists the first is enough."""
    yield path
    children = value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else []
    for key, child in children:
        yield from _places(child, (*path, key))


NEEDED = [path for path in _places({key: WINDOW[key] for key in ("window", "status")}) if path]


@pytest.mark.parametrize("other", [None, "x", [], {}, 10**400], ids=lambda value: type(value).__name__)
def test_whatever_stands_in_the_place_of_a_part_there_are_numbers_or_a_value_error(other):
    for path in NEEDED:
        data = copy.deepcopy(WINDOW)
        place = data
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = other
        try:
            of(data)
        except ValueError:
            continue


def _listed(header: str, macro: str) -> tuple[str, ...]:
    text = (Path(numbers.__file__).with_name(header)).read_text()
    return tuple(re.findall(r"X\((\w+)\)", text.partition(f"#define {macro}(X)")[2].partition("\n\n")[0]))


def test_what_python_reads_is_what_the_plug_in_writes_in_its_order():
    assert _listed("hot.h", "HOT_KINDS") == spots.KINDS
    assert _listed("cpi.h", "CPI_PARTS") == numbers.CYCLES
    modes = re.search(r"enum mode \{([^}]*), MODE_COUNT \}", Path(numbers.__file__).with_name("counters.h").read_text())
    assert symbols.MODES == tuple(numbers.MODES) == tuple(modes[1].lower().replace(" ", "").split(","))


def test_what_each_cpu_did_in_a_window():
    cores = [
        {"modes": {"host_user": {"cycles": 100, "instructions": 400}, "host_kernel": {"cycles": 400, "instructions": 600}}},
        {"modes": {}},
    ]
    recorded = Recorded("", json.dumps({"window": {"seconds": 0.5, "cores": cores}}), 0.0, Placement())
    assert numbers.loads(recorded, 2000.0) == {0: Load(0.5, 0.5), 1: Load(0.0, None)}
    with pytest.raises(ValueError, match="Expecting value"):
        numbers.loads(Recorded("", "", 0.0, Placement()), 2000.0)
