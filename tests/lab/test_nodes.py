# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab of two NUMA nodes under the model: memory of the processor's own node is local, that of the other one is remote."""

import json
from collections.abc import Iterator

import pytest

from vsprof.collectors.uarch_model import BUILD, UarchModel
from vsprof.testbeds.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.usefixtures("lab_can_run")]

PLUGIN = BUILD / "uarch_model.so"
CPU = 3
"""The first one of node 1."""
LINES = 1 << 20
# Twice the LLC, a byte of each line: by the stretched distance nothing of it is still cached when it is read. By Python's own loop over
# slices, for one in Python would be modelled for most of a minute.
WORK = f"b = bytearray({LINES} * 64)\nx = sum(b[::64])"


@pytest.fixture(scope="module")
def model() -> Iterator[tuple[Lab, UarchModel]]:
    if not PLUGIN.exists():
        pytest.skip("the model is not built: run `make setup`")
    with Lab(nodes=2, plugins=[PLUGIN]) as host:
        host.push(WORK, "/root/work.py")
        # A prefetcher would be there first, and what it brings is no demand.
        collector = UarchModel(host, without=["prefetch"])
        collector.setup()
        # Only what is counted is looked at: so the clock stays the emulator's, which is faster.
        with collector.modelled_time():
            yield host, collector
        collector.teardown()


def fills(host: Lab, collector: UarchModel, node: int) -> tuple[int, int]:
    """Local and remote fills of a program on CPU 3 whose memory is on ``node``."""
    collector._ask("begin")
    placed = f"systemd-run --quiet --wait --pipe --property=AllowedMemoryNodes={node} taskset -c {CPU}"
    host.run(f"{placed} python3 -S /root/work.py", timeout=120)
    collector._ask("end")
    core = json.loads(collector._ask("window"))["cores"][CPU]
    found = [task["modes"].get("host_user", {}) for task in core["tasks"] if task["name"].startswith("python3")]
    return sum(counts.get("memory_local", 0) for counts in found), sum(counts.get("memory_remote", 0) for counts in found)


@pytest.fixture(scope="module")
def filled(model: tuple[Lab, UarchModel]) -> dict[int, tuple[int, int]]:
    """By node of the memory: all that is asked of it is asked of these two."""
    return {node: fills(*model, node) for node in (0, 1)}


def test_the_lab_has_two_nodes(model: tuple[Lab, UarchModel]) -> None:
    host, _ = model
    assert host.run("cat /sys/devices/system/node/online").stdout.strip() == "0-1"
    assert host.run("cat /sys/devices/system/node/node*/cpulist").stdout.split() == ["0-2", "3-5"]


@pytest.mark.usefixtures("filled")
def test_translations_are_right_in_both_nodes(model: tuple[Lab, UarchModel]) -> None:
    _, collector = model
    vcpus = json.loads(collector._ask("status"))["vcpus"]
    assert sum(vcpu["translations_checked"] for vcpu in vcpus) > 100
    assert sum(vcpu["translations_wrong"] for vcpu in vcpus) == 0


@pytest.mark.parametrize("node", [0, 1])
def test_memory_is_local_to_its_node_alone(filled: dict[int, tuple[int, int]], node: int) -> None:
    local, remote = filled[node]
    mine, other = (local, remote) if node == 1 else (remote, local)
    assert mine > 0.8 * LINES
    assert other < 0.1 * LINES
