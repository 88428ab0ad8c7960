# SPDX-License-Identifier: GPL-2.0-or-later
"""The API as its page shows it, and what the page does not."""

import doctest
import inspect
import re
import subprocess
import sys

import pandas as pd
import pytest

import vsprof
from vsprof import api
from vsprof.terms import places
from vsprof.terms.errors import BadInput


@pytest.fixture(scope="module")
def run():
    return vsprof.load(places.ROOT / "results" / "reference")


def test_the_pages_examples_do_what_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = places.ROOT / "docs" / "api.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried > 10
    assert not failed
    assert (tmp_path / "throughput.png").stat().st_size > 1000


@pytest.mark.long
def test_two_runs_are_compared_case_by_case(run):
    same = run.compare("ovs-dpdk", other=run)
    assert (same["ratio"].dropna() == 1).all()
    both = run.compare("kernel-ovs", "ovs-dpdk")
    flood = both[(both["metric"] == "packet_rate_received") & (both["load"] == "saturation") & (both["traffic"] == "udp_flood")]
    assert flood["verdict"].tolist() == ["more"]
    assert flood["ratio"].iloc[0] == pytest.approx(run.ratio("packet_rate_received", "ovs-dpdk", "kernel-ovs").median)


def test_a_case_may_be_named_by_its_values(run):
    named = run.ratio("packet_rate_received", {"switch": "ovs-dpdk"}, {"access": "vhost-net"})
    assert named == run.ratio("packet_rate_received", "ovs-dpdk", "kernel-ovs")
    with pytest.raises(BadInput, match="more than one case is"):
        run.ratio("packet_rate_received", {"topology": "vm2vm"}, "kernel-ovs")


def test_metrics_have_their_source(run):
    assert set(run.metrics["source"]) == {"software", "model"}
    assert isinstance(run.functions, pd.DataFrame)
    assert list(run.timeline["kind"]) == [], "the kept result is older than timelines"
    with pytest.raises(KeyError, match="nobody counted nothing_of_the_kind"):
        run.summary("nothing_of_the_kind")
    with pytest.raises(BadInput, match=r"unknown column 'bogus': use one of .*role"):
        run.ratio("packet_rate_received", "ovs-dpdk", "kernel-ovs", bogus=1)
    with pytest.raises(BadInput, match=r"unknown traffic 'flood': use one of .*udp_flood"):
        run.decomposition("ovs-dpdk", "kernel-ovs", traffic="flood")
    with pytest.raises(KeyError, match="near it: packet_rate_received"):
        run.summary("packet_rate_recieved")
    with pytest.raises(KeyError, match="no figure nothing"):
        run.figure("nothing")
    with pytest.raises(KeyError):
        run.figure("stages")  # of vhost-switch alone


def test_a_result_that_is_not_there_is_bad_input():
    with pytest.raises(BadInput, match="not-there"):
        vsprof.load("not-there")


def test_the_command_line_need_not_wait_for_pandas():
    code = "import sys, vsprof; sys.exit('pandas' in sys.modules or 'matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=places.ROOT, check=True, timeout=60)


PUBLIC = [vsprof.load, api.load, *(member for name, member in inspect.getmembers(api.Run, inspect.isfunction) if not name.startswith("_"))]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__qualname__)
def test_what_is_public_is_described_as_numpy_does(function):
    sections = re.split(r"^ *(\w+)\n *-+\n", inspect.getdoc(function) or "", flags=re.MULTILINE)
    described = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert sections[0].strip()
    assert "Returns" in described
    given = [name for name in inspect.signature(function).parameters if name != "self"]
    listed = re.findall(r"^((?:\*{0,2}\w+(?:, )?)+)(?: : .*)?$", described.get("Parameters", ""), re.MULTILINE)
    assert [name.strip("*") for line in listed for name in line.split(", ")] == given
