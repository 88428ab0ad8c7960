# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of NUMA nodes: the answer in two sentences, where all was, and no claim without an interval that excludes 1."""

import itertools

import pytest

from vsprof.analysis import explain_numa, figures
from vsprof.analysis.load import load
from vsprof.analysis.published import beside

FLOOD = ("udp_flood", "saturation")


@pytest.fixture(scope="module")
def placed(sample, numa_sample, tmp_path_factory):
    """SYNTHETIC: OVS-DPDK's thread and memory on either node, counted by the model."""
    path = tmp_path_factory.mktemp("numa") / "r"
    traffics = [FLOOD, sample.IDLE]
    sample.write(path, accesses=("vhost-user",), traffics=traffics, own="uarch_model", options=numa_sample.OPTIONS)
    return load(numa_sample.change(path))


def cycles(result, pmd: str, memory: str) -> float:
    [case] = [one for one, values in result.values.items() if (values["pmd_node"], values["memory_node"]) == (pmd, memory)]
    return explain_numa.MODEL.estimate(
        result, case_id=case, metric=explain_numa.CYCLES, role="poll-mode thread", traffic="udp_flood", load="saturation"
    ).median


def test_the_answer_is_both_near_against_both_far(placed):
    said = explain_numa.answer(placed)
    ratio = cycles(placed, "near", "near") / cycles(placed, "far", "far")
    assert f"takes the thread (in user mode) 23 % fewer estimated cycles than from the other node (ratio {ratio:.3f}" in said
    # The same work per packet, so the CPI is all that differs.
    assert "; 1.00x (95 % interval 1.00 to 1.00, n=3) the instructions at " in said
    assert f" at {ratio:.3f}x " in said
    assert "0 (95 % interval 0 to 0, n=3) lines from another node's caches, instead of 3.00" in said
    assert "0 (95 % interval 0 to 0, n=3) lines from another node's memory, instead of 6.00" in said
    assert "estimated (model: Made-up 1)" in said


def test_the_answer_of_what_is_the_same_says_so(sample, tmp_path):
    path = sample.write(tmp_path / "r", accesses=("vhost-user",), traffics=[FLOOD, sample.IDLE], own="uarch_model",
                        options={"pmd_node": ("far", "near"), "memory_node": ("far", "near")})  # fmt: skip
    assert "The difference is not significant." in explain_numa.answer(load(path))
    assert (
        "The thread's cycles per packet: the difference between pmd_node=near and pmd_node=far is not significant"
        in explain_numa.markdown(load(path))
    )


def test_without_the_two_cases_there_is_no_answer(two_switches):
    assert "can't answer" in explain_numa.answer(two_switches)
    assert "one NUMA node" in explain_numa.placed(two_switches)
    assert explain_numa.markdown(two_switches).startswith("No finding")


def test_each_placement_is_explained_against_the_far_one(placed):
    said = explain_numa.markdown(placed)
    assert "pmd_node=far: A packet costs the thread fewer cycles with memory_node=near than with memory_node=far" in said
    assert "memory_node=near: A packet costs the thread fewer cycles with pmd_node=near than with pmd_node=far" in said
    assert (
        "memory_node=near: Lines that each packet's path fills: from another node's caches 0 (95 % interval 0 to 0, n=3) with pmd_node=near"
        in said
    )
    said = said.replace("Role switch", "role switch")
    assert "role switch, from another node's memory: memory_node=far 6.00, memory_node=near 4.00" in said
    assert "role switch, from another node's caches: memory_node=far 3.00, memory_node=near 2.00" in said


def test_a_result_of_before_says_what_it_has_of_other_nodes(sample, placed):
    before = sample.with_frame(placed, placed.frame[placed.frame["name"] != "remote_cache"])
    said = explain_numa.answer(before)
    assert "lines from another node's memory, instead of 6.00" in said
    assert "caches" not in said
    assert "from another node's caches" not in explain_numa.markdown(before)


def test_where_everything_was_is_what_was_found(placed):
    table = explain_numa.placed(placed).frame.set_index("case")
    row = table.loc["memory_node=near, pmd_node=far"]
    assert row["poll-mode thread"] == "node 0"
    assert row["mbufs"] == row["vhost's own memory"] == "node 1"
    assert row["hugepages of mbufs"] == "224 on node 1"
    assert (row["guest1's"], row["guest2's"]) == ("101 on node 1", "102 on node 1")


def test_the_figure_shows_lines_by_role_and_node(placed):
    shown = figures.show(placed, "remote_fills")
    assert "memory of the own node (left), from memory of another one (middle), from a cache of another one (right)" in shown.caption
    part = shown.table[(shown.table["role"] == "switch") & (shown.table["counter"] == "memory_remote")]
    assert sorted(part["median"]) == pytest.approx([0, 2, 4, 6])
    assert [axes.get_xlabel() for axes in shown.figure.axes] == [
        "lines from own memory\nper packet received",
        "from another's memory\nper packet received",
        "from another's caches\nper packet received",
    ]
    shown.figure.canvas.draw()
    words = [axes.xaxis.label.get_window_extent() for axes in shown.figure.axes]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(words)), "they run into each other"


def test_t4_stands_beside_the_threads_cycles(placed):
    ours = {one.published.id: one for one in beside(placed)}
    assert ours["T4-numa"].published.ratio == pytest.approx(1 / ours["T4-cycles"].published.ratio)
    ratio = cycles(placed, "near", "near") / cycles(placed, "far", "far")
    assert ours["T4-cycles"].ratio.median == pytest.approx(ratio)
    table = figures.show(placed, "published_model").table
    assert list(table["ours"]) == ["estimated cycles per packet, role poll-mode thread, without idle polling"]
