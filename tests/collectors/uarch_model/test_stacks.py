# SPDX-License-Identifier: GPL-2.0-or-later
"""From the plug-in's return addresses to folded stacks."""

import contextlib
import copy
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.collectors.uarch_model.test_functions import PLACEMENT, WINDOW
from tests.collectors.uarch_model.test_symbols import MAPS, Host
from vsprof.collectors.base import Recorded
from vsprof.collectors.uarch_model import UarchModel, stacks, symbols
from vsprof.collectors.uarch_model.processes import Processes
from vsprof.collectors.uarch_model.spots import Spots

SWITCH_TO, OPEN, RECEIVE = 0xFFFFFFFF81001010, 0xFFFFFFFFC0310010, 0xFFFFFFFF81A00010
PROGRAM, VDSO = 0x7F0000001500, 0x7FFD00000010
ONE, MISSED = [1, 2, 0, 0, 0, 0, 0, 3], [0, 3, 0, 0, 0, 0, 0, 0]


def core(nodes, *spots) -> Spots:
    """``nodes``: parent and return address, from number 1 on; ``spots``: address, thread, mode, counts, number of the stack."""
    hot = {"dropped": 0, "stacks_lost": 0, "stacks": [[parent, f"{back:x}"] for parent, back in nodes]}
    return Spots.of({**hot, "spots": [[f"{address:x}", *more] for address, *more in spots]})


def named(*parts) -> list[tuple[list[str], dict]]:
    found = stacks.named(symbols.Symbols(Host()), [core(*parts)], Processes(MAPS))
    return [([found["frames"][place] for place in one["frames"]], one) for one in found["stacks"]]


def test_callers_come_first_and_the_kernel_is_in_brackets():
    [(frames, one)] = named([(0, VDSO), (1, SWITCH_TO), (2, OPEN)], (RECEIVE, 652, 0, *ONE, 3))
    assert frames == ["(unknown) ([vdso])", "__switch_to ([kernel])", "vhost_net_open ([vhost_net])", "ip_rcv_core ([kernel])"]
    assert (one["thread"], one["mode"], one["samples"], one["l1d_misses"], one["branch_misses"]) == (652, "host_kernel", 1, 2, 3)


def test_a_call_that_ends_a_function_is_that_functions():
    """Its return address is already the next function's begin."""
    [(frames, _)] = named([(0, 0xFFFFFFFF81A00000)], (RECEIVE, 652, 0, *ONE, 1))
    assert frames == ["__switch_to ([kernel])", "ip_rcv_core ([kernel])"]


def test_a_guests_frames_are_the_guests():
    [(frames, one)] = named([(0, PROGRAM), (1, SWITCH_TO), (2, OPEN)], (RECEIVE, 668, 2, *ONE, 3))
    assert frames == [
        "(unknown) (guest programs)", "__switch_to (guest kernel)", "(unknown) (guest kernel modules)", "ip_rcv_core (guest kernel)"
    ]  # fmt: skip
    assert one["mode"] == "guest_kernel"


def test_places_of_one_function_are_one_stack():
    found = named(
        [(0, SWITCH_TO), (0, SWITCH_TO + 2)], (RECEIVE, 652, 0, *ONE, 1), (RECEIVE + 1, 652, 0, *ONE, 2), (RECEIVE, 652, 0, *ONE, 0)
    )
    assert [(frames, one["samples"]) for frames, one in found] == [
        (["__switch_to ([kernel])", "ip_rcv_core ([kernel])"], 2), (["ip_rcv_core ([kernel])"], 1)
    ]  # fmt: skip


def test_rare_stacks_are_one_sum_a_thread_and_nothing_is_lost(monkeypatch):
    monkeypatch.setattr(stacks, "MOST_STACKS", 1)
    spots = [
        (RECEIVE, 1, 0, 9, *[0] * 7, 0),
        (SWITCH_TO, 1, 0, 2, 5, *[0] * 6, 0),
        (OPEN, 1, 0, 1, *[0] * 7, 0),
        (OPEN, 2, 0, 3, *[0] * 7, 0),
    ]
    found = [(one["thread"], frames, one["samples"]) for frames, one in named([], *spots)]
    assert found == [
        (1, ["ip_rcv_core ([kernel])"], 9), (1, ["__switch_to ([kernel])"], 2), (1, [stacks.RARER], 1), (2, [stacks.RARER], 3)
    ]  # fmt: skip


def recorded(*spots: dict, frames=("main (x)", "f ([kernel])")) -> Recorded:
    data = {**copy.deepcopy(WINDOW), "stacks": {"frames": list(frames), "stacks": list(spots)}}
    return Recorded("", json.dumps(data), math.nan, PLACEMENT)


def test_folded_stacks_have_the_threads_name_and_role():
    one = {"core": 1, "thread": 652, "mode": "host_user", "frames": [0, 1], "samples": 3, "llc_misses": 7}
    found = {count.name: count for count in UarchModel.stacks(recorded(one, {**one, "samples": 1}))}
    assert found["instructions"].value == 4 * 20_000
    assert found["llc_misses"].value == 14
    assert (found["llc_misses"].stack, found["llc_misses"].role) == ("pmd-c01/id:7;main (x);f ([kernel])", "switch")
    assert (found["llc_misses"].cpu, found["llc_misses"].mode, found["llc_misses"].unit) == (1, "user", "events")
    assert set(found) == {"instructions", "llc_misses"}


def test_a_window_of_an_earlier_vsprof_has_none():
    text = Path(__file__).parents[1].joinpath("captured", "uarch_model.end").read_text()
    assert list(UarchModel.stacks(Recorded("", text, math.nan, PLACEMENT))) == []


@pytest.mark.parametrize("wrong", [{"frames": [9]}, {"core": 77}, {"mode": "x"}, {"samples": "many"}, {"frames": None}])
def test_what_the_plug_in_does_not_write_is_refused(wrong):
    one = {"core": 1, "thread": 652, "mode": "host_user", "frames": [0], "samples": 3}
    with pytest.raises(ValueError):  # noqa: PT011
        list(UarchModel.stacks(recorded({**one, **wrong})))


@given(st.recursive(st.none() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)))
def test_any_document_is_read_or_refused(document):
    data = {**WINDOW, "stacks": document}
    with contextlib.suppress(ValueError):
        list(UarchModel.stacks(Recorded("", json.dumps(data), math.nan, PLACEMENT)))
