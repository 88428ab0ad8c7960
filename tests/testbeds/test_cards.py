# SPDX-License-Identifier: GPL-2.0-or-later
"""The wires that an inventory names for a server. That cards are taken and given back is seen in the lab, and by `make test-host`."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.terms.errors import BadInput, RunFailed
from vsprof.testbeds import cards
from vsprof.testbeds.inventory import Server
from vsprof.testbeds.remote import Remote
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


def remote(wires: str, status: int = 0, out: str = "", err: str = "") -> Remote:
    """A server whose every command ends so: what is said of a failure needs no real one."""
    one = Remote.__new__(Remote)
    one.server, one._namespace, one._enter = server(wires), "7", []
    one._named_wires = cards.of(one.server)
    one._channel = SimpleNamespace(run=lambda command, *, timeout, check: SimpleNamespace(status=status, stdout=out, stderr=err))
    return one


def test_why_a_servers_cards_can_not_be_a_wire_is_one_error_each():
    assert "no wire between two network cards of big is known: name their PCI addresses" in remote("").wire_lacking()
    assert remote(FIRST).wire_lacking() is None
    used = remote(FIRST, 1, "uses 0000:01:00.0 as eno1, with an IP address\n").wire_lacking()
    assert used == "big uses 0000:01:00.0 as eno1, with an IP address; name cards that nothing else needs"
    with pytest.raises(RunFailed, match="vsprof_wires of big names 1 wire, and this topology needs 2"):
        remote(FIRST).wires(2)
    with pytest.raises(RunFailed, match=r"0000:01:00\.0.*no such device"):
        remote(FIRST, 1, err="no such device").wires(1)
    with pytest.raises(RunFailed, match="eno1 can't be given to a run: Operation not permitted"):
        remote(FIRST, 2, err="Operation not permitted").adopt_interface("eno1")
