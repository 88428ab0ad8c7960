# SPDX-License-Identifier: GPL-2.0-or-later
"""From what the plug-in wrote to a flat profile, on the window of test_numbers.py (of each core only the hottest functions).

The expected values were taken out of the file by hand.
"""

import copy
import json
import math
from pathlib import Path

import pytest

from vsprof.collectors.base import Recorded
from vsprof.collectors.uarch_model import UarchModel
from vsprof.terms.placement import Placement, Thread

CAPTURED = Path(__file__).parents[1] / "captured" / "uarch_model.end"
WINDOW = json.loads(CAPTURED.read_text())
PLACEMENT = Placement(
    [
        Thread("pmd-c01/id:7", 652, "switch", (1,)),
        Thread("guest1:CPU 0/KVM", 668, "guest", (2,)),
        Thread("guest2:CPU 0/KVM", 684, "guest", (3,)),
    ],
    {0: "host-other", 1: "switch", 2: "guest", 3: "guest"},
)
NAMES = {"instructions", "l1d_misses", "l1i_misses", "l2_misses", "llc_misses", "dtlb_walks", "itlb_walks", "branch_misses"}


def of(data: object = None):
    text = data if isinstance(data, str) else json.dumps(WINDOW if data is None else data)
    return list(UarchModel.functions(Recorded("", text, math.nan, PLACEMENT)))


def changed(change) -> dict:
    data = copy.deepcopy(WINDOW)
    change(data)
    return data


def counts(found, **where) -> dict[str, float]:
    return {one.name: one.value for one in found if all(getattr(one, key) == value for key, value in where.items())}


@pytest.fixture(scope="module")
def found():
    return of()


def test_samples_stand_for_as_many_instructions_as_lie_between_them(found):
    assert counts(found, cpu=0, role="host-other", mode="kernel", object="kernel", function="do_sys_poll")["instructions"] == 112 * 20_000


def test_misses_are_what_was_counted(found):
    fdget = counts(found, cpu=0, mode="kernel", object="kernel", function="fdget")
    assert fdget == {
        "instructions": 2_260_000,
        "l1d_misses": 49555,
        "l1i_misses": 2062,
        "l2_misses": 1398,
        "dtlb_walks": 21,
        "branch_misses": 13,
    }


def test_every_count_has_the_role_of_its_thread_and_the_mode_of_the_host_or_guest(found):
    assert {(one.cpu, one.role, one.mode) for one in found} >= {(1, "switch", "user"), (2, "guest", "guest"), (0, "host-other", "kernel")}
    assert {one.name for one in found} <= NAMES
    assert {one.unit for one in found} == {"events"}
    assert all(one.value > 0 for one in found)


def test_no_count_is_there_twice(found):
    keys = [(one.name, one.role, one.cpu, one.mode, one.object, one.function) for one in found]
    assert len(set(keys)) == len(keys)


def test_threads_of_one_role_on_one_processor_are_summed():
    def second(data):
        first = data["functions"][0]
        data["functions"].append({**first, "thread": 659})

    found = of(changed(second))
    assert counts(found, cpu=0, role="host-other", mode="kernel", function="fdget")["l1d_misses"] == 2 * 49555


def test_the_idle_tasks_functions_are_interrupts():
    found = of(changed(lambda data: data["functions"][0].update(thread=0)))
    assert counts(found, role="softirq", cpu=0, function="fdget")["l1d_misses"] == 49555


def test_a_thread_without_a_name_is_the_hosts_own():
    found = of(changed(lambda data: data["functions"][0].update(thread=4242)))
    assert counts(found, role="host-other", cpu=0, function="fdget")["l1d_misses"] == 49555


def test_a_window_that_is_not_to_be_trusted_has_none():
    def wrong(data):
        for vcpu in data["status"]["vcpus"]:
            vcpu.update(translations_checked=1000, translations_wrong=500)

    assert of(changed(wrong)) == []


@pytest.mark.parametrize("text", ["", "7", "[]", "null", '{"window": {}}', CAPTURED.read_text()[:5000], "[" * 100_000])
def test_garbage_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011
        of(text)


@pytest.mark.parametrize("other", [None, "x", [], {}, -1, 10**400], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("part", ["core", "thread", "mode", "object", "function", "samples", "l1d_misses"])
def test_whatever_stands_in_the_place_of_a_part_there_are_counts_or_a_value_error(part, other):
    try:
        found = of(changed(lambda data: data["functions"][0].update({part: other})))
    except ValueError:
        return
    assert all(isinstance(one.value, float) and isinstance(one.function, str) and isinstance(one.cpu, int) for one in found)
