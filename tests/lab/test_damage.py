# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab whose parts are damaged, or whose results find no room: rebuilt, or one clear error. On the host with two CPUs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from vsprof.testbeds.emulator import cache, image, snapshot
from vsprof.testbeds.emulator.machine import Shape
from vsprof.testbeds.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.usefixtures("lab_can_run")]

TWO_CPUS = Path(__file__).with_name("two-cpus.yaml")
PATIENCE_SECONDS = 900
"""Many times what it takes: no machine is too slow for a test, and one that hangs ends."""
TWO = Shape(cpus=2)
BOOTED_AGAIN = "booting the lab host, 2 CPUs (once; about a minute)"


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a snapshot that is sealed and whole, and no snapshot; in a cache that borrows the real image."""
    real = image.get(print)
    mine = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VSPROF_CACHE", str(mine))
        (mine / "lab").mkdir()
        image.path().symlink_to(real.folder)
        yield cache.make(snapshot.folder(image.Image(image.path()), TWO), _fill_with_nonsense, snapshot.PARTS)


def _fill_with_nonsense(partial: Path) -> None:
    for name in snapshot.PARTS:
        (partial / name).write_bytes(b"not this" * 1000)


def test_a_snapshot_that_does_not_load_is_made_again(damaged: Path) -> None:
    said: list[str] = []
    with Lab(cpus=2, say=said.append) as host:
        assert host.facts()["cpus"] == 2
    assert said[0].endswith("booting again")
    assert said[1:] == [BOOTED_AGAIN]


def test_one_changed_byte_in_the_saved_memory_is_found(damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is booted then is the test's before this one; here the sound snapshot, which was kept, stands in for another minute of it."""
    kept = [_copy(damaged / name, tmp_path) for name in snapshot.PARTS]
    monkeypatch.setattr(snapshot, "boot_and_save", lambda image, shape, to: [_copy(one, to) for one in kept])
    state = damaged / "state.bin"
    with state.open("r+b") as file:
        file.seek(state.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    said: list[str] = []
    with Lab(cpus=2, say=said.append) as host:
        assert host.run("nproc --all").stdout == "2\n"
    assert said == [BOOTED_AGAIN]


def _copy(file: Path, to: Path) -> Path:
    """The saved memory is mostly holes, which must stay such: as bytes it is as large as the machine's."""
    subprocess.run(["cp", "--sparse=always", file, to], check=True)
    return to / file.name


def test_two_cpus_carry_the_traffic(damaged: Path, tmp_path: Path) -> None:
    """One CPU for housekeeping and the endpoints, one for the switch.

    A flood's ends agree within 10 %. TCP comes in bursts, and its ends are not read in one instant: on a slow host 14 % were seen.
    """
    done = _vsprof(tmp_path, "run", str(TWO_CPUS), "--cpus", "2", "--switches", "ovs-dpdk", "--no-report")
    assert done.returncode == 0, done.stdout
    (folder,) = tmp_path.glob("*-two-cpus")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["runs"][0]["cpu_roles"].keys() == {"0", "1"}
    frame = pd.read_parquet(folder / "measurements.parquet")
    for traffic, apart in {"udp_flood": 0.1, "tcp_stream": 0.3}.items():
        here = frame[frame["traffic"] == traffic]
        sent, received = (here.loc[here["name"] == f"packet_rate_{hop}", "value"] for hop in ("into_switch", "received"))
        assert len(sent) == 2
        assert received.to_numpy() == pytest.approx(sent.to_numpy(), rel=apart), traffic


@pytest.mark.usefixtures("damaged")
def test_results_that_find_no_room_are_one_clear_error(tmp_path: Path) -> None:
    """A disk of 64 KiB in a mount namespace of its own, which ends with the command."""
    run = f"{sys.executable} -m vsprof.runner.cli run {TWO_CPUS} --cpus 2 --switches kernel-ovs --no-report"
    inside = f"mount -t tmpfs -o size=64k none {tmp_path} && exec {run}"
    done = subprocess.run(
        [*cache.as_root(), "sh", "-c", inside],
        env={**os.environ, "VSPROF_RESULTS": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("vsprof: can't write ")
    assert last.endswith("No space left on device; what was measured before is kept: free some space, then `make resume`")


def _vsprof(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vsprof.runner.cli", *words],
        env={**os.environ, "VSPROF_RESULTS": str(root)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_SECONDS,
        check=False,
    )  # fmt: skip
