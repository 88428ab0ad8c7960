# SPDX-License-Identifier: GPL-2.0-or-later
"""A small real experiment in the lab, as a user runs it: killed in the middle, interrupted, resumed, and reported."""

import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from vsprof.testbeds.emulator import cache
from vsprof.testbeds.emulator import image as images
from vsprof.testbeds.emulator.machine import Instance

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("lab_can_run")]

SMALL = Path(__file__).with_name("small.yaml")
RUN_SECONDS = 900
"""Many times what it takes: no machine is too slow for a test, and one that hangs ends."""
KERNEL_THREADS_PER_SECOND = 100
"""Visits of the kernel's threads to the guests' CPUs, at most. 0 to 10 are usual; 63 were seen on a machine at a tenth of its speed."""


INSTANCES = Path(tempfile.gettempdir()) / f"e2e-{os.getpid()}"
"""Where its labs have their folders, and no other test's. Of a short path, because sockets are in them."""


@pytest.fixture(scope="module", autouse=True)
def instances() -> Iterator[None]:
    INSTANCES.mkdir(exist_ok=True)  # a killed test's process may have had the same number
    yield
    shutil.rmtree(INSTANCES)


def vsprof(root: Path, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "VSPROF_RESULTS": str(root), "TMPDIR": str(INSTANCES)}
    return subprocess.Popen(
        [sys.executable, "-m", "vsprof.runner.cli", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Where the tests run in the background of a shell, their children would ignore Ctrl-C.
        preexec_fn=_hear_interrupts,
    )


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The campaign's folder. Its runner was killed in the second of two runs; the next was interrupted there; a third ended it."""
    root = tmp_path_factory.mktemp("results")
    first = vsprof(root, "run", str(SMALL), "--seed", "1")
    folder = _wait_for_one_run(root, first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    kept = pd.read_parquet(folder / "measurements.parquet")
    assert set(kept["run_id"]) == {"r001"}
    _interrupt_in_the_second_run(folder)
    third = vsprof(root, "run", "--resume", str(folder))
    printed, _ = third.communicate(timeout=RUN_SECONDS)
    assert third.returncode == 0, printed
    return folder


def test_the_killed_campaign_was_completed_without_repeating_what_was_done(result: Path) -> None:
    manifest = json.loads((result / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert [run["status"] for run in manifest["runs"]] == ["done", "done"]
    assert {run["case_id"].split("_")[1] for run in manifest["runs"]} == {"kernel-ovs", "ovs-dpdk"}
    assert manifest["runs"][0]["placement"]
    assert manifest["facts"]["switches"].keys() == {"kernel-ovs", "ovs-dpdk"}


def test_the_virtual_machines_were_booted_once_for_all_runs(result: Path) -> None:
    """A lab that is asked anything before they are there is resumed without them, and boots them in each run. Only a cache that was empty,
    as continuous integration's, shows that it was this campaign that kept them; the order is tested in tests/runner/test_run.py."""
    image = images.get(print)
    assert [*image.folder.parent.glob(f"{image.folder.name}-*-vms-*/{cache.SEAL}")]


def test_every_traffic_and_collector_has_numbers(result: Path) -> None:
    frame = pd.read_parquet(result / "measurements.parquet")
    assert set(frame["traffic"]) == {"tcp_stream", "udp_flood", "ping_paced"}
    always = {"context_switches", "cpu_time", "interrupts", "softirqs", "perf_software", "ovs_datapath", "uarch_model"}
    for _, run in frame.groupby("run_id"):
        assert always <= set(run["collector"])
    assert "ovs_pmd" in set(frame.loc[frame["switch"] == "ovs-dpdk", "collector"])
    # In modelled time what is counted is software's, and what is said of time is the model's.
    by_model = frame[(frame["source"] == "model") & (frame["collector"] != "uarch_model")]
    assert all(unit == "seconds" or unit.endswith("/s") for unit in by_model["unit"])
    assert not by_model.empty
    own = frame["window"].str.startswith("uarch_model-")
    assert own.equals(frame["collector"] == "uarch_model")
    # A number that could not be counted says why.
    assert frame.loc[frame["value"].isna(), "note"].str.len().gt(0).all()


def test_every_number_of_a_collector_is_in_words(result: Path) -> None:
    """A report calls a number by its collector's words; one without them would stand there by its bare name."""
    frame = pd.read_parquet(result / "measurements.parquet", columns=["collector", "name"]).drop_duplicates()
    said = json.loads((result / "manifest.json").read_text())["vocabulary"]["collectors"]
    bare = [
        (row.collector, row.name)
        for row in frame.itertuples(index=False)
        if row.collector in said and not any(fnmatch.fnmatchcase(row.name, pattern) for pattern in said[row.collector]["numbers"])
    ]
    assert not bare


def test_the_offered_rate_was_offered_and_arrived(result: Path) -> None:
    """pktgen's pacing is known: 100,000 frames a second of modelled time, at every hop of either switch, within 10 %."""
    frame = pd.read_parquet(result / "measurements.parquet")
    flood = frame[(frame["traffic"] == "udp_flood") & frame["name"].str.startswith("packet_rate_")]
    assert flood.loc[flood["value"].isna(), "name"].unique().tolist() == ["packet_rate_sent"]  # the guests are not asked
    rates = flood.dropna(subset="value")
    assert len(rates) == 2 * 2 * 3
    assert rates["value"].between(90_000, 110_000).all(), rates[["switch", "window", "name", "value"]].to_string()
    assert set(rates["source"]) == {"model"}


def test_the_manifest_says_whose_time_it_was_and_what_it_cost(result: Path) -> None:
    manifest = json.loads((result / "manifest.json").read_text())
    assert manifest["facts"]["clock"]["cpu"] == "haswell-ep-e5-2695v3"
    for run in manifest["runs"]:
        clock = run["clock"]
        assert clock["wall_s"] > clock["modelled_s"] > 0.1
        # CPUs are kept together: none is far ahead, but while it may not be held.
        assert clock["far_apart_share"] < 0.01


def test_the_frames_that_the_model_sees_given_are_the_packets_that_the_guests_receive(result: Path) -> None:
    """Two places of one path: what OVS-DPDK puts into the guests' queues, and what their kernels then get. Of pings only a few are on the
    way when a window begins or ends; of a flood a whole queue and backlog of a slow receiver can be, in either direction."""
    frame = pd.read_parquet(result / "measurements.parquet")
    here = frame[(frame["collector"] == "uarch_model") & (frame["switch"] == "ovs-dpdk") & (frame["traffic"] == "ping_paced")]
    given, received = (here.loc[here["name"] == name, "value"].sum() for name in ("model_frames", "model_packets"))
    assert received > 20
    assert given == pytest.approx(received, rel=0.1)


def test_a_poll_mode_thread_never_sleeps_and_a_vhost_worker_does(result: Path) -> None:
    frame = pd.read_parquet(result / "measurements.parquet")
    ping = frame[(frame["traffic"] == "ping_paced") & (frame["name"] == "cpu_idle_seconds") & (frame["cpu"] == 1)]
    idle = ping["value"] / ping["enabled_s"]
    assert idle[ping["switch"] == "ovs-dpdk"].max() < 0.1
    assert idle[ping["switch"] == "kernel-ovs"].min() > 0.3


def test_the_timeline_tells_of_the_same_polls_and_wake_ups(result: Path) -> None:
    """A part of each window: what happened in it came at about the rate at which the whole window's counters say that it did."""
    spans, numbers = pd.read_parquet(result / "timeline.parquet"), pd.read_parquet(result / "measurements.parquet")
    ping = spans[(spans["traffic"] == "ping_paced") & (spans["cpu"] == 1)]
    movers = {switch: part.groupby("kind")["duration_ns"].sum() for switch, part in ping.groupby("switch")}
    assert movers["kernel-ovs"]["sleep"] > 0.3 * movers["kernel-ovs"]["recorded"]
    assert "sleep" not in movers["ovs-dpdk"]
    polls = ping[(ping["switch"] == "ovs-dpdk") & ping["kind"].isin(["poll", "empty_polls"])]
    seen = (polls["kind"] == "poll").sum() + polls.loc[polls["kind"] == "empty_polls", "value"].sum()
    here = numbers[(numbers["switch"] == "ovs-dpdk") & (numbers["traffic"] == "ping_paced") & (numbers["collector"] == "uarch_model")]
    counted, seconds = (here.loc[here["name"] == name, "value"].sum() for name in ("model_polls", "window_seconds"))
    assert seen / (movers["ovs-dpdk"]["recorded"] / 1e9) == pytest.approx(counted / seconds, rel=0.3)


def test_two_counters_of_the_same_switches_agree(result: Path) -> None:
    """perf counts every switch on the guests' CPUs, procfs those of the guests' threads: the latter can't be more. By the second, for
    each has its own window, and on a slow machine one was seen to be 3 seconds longer."""
    frame = pd.read_parquet(result / "measurements.parquet")
    one = frame[(frame["traffic"] == "ping_paced") & (frame["role"] == "guest")]
    by_thread = _by_second(one[one["collector"] == "context_switches"])
    by_cpu = _by_second(one[(one["collector"] == "perf_software") & (one["name"] == "context_switches")])
    # On a CPU of its own, a guest's thread and the idle task take turns: two switches for each of the thread's. The kernel's own threads
    # come between, by time and not by frame, two switches each.
    assert (by_cpu >= 1.2 * by_thread).all(), by_cpu / by_thread
    assert (by_cpu <= 2 * (by_thread + KERNEL_THREADS_PER_SECOND)).all(), by_cpu - 2 * by_thread


def _by_second(rows: pd.DataFrame) -> pd.Series:
    windows = rows.groupby(["run_id", "window"])
    return windows["value"].sum() / windows["enabled_s"].max()


def test_the_report_stands_alone_and_can_be_built_again(result: Path) -> None:
    html = (result / "report.html").read_text()
    assert "<img" in html
    assert 'src="http' not in html
    (result / "report.html").unlink()
    again = vsprof(result.parent, "report", str(result))
    printed, _ = again.communicate(timeout=RUN_SECONDS)
    assert again.returncode == 0, printed
    assert (result / "report.html").exists()


def test_parsing_raw_again_gives_the_same_numbers(result: Path) -> None:
    before = pd.read_parquet(result / "measurements.parquet")
    again = vsprof(result.parent, "parse", str(result))
    printed, _ = again.communicate(timeout=RUN_SECONDS)
    assert again.returncode == 0, printed
    pd.testing.assert_frame_equal(pd.read_parquet(result / "measurements.parquet"), before)


def _interrupt_in_the_second_run(folder: Path) -> None:
    """Ctrl-C with the emulator at work: one line, status 130, the first run kept, and nothing left on this machine."""
    before = _instances()
    second = vsprof(folder.parent, "run", "--resume", str(folder))
    end = time.monotonic() + 60
    while not (mine := _instances() - before) and second.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(5)
    second.send_signal(signal.SIGINT)
    printed, _ = second.communicate(timeout=60)
    assert (second.returncode, printed.splitlines()[-1]) == (
        130,
        "vsprof: interrupted; finished runs are kept: `make resume` goes on",
    ), printed
    assert mine
    assert not mine & _instances()
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if any(str(one) in _command_line(pid) for one in mine)]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["status"], manifest["runs"][0]["status"]) == ("partial", "done")


def _instances() -> set[Path]:
    return set(INSTANCES.glob(f"{Instance.PREFIX}*"))


def _command_line(pid: Path) -> str:
    try:
        return (pid / "cmdline").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _wait_for_one_run(root: Path, process: subprocess.Popen[str]) -> Path:
    end = time.monotonic() + RUN_SECONDS
    while time.monotonic() < end:
        for path in root.glob("*/manifest.json"):
            if (
                any(run["status"] == "done" for run in json.loads(path.read_text())["runs"])
                and (path.parent / "measurements.parquet").exists()
            ):
                # Into the second run, so that it is cut off with its machine at work.
                time.sleep(5)
                return path.parent
        if process.poll() is not None:
            break
        time.sleep(0.5)
    assert process.stdout is not None
    raise AssertionError(f"no run was done: {process.stdout.read()}")
