# SPDX-License-Identifier: GPL-2.0-or-later
"""A switch really forwards natively, out of the lab's tree, and leaves nothing behind."""

import os
from pathlib import Path

import pytest

from vsprof.bench import native, switch_times, user_mode_linux
from vsprof.testbeds.emulator import image

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("native_can_run")]
LINKS = Path("/sys/class/net")


def ours() -> set[str]:
    """Interfaces, and how many hugepages there are."""
    return {path.name for path in LINKS.iterdir()} | {native.HUGEPAGES.read_text()}


@pytest.mark.parametrize("name", ["testpmd_io", "linux_bridge", "bridge_uml"])
def test_a_packet_takes_time(name, monkeypatch):
    monkeypatch.setattr(switch_times, "NATIVE_WINDOWS", 5)
    [switch] = [one for one in switch_times.SWITCHES if one.name == name]
    if switch.folders and not user_mode_linux.is_whole():
        pytest.skip("User-Mode Linux was not fetched: `make validate-time` does")
    before = ours()
    with native.hugepages(switch_times.HUGEPAGES):
        took = switch_times._start_natively(switch, image.get(print).tree, {"uml": user_mode_linux.FOLDER})
    assert 10 < took < 5000
    assert ours() == before


def test_who_comes_first_comes_first():
    child = os.fork()
    if child == 0:
        native.before_others()
        os._exit(os.getpriority(os.PRIO_PROCESS, 0) == native.MOST_URGENT)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
