# SPDX-License-Identifier: GPL-2.0-or-later
"""The pool of hugepages of this host: raised to what is needed, and never lowered by asking."""

import pytest

from vsprof.testbeds import native
from vsprof.testbeds.native import Native


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """A kernel that gives as many as it is asked for, of which ``used`` are in use."""
    path = tmp_path / "nr_hugepages"
    monkeypatch.setattr(native, "HUGEPAGES", path)

    def settle(used: int, there: int | None = None) -> int:
        there = int(path.read_text()) if there is None else there
        path.write_text(f"{there}\n")
        path.with_name("free_hugepages").write_text(f"{there - used}\n")
        return there

    return settle


@pytest.mark.parametrize(("there", "used"), [(0, 0), (100, 30), (2000, 0), (2000, 1500)])
def test_asking_again_takes_none_away(pool, there, used):
    pool(used, there)
    host = Native()
    for endpoints in (2, 2, 4, 2, 8):
        needed = native.needed_hugepages(endpoints, dpdk=True)
        before = pool(used)
        host.room_lacking(endpoints)
        assert pool(used) == max(before, needed + used)
        assert host.room_lacking(endpoints) is None
        assert host.hugepages_lacking() is None


def test_a_switch_without_dpdk_leaves_its_share(pool):
    assert native.needed_hugepages(4, dpdk=False) == native.needed_hugepages(4, dpdk=True) - 512
