# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab under the kernel of another Debian suite, for real: host and guests run it, and the processor model knows its functions."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from vsprof.testbeds.emulator import kernels
from vsprof.testbeds.lab import Lab
from vsprof.workloads.endpoints.vm import GUEST

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.usefixtures("lab_can_run")]
ANOTHER = "trixie-backports"
FEWEST_PACKETS = 500
"""In five milliseconds of modelled time. Some 2,000 were seen."""
EXPERIMENT = f"""
question: Does a window over kernel OVS come to its end under another kernel?
notebook: kernels
fixed: {{topology: vm2vm, switch: kernel-ovs, access: vhost-net, frame_bytes: 64, flows: 1, kernel: {ANOTHER}}}
traffic: [{{kind: udp_flood, load: saturation}}]
windows: {{warmup_seconds: 0.5, modelled_seconds: 0.005}}
repetitions: 1
collectors: [uarch_model, perf_software]
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kernels")
    (file := root / "one.yaml").write_text(EXPERIMENT)
    command = [sys.executable, "-m", "vsprof.runner.cli", "run", str(file), "--testbed", "lab", "--no-report"]
    ran = subprocess.run(command, env={**os.environ, "VSPROF_RESULTS": str(root)}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    [folder] = root.glob("*-one")
    return folder


def test_a_flood_is_measured_under_the_kernel_that_was_asked_for(result: Path) -> None:
    [facts] = json.loads((result / "manifest.json").read_text())["facts"]["cases"].values()
    assert facts["kernel"].startswith(f"{kernels.get(ANOTHER, print).release} ")
    rows = pd.read_parquet(result / "measurements.parquet")
    assert rows[rows["name"] == "model_packets"]["value"].sum() > FEWEST_PACKETS
    assert rows[rows["collector"] == "perf_software"]["value"].notna().any()


def test_the_model_knows_its_functions_in_the_host_and_in_the_guests(result: Path) -> None:
    functions = pd.read_parquet(result / "functions.parquet")
    named = set(zip(functions["object"], functions["function"], strict=True))
    assert ("openvswitch", "ovs_vport_receive") in named
    assert {"handle_tx", "handle_rx"} & {function for where, function in named if where == "vhost_net"}
    # The receiver's: found only where its kernel is the host's.
    assert ("guest kernel", "ip_rcv_core") in {(where, re.sub(r"\..*", "", function)) for where, function in named}


def test_the_labs_own_modules_and_the_others_are_on_one_disk() -> None:
    with Lab() as host:
        host.boot(ANOTHER)
        running = host.run("uname -r").stdout.strip()
        assert running in host.run("ls /usr/lib/modules").stdout.split()
        assert len(host.run("ls /usr/lib/modules").stdout.split()) == 2
        assert running in host.run(f"grep -aom 1 'Linux version [^ ]*' {GUEST}/vmlinux").stdout
