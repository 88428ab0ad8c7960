# SPDX-License-Identifier: GPL-2.0-or-later
"""The wires that an inventory names for a server. That cards are taken and given back is seen in the lab, and by `make test-host`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.terms.errors import BadInput
from vsprof.testbeds import cards
from vsprof.testbeds.inventory import Server
from vsprof.testbeds.wire import Wire

FIRST, SECOND = "0000:01:00.0,0000:01:00.1", "0000:5E:00.0,0000:5e:02.7"


def server(wires: object = None) -> Server:
    return Server("big", {} if wires is None else {cards.VARIABLE: wires})


def test_wires_are_named_by_the_pci_addresses_of_their_ends():
    assert cards.of(server()) == []
    assert cards.of(server(FIRST)) == [Wire("0000:01:00.0", "0000:01:00.1")]
    assert cards.of(server(f"{FIRST}  {SECOND}"))[1] == Wire("0000:5e:00.0", "0000:5e:02.7")


@pytest.mark.parametrize(
    "word",
    ["0000:01:00.0", "01:00.0,01:00.1", "eth1,eth2", "0000:01:00.0,0000:01:00.0", "0000:01:00.8,0000:01:00.1", f"{FIRST};", "[1]", "7"],
)
def test_what_is_no_wire_is_one_error_with_what_was_seen(word):
    with pytest.raises(BadInput) as refused:
        cards.of(server(word))
    assert repr(word) in str(refused.value)
    assert "vsprof_wires of big" in str(refused.value)
    assert "such as 0000:01:00.0,0000:01:00.1" in str(refused.value)


def test_a_card_is_at_the_end_of_one_wire_alone():
    with pytest.raises(BadInput, match="cards that no other wire has"):
        cards.of(server(f"{FIRST} 0000:02:00.0,0000:01:00.1"))


@given(st.text() | st.integers() | st.lists(st.text()))
def test_anything_else_is_read_or_refused(value):
    try:
        found = cards.of(server(value))
    except BadInput:
        return
    assert all(isinstance(one, Wire) for one in found)
