# SPDX-License-Identifier: GPL-2.0-or-later
"""What bench-time makes of its windows; the windows themselves need the lab, which tests/lab has."""

import pytest

from vsprof.bench import modelled_time
from vsprof.bench.modelled_flood import Counted
from vsprof.bench.modelled_time import QUANTA_US, Seen
from vsprof.terms.errors import BadInput


def windows(*rates: float) -> list[Seen]:
    return [Seen(rate, 100.0, 0.01, 60.0) for rate in rates]


def test_each_quantum_is_set_beside_the_next_smaller_one_of_its_turn():
    of_quantum = {quantum: windows(1000.0, 2000.0) for quantum in QUANTA_US}
    of_quantum[5] = windows(1100.0, 2100.0)
    found = modelled_time._by_quantum("ovs-dpdk", of_quantum)
    assert found["ovs-dpdk_rate_difference_5us"][0].median == pytest.approx(0.075)
    assert found["ovs-dpdk_rate_difference_10us"][0].median < 0
    assert found["ovs-dpdk_misses_difference_5us"][0].median == 0
    assert "ovs-dpdk_rate_difference_0.5us" not in found
    assert found["ovs-dpdk_wall_per_modelled_second_5us"][0].median == 60
    assert len(found) == 3 * (len(QUANTA_US) - 1) + len(QUANTA_US)


def test_what_all_processors_counted_is_summed():
    cores = [{"modes": {"host_user": {"l1d_misses": 3}, "guest_user": {}}}, {"modes": {"host_kernel": {"l1d_misses": 4}}}]
    counted = Counted(1000.0, 0.1, cores, 60.0)
    assert modelled_time._sum(counted, "l1d_misses") == 7


def test_another_switch_is_refused_before_anything_starts():
    with pytest.raises(BadInput, match="kernel-ovs, ovs-dpdk"):
        modelled_time.measure("bridge", [1], 1, "zen5", lambda text: None)
