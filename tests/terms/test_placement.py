# SPDX-License-Identifier: GPL-2.0-or-later
"""Who is where, and which CPU is for what."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.terms.errors import BadInput
from vsprof.terms.placement import FAR, NEAR, CpuPlan, Duties, Placement, Thread
from vsprof.terms.schema import ROLES

threads = st.builds(Thread, st.text(), st.integers(1, 1 << 22), st.sampled_from(ROLES), st.lists(st.integers(0, 255)).map(tuple))
placements = st.builds(Placement, st.lists(threads), st.dictionaries(st.integers(0, 255), st.sampled_from(ROLES)))


@given(placements)
def test_a_placement_survives_json(placement):
    assert Placement.from_json(json.loads(json.dumps(placement.to_json()))) == placement


def test_on_four_cpus_everyone_has_one():
    plan = CpuPlan.of(4)
    assert len({plan.housekeeping, plan.switch, *plan.endpoints}) == 4


def test_on_two_cpus_the_switch_still_has_its_own():
    plan = CpuPlan.of(2)
    assert plan.switch not in {plan.housekeeping, *plan.endpoints}


@pytest.mark.parametrize("cpus", [6, 8, 16])
def test_on_two_nodes_of_more_cpus_each_end_has_its_own_on_the_second(cpus):
    plan = CpuPlan.of_two_nodes(cpus)
    node = [cpu // (cpus // 2) for cpu in range(cpus)]
    assert [node[cpu] for cpu in plan.endpoints] == [1, 1]
    assert len({plan.switch, plan.housekeeping, *plan.endpoints}) == 4
    assert all(node[slot.cpu] == slot.node for slot in plan.slots.values())


def test_on_two_nodes_the_switch_can_be_on_the_endpoints_node_or_on_the_other():
    plan = CpuPlan.of_two_nodes(4)
    nodes = [0, 0, 1, 1]
    near = {nodes[cpu] for cpu in plan.endpoints}
    assert len(near) == 1
    for where, on in ((NEAR, near), (FAR, {0, 1} - near)):
        slot = plan.slots[where]
        assert {slot.node, nodes[slot.cpu]} == on
        assert plan.on_slot(where).switch == slot.cpu
        assert slot.cpu not in {plan.housekeeping, *plan.endpoints}
    assert plan == plan.on_slot(NEAR)


@given(st.integers(2, 256))
def test_a_plan_uses_only_cpus_that_exist(cpus):
    plan = CpuPlan.of(cpus)
    assert max(plan.housekeeping, plan.switch, *plan.endpoints) < cpus


@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 20))
def test_with_enough_cpus_each_duty_has_its_own(movers, pairs, more):
    duties = Duties(movers, 2 * pairs)
    plan = CpuPlan.of(duties.cpus + more, duties)
    assert (len(plan.movers), len(plan.endpoints), plan.movers[0]) == (movers, 2 * pairs, plan.switch)
    assert len({plan.housekeeping, *plan.movers, *plan.endpoints}) == duties.cpus


def test_several_movers_or_pairs_share_no_cpu():
    with pytest.raises(BadInput, match=r"need 1 \+ 2 \+ 4 CPUs, a core each on one NUMA node; there are 6.*fewer `switch_cpus` or `pairs`"):
        CpuPlan.of(6, Duties(2, 4))


def test_one_cpu_is_too_few():
    with pytest.raises(BadInput, match="1 CPU, need 2"):
        CpuPlan.of(1)


def test_what_nobody_placed_is_the_hosts():
    placement = Placement([Thread("pmd", 7, "switch", (1,))], {1: "switch"})
    assert (placement.role_of_thread(7), placement.role_of_thread(8)) == ("switch", "host-other")
    assert (placement.role_of_cpu(1), placement.role_of_cpu(0)) == ("switch", "host-other")


def test_an_endpoint_on_the_housekeeping_cpu_has_none_of_its_own():
    assert CpuPlan.of(4).own == (1, 2, 3)
    assert 0 in CpuPlan.of(2).endpoints
    assert CpuPlan.of(2).own == (1,)
