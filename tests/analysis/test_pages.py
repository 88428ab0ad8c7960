# SPDX-License-Identifier: GPL-2.0-or-later
"""The numbers of README and docs/ are those of their results."""

import re
from pathlib import Path

import pytest

from vsprof.analysis import pages
from vsprof.analysis.load import load
from vsprof.terms import errors

FLOOD = "udp_flood saturation packet_rate_received"
BOTH = "| switch=ovs-dpdk | switch=kernel-ovs"
PAGE = Path("docs/page.md")


@pytest.fixture(scope="module")
def reference():
    return load(pages.ROOT / "results" / "reference")


def marked(of: str, ask: str, text: str = "old") -> str:
    return f"before <!--= {of} {ask} -->{text}<!--/--> behind"


def test_a_mark_is_filled_again_and_again(reference):
    filled = pages.fill(marked("reference", f"ratio {FLOOD} {BOTH}"), {"reference": reference}, PAGE)
    whole = re.escape(marked("reference", f"ratio {FLOOD} {BOTH}", "NUMBER")).replace("NUMBER", r"\d\.\d\d \[\d\.\d\d, \d\.\d\d\]")
    assert re.fullmatch(whole, filled)
    assert pages.fill(filled, {"reference": reference}, PAGE) == filled


@pytest.mark.parametrize(
    ("ask", "shape"),
    [
        ("changes", r"\| change \| kernel OVS \| OVS-DPDK \|\n\| --- \| --- \| --- \|\n(\| l2.latency .* % \[.*\] \| .* % \[.*\] \|\n){2}"),
        ("speeds", r"\| change \| kernel OVS .*\n.*\n(\| l2.latency .* \| \+0.0 % .*\n){2}"),
        ("elasticities", r"\| elasticity of the rate to \| kernel OVS .*\n.*\n(\| l2.latency .* \| -?\d\.\d\d \[.*\] \|.*\n){2}"),
        ("bounds", r"(- \*\*.*\*\*: (.*\n)+){2}"),
    ],
)
def test_what_can_be_asked_of_changes(sample, what_if_sample, tmp_path, ask, shape):
    result = load(what_if_sample.write(sample, tmp_path, repetitions=2, own="uarch_model"))
    assert re.fullmatch(rf"\n\n{shape}\n", pages.said(result, ask)), pages.said(result, ask)


def test_marks_of_other_results_stay(reference):
    text = marked("numa.lab", f"ratio {FLOOD} {BOTH}")
    assert pages.fill(text, {"reference": reference}, PAGE) == text


@pytest.mark.parametrize(
    ("ask", "shape"),
    [
        (f"ratio {FLOOD} {BOTH}", r"\d\.\d\d \[\d\.\d\d, \d\.\d\d\]"),
        (f"inverse {FLOOD} | switch=kernel-ovs | switch=ovs-dpdk", r"1/\d\.\d\d \[1/\d\.\d\d, 1/\d\.\d\d\]"),
        (f"value {FLOOD} | switch=kernel-ovs", r"\d{3} kpps \[\d{3}, \d{3}\]"),
        ("value udp_flood saturation model_cycles_per_packet poll-mode_thread | switch=ovs-dpdk", r"[\d,]+ \[[\d,]+, [\d,]+\]"),
        ("run", r"predicted for an Intel .*, 6 repetitions on 20\d\d-\d\d-\d\d with vsprof [0-9a-f]{12}"),
        (f"table {FLOOD} model_cpi:switch", r"\n\n\| UDP flood.* \|\n\| --- \| --- \| --- \|\n(\| `.*` \| .* \| .* \|\n){2}\n"),
        ("headlines", r"\n\n\| median.*(.*\n)*"),
        ("answer", r"\n\n(>.*\n)+\n"),
        ("show", r"\n\n```\n(.*\n)+```\n\n"),
    ],
)
def test_what_can_be_asked_for(reference, ask, shape):
    assert re.fullmatch(shape, pages.said(reference, ask)), pages.said(reference, ask)


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        ("median x", "one of ratio, inverse, "),
        ("ratio udp_flood saturation nonsense " + BOTH, "nobody counted udp_flood saturation nonsense"),
        (f"value {FLOOD} | switch=mine", "0 cases have switch=mine: "),
        (f"value {FLOOD} | topology=vm2vm", "2 cases have topology=vm2vm: "),
        (f"ratio {FLOOD} | switch=ovs-dpdk", "not enough values"),
        (f"value {FLOOD} | switch", "dictionary update"),
    ],
)
def test_what_can_not_be_filled_says_which_mark_of_which_page(reference, ask, why):
    with pytest.raises(errors.BadInput) as raised:
        pages.fill(marked("reference", ask), {"reference": reference}, PAGE)
    assert str(raised.value).startswith(f"docs/page.md: <!--= reference {ask} --> can't be filled: ")
    assert why in str(raised.value)


def test_results_are_told_apart_by_experiment_and_testbed(reference, sample, tmp_path):
    assert pages.key(reference) == "reference"
    assert pages.key(load(sample.write(tmp_path / "one"))).split(".")[1] in ("lab", "native", "emulated")


def test_the_pages_have_the_reference_runs_numbers(reference):
    for page in pages.pages():
        text = page.read_text(encoding="utf-8")
        assert pages.fill(text, {"reference": reference}, page) == text, f"make pages RUN=reference would change {page}"


def test_every_mark_asks_for_something_known():
    for page in pages.pages():
        for mark in pages.MARK.finditer(page.read_text(encoding="utf-8")):
            assert mark["ask"].split()[0] in pages.ASKS, f"{page}: {mark['ask']}"
            assert mark["of"] == pages.REFERENCE or mark["of"].split(".")[0] in {
                one.stem for one in (pages.ROOT / "experiments").glob("*.yaml")
            }
