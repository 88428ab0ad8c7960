# SPDX-License-Identifier: GPL-2.0-or-later
"""What the model divides by where no kernel receives a packet: held against the reference run, where kernels do."""

import numpy as np
import pytest

from vsprof.analysis import messages, model
from vsprof.analysis.load import load
from vsprof.terms import places


@pytest.fixture
def reference():
    return load(places.ROOT / "results" / "reference")


def flood(result):
    """Packets of each of the model's windows at saturation, by switch."""
    data = model.windows(result)
    data = data[(data["traffic"] == "udp_flood") & (data["load"] == "saturation")]
    return {name: data[data["case_id"].str.contains(name)]["model_packets"].to_numpy() for name in ("kernel-ovs", "ovs-dpdk")}


def test_what_left_the_switch_is_what_kernels_received(reference):
    kernels = flood(reference)
    other = load(reference.path)
    # As if testpmd had served the guests' interfaces.
    other.__dict__["values"] = {case: {**values, "endpoint": "testpmd"} for case, values in reference.values.items()}
    assert messages.GUESTS_POLL in model.limits(other)
    assert messages.SENDER_WAITS not in model.limits(other)
    assert messages.SENDER_WAITS in model.limits(reference)
    counted = flood(other)
    assert not any(np.array_equal(counted[name], kernels[name]) for name in kernels)
    # Frames that a poll-mode thread gave; and the rate out of the port, which is of a window a little longer.
    assert counted["ovs-dpdk"] == pytest.approx(kernels["ovs-dpdk"], rel=0.02)
    assert counted["kernel-ovs"] == pytest.approx(kernels["kernel-ovs"], rel=0.06)
