# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign on this host whose cases take turns: for real, with short windows."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import yaml

from vsprof.testbeds.native import FOLDERS, HUGEPAGES

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("native_can_run")]
WINDOWS = 4
EXPERIMENT = {
    "question": "Do they take turns?",
    "notebook": "vm2vm",
    "fixed": {"topology": "vm2vm", "access": "virtio-user", "switch": "vhost-switch", "frame_bytes": 64, "flows": 1},
    "vary": {"forward": ["switch", "wire"]},
    "traffic": [{"kind": "udp_flood", "load": "saturation"}],
    "windows": {"warmup_seconds": 0, "count": WINDOWS, "seconds": 0.5, "own_count": 0},
    "repetitions": 1,
    "collectors": ["softirqs"],
}


@pytest.fixture
def campaign(tmp_path):
    """Started, its results in a folder; and the lines that it prints."""
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    command = [sys.executable, "-m", "vsprof", "--results", str(tmp_path / "results"), "run", str(tmp_path / "mine.yaml")]
    command += ["--testbed", "native", "--verbose", "--no-report"]
    # In a shell's background tests ignore Ctrl-C, and so would it.
    hears = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=hears) as process:
        try:
            yield process, tmp_path / "results"
        finally:
            process.kill()


def as_seen_from_outside() -> dict[str, object]:
    folders = os.listdir(FOLDERS) if FOLDERS.exists() else []
    return {"hugepages": HUGEPAGES.read_text(), "interfaces": sorted(os.listdir("/sys/class/net")), "folders": folders}


def test_windows_of_two_cases_follow_one_another_and_the_host_is_as_it_was(campaign):
    before = as_seen_from_outside()
    process, results = campaign
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    [folder] = [path for path in results.iterdir() if not path.is_symlink()]
    runs = json.loads((folder / "manifest.json").read_text())["runs"]
    assert [run["status"] for run in runs] == ["done", "done"]
    assert [run["beside"] for run in runs] == [["r002"], ["r001"]]
    # The one that is set up last has the first window.
    lines = [line.split()[2:] for line in printed.splitlines() if "udp_flood-saturation: window" in line]
    assert [line[0] for line in lines] == [f"r00{number}:" for number in (2, 1, 1, 2, 2, 1, 1, 2)]
    assert as_seen_from_outside() == before


def test_an_interruption_takes_all_of_them_away(campaign):
    before = as_seen_from_outside()
    process, _ = campaign
    end = time.monotonic() + 200
    while "window 2 of" not in process.stdout.readline():
        assert process.poll() is None
        assert time.monotonic() < end
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 130, printed
    assert "Traceback" not in printed
    assert as_seen_from_outside() == before
