# SPDX-License-Identifier: GPL-2.0-or-later
"""A flame graph is well-formed SVG whose boxes are as wide as their shares, whatever functions are called."""

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.analysis import flamegraph

SVG = "{http://www.w3.org/2000/svg}"
INSIDE = flamegraph.WIDTH - 2 * flamegraph.MARGIN
STACKS = {
    "switch;pmd;main (ovs-vswitchd);poll (librte_vhost.so.25.0)": 60.0,
    "switch;pmd;main (ovs-vswitchd);write (libc.so.6);vfs_write ([kernel]);ovs_dp ([openvswitch])": 20.0,
    "guest;CPU 0/KVM;(unknown) (guest kernel)": 20.0,
}


def boxes(svg: str) -> dict[str, ElementTree.Element]:
    """By title's first line, for tests in which each name is there once."""
    return {box.find(f"{SVG}title").text.partition("\n")[0]: box for box in ElementTree.fromstring(svg).iter(f"{SVG}g")}


def wide(box: ElementTree.Element) -> float:
    return float(box.find(f"{SVG}rect").get("width"))


def test_a_box_is_as_wide_as_its_share():
    found = boxes(flamegraph.draw(STACKS, "x"))
    for name, share in (("all", 1), ("switch", 0.8), ("main (ovs-vswitchd)", 0.8), ("ovs_dp ([openvswitch])", 0.2), ("guest", 0.2)):
        assert wide(found[name]) == pytest.approx(share * INSIDE, abs=0.01)


def test_a_function_stands_on_its_caller():
    found = boxes(flamegraph.draw(STACKS, "x"))
    y = {name: float(box.find(f"{SVG}rect").get("y")) for name, box in found.items()}
    assert y["all"] > y["switch"] > y["pmd"] > y["main (ovs-vswitchd)"] > y["poll (librte_vhost.so.25.0)"]
    assert y["all"] - y["switch"] == flamegraph.ROW


def test_hovering_tells_the_share():
    texts = [title.text for title in ElementTree.fromstring(flamegraph.draw(STACKS, "x")).iter(f"{SVG}title")]
    assert "poll (librte_vhost.so.25.0)\n60.00 % of 100 samples" in texts


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        ("vfs_write ([kernel])", "kernel"), ("ovs_dp ([openvswitch])", "kernel module"), ("main (ovs-vswitchd)", "program"),
        ("poll (librte_vhost.so.25.0)", "library"), ("(unknown) (guest kernel)", "guest"), ("clock ([vdso])", "program"),
        ("switch", "role, thread"), ("CPU 0/KVM", "role, thread"), ("operator() (x)", "program"),
    ],
)  # fmt: skip
def test_a_frame_is_of_one_kind(frame, kind):
    assert flamegraph.kind(frame) == kind
    assert kind in flamegraph.KINDS


def test_what_has_no_name_is_called_by_what_has_it():
    assert flamegraph.label("(unknown) (libc.so.6)") == "libc.so.6, unnamed"
    assert flamegraph.label("(unknown) ([kernel])") == "kernel, unnamed"
    assert flamegraph.label("main (ovs)") == "main"


def test_of_a_difference_the_colour_tells_who_has_more():
    first, second = {"a;only_first (x)": 3.0, "a;both (x)": 1.0}, {"a;only_second (x)": 30.0, "a;both (x)": 10.0}
    svg = flamegraph.differ(first, second, "x", ("kernel-ovs", "ovs-dpdk"))
    found = {name: box.find(f"{SVG}rect").get("fill") for name, box in boxes(svg).items()}
    assert found["only_first (x)"] == "#386cb0"
    assert found["only_second (x)"] == "#cb3c33"
    assert found["both (x)"] == found["all"] == "#f2f2f2"  # a quarter of each: totals are made equal
    assert wide(boxes(svg)["only_first (x)"]) == pytest.approx(0.375 * INSIDE, abs=0.01)
    assert "kernel-ovs: 75.00 %; ovs-dpdk: 0.00 %; change -75.00 points" in svg


def test_numbers_per_packet_are_set_against_each_other_as_they_are():
    found = boxes(flamegraph.differ({"a;f (x)": 300.0}, {"a;f (x)": 100.0}, "x", ("kernel-ovs", "ovs-dpdk"), "packet"))
    assert found["all"].find(f"{SVG}title").text == "all\nkernel-ovs: 300; ovs-dpdk: 100; change -200 per packet"
    assert wide(found["f (x)"]) == pytest.approx(INSIDE)
    # A third of what the other has: half way to its colour.
    assert found["f (x)"].find(f"{SVG}rect").get("fill") == "#95afd1"


def test_a_still_image_runs_nothing():
    assert "<script" in flamegraph.draw(STACKS, "x")
    still = flamegraph.draw(STACKS, "x", interactive=False)
    assert "<script" not in still
    assert "data-" not in still


def test_thousands_of_slivers_are_left_out():
    stacks = {"a;wide (x)": 1e6, **{f"a;f{number} (x)": 1.0 for number in range(5000)}}
    assert len(boxes(flamegraph.draw(stacks, "x"))) == 3
    # Nor is there room above for what is left out.
    tall = {"a;wide (x)": 1e6, ";".join(["a", *(f"f{number} (x)" for number in range(50))]): 1.0}
    assert ElementTree.fromstring(flamegraph.draw(tall, "x")).get("height") == str(
        flamegraph.HEADER + 3 * flamegraph.ROW + flamegraph.FOOTER
    )


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=60), st.floats(1, 1e6), min_size=1, max_size=8), st.text(max_size=20))
def test_any_names_make_sound_xml(stacks, title):
    for svg in (flamegraph.draw(stacks, title), flamegraph.differ(stacks, dict(reversed(stacks.items())), title, ("a<b", "c&d"))):
        ElementTree.fromstring(svg)
