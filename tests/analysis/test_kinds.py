# SPDX-License-Identifier: GPL-2.0-or-later
"""A traffic of one's own that says of which kind it is keeps every finding that the shipped one of this kind has, in its own words."""

import json

import pytest

from vsprof.analysis import explain, looks, vocabulary
from vsprof.analysis.load import load
from vsprof.analysis.sources import SOFTWARE
from vsprof.runner import vocabulary as writer
from vsprof.switches.kernel_ovs import KernelOvs
from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.terms import schema
from vsprof.terms.vocabulary import Data, Headline, TrafficWords
from vsprof.workloads.traffic.ping_paced import PingPaced
from vsprof.workloads.traffic.tcp_stream import TcpStream
from vsprof.workloads.traffic.udp_flood import UdpFlood

SENT = [("tcp_stream", "saturation"), ("ping_paced", "paced"), *(("udp_flood", load) for load in ("saturation", "equal", "ndr", "pdr"))]


class MyFlood(UdpFlood):
    words, called = "my flood", ""
    headlines = (Headline("packet_rate_received", "received", ("saturation",), "more"), *UdpFlood.headlines[1:])


class PerFrame(MyFlood):
    data = Data("frame", "frame received", "packet_rate_received")
    headlines = (MyFlood.headlines[0], Headline("context_switches_per_frame", "context switches per frame", ("saturation",)))


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """What one result taught must not be known to the next test."""
    for known in ("_switches", "_traffics", "_collectors"):
        monkeypatch.setattr(vocabulary, known, dict(getattr(vocabulary, known)))


@pytest.fixture
def make(sample, tmp_path):
    def make(flood):
        """The usual synthetic result, whose flood is called `my_flood` and described by this class."""
        path = sample.write(tmp_path / flood.__name__, traffics=SENT)
        rows = schema.read(path / "measurements.parquet").to_pylist()
        other = {"udp_flood": "my_flood"}
        schema.write(path / "measurements.parquet", [{name: other.get(value, value) for name, value in row.items()} for row in rows])
        manifest = json.loads((path / "manifest.json").read_text().replace("udp_flood", "my_flood"))
        traffics = {"my_flood": flood, "tcp_stream": TcpStream, "ping_paced": PingPaced}
        said = writer.of({"kernel-ovs": KernelOvs, "ovs-dpdk": OvsDpdk}, traffics).to_json()
        (path / "manifest.json").write_text(json.dumps({**manifest, "vocabulary": said}))
        return load(path)

    return make


@pytest.mark.long
@pytest.mark.parametrize(("flood", "per"), [(MyFlood, "packet"), (PerFrame, "frame")])
def test_no_finding_is_lost(sample, tmp_path, make, flood, per):
    shipped = looks.findings(load(sample.write(tmp_path / "shipped", traffics=SENT)), explain.LOOKS)
    own = looks.findings(make(flood), explain.LOOKS)
    assert len(own) == len(shipped) >= 9
    text = "\n".join(one.markdown() for one in own)
    assert f"OVS-DPDK delivers more {per}s of my flood than kernel OVS." in text
    assert "Where my flood loses packets." in text
    assert f"At the same offered rate, OVS-DPDK makes fewer context switches per {per}" in text
    assert "The no-drop rate is higher" in text
    assert "UDP flood" not in text
    assert "the flood" not in text


@pytest.mark.parametrize(("flood", "per"), [(MyFlood, "packet"), (PerFrame, "frame")])
def test_the_answer_counts_what_it_carries(make, flood, per):
    answer = explain.answer(make(flood))
    assert answer.startswith(f"In my flood, saturation, OVS-DPDK delivers 2.17 times as many {per}s as kernel OVS")
    assert f"as many context switches per {per} of my flood" in answer
    assert "times the *received*" not in answer


def test_a_traffic_that_does_not_fill_the_path_is_none_of_those_that_do(monkeypatch):
    monkeypatch.setitem(vocabulary._traffics, "gentle", TrafficWords("gentle", saturates=False))
    assert vocabulary.at_saturation([("gentle", "saturation"), ("udp_flood", "saturation")]) == [("udp_flood", "saturation")]


def test_a_kind_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="kind is 'flod': use one of '', 'flood'"):
        TrafficWords("mine", kind="flod")


def test_a_poll_mode_collector_of_ones_own_has_its_busy_share(sample, tmp_path):
    path = sample.write(tmp_path / "r")
    rows = schema.read(path / "measurements.parquet").to_pylist()
    schema.write(path / "measurements.parquet", [row | {"collector": row["collector"].replace("ovs_pmd", "own_pmd")} for row in rows])
    own, usual = load(path), load(sample.write(tmp_path / "usual"))
    for metric in ("pmd_busy", "pmd_idle", "pmd_cycles_per_packet", "pmd_iterations_per_second"):
        where = {"case_id": "ovs-dpdk+vhost-user+64", "traffic": "udp_flood", "load": "saturation", "metric": metric}
        assert SOFTWARE.estimate(own, **where).median == SOFTWARE.estimate(usual, **where).median
