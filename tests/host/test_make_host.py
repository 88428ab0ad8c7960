# SPDX-License-Identifier: GPL-2.0-or-later
"""`make host` on a bare Debian server, as its administrator sees it: prepared, prepared again, measured on, rebooted, taken back.

The tests of this file are steps on one server, in this order. They take long, for the server is emulated: `make test-host` runs them.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import administrator
import pandas as pd
import pytest
from administrator import look, vsprof

from vsprof.testbeds import remote
from vsprof.testbeds.emulator import bare_server
from vsprof.testbeds.ssh import Channel

pytestmark = [
    pytest.mark.lab,
    pytest.mark.usefixtures("lab_can_run"),
    pytest.mark.timeout(3600),
    pytest.mark.skipif("VSPROF_TEST_HOST" not in os.environ, reason="prepares a whole server (20 minutes): `make test-host` runs it"),
]
ONE_RUN, ONE_WIRE = (Path(__file__).with_name(name) for name in ("one_run.yaml", "one_wire.yaml"))


@pytest.fixture(scope="module")
def server() -> Iterator[bare_server.Server]:
    with bare_server.running() as one:
        one.channel().close()
        yield one


@pytest.fixture(scope="module")
def inventory(server: bare_server.Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return administrator.inventory(server, tmp_path_factory.mktemp("inventory"), "server_kernel_arguments='vsprof.asked=1'")


@pytest.fixture
def channel(server: bare_server.Server) -> Iterator[Channel]:
    one = server.channel()
    yield one
    one.close()


@pytest.fixture(scope="module")
def state(server: bare_server.Server) -> dict[str, list[str]]:
    """How the server was before it was prepared."""
    one = server.channel()
    try:
        # An administrator's own: it must be given back, not lost.
        one.run("echo vm.nr_hugepages=8 | tee /etc/sysctl.d/10-own.conf; echo 8 > /proc/sys/vm/nr_hugepages", timeout=60, check=True)
        one.run("apt-get -q update && update-grub", timeout=600, check=True)
        return look(one)
    finally:
        one.close()


def prepared(channel: Channel) -> list[str]:
    return channel.run(
        "cat /proc/sys/vm/nr_hugepages; ls -d /sys/module/openvswitch /sys/module/vhost_net /dev/kvm; systemctl is-active apt-daily.timer;"
        " systemctl is-enabled openvswitch-switch; ls /var/lib/vsprof/guest/guest.cpio /usr/local/bin/vhost-switch; cat /proc/sys/vm/max_map_count",
        timeout=60,
        check=False,
    ).stdout.split()


AS_BEFORE = ("# links", "# run", "# units", "# modules", "# settings")
"""What a run leaves as it was, of what `look` sees."""
PREPARED = [
    "1024",
    "/dev/kvm",
    "/sys/module/openvswitch",
    "/sys/module/vhost_net",
    "inactive",
    "masked",
    "/usr/local/bin/vhost-switch",
    "/var/lib/vsprof/guest/guest.cpio",
    "262144",
]


def test_a_bare_server_is_not_measured_on(state, inventory):
    ran = subprocess.run(
        [sys.executable, "-m", "vsprof.runner.cli", "run", str(ONE_RUN), "--inventory", str(inventory)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "bare has no guest image, so it is not prepared: run `make host" in ran.stderr


def test_it_is_prepared(state, inventory, channel):
    assert "bare: prepared, " in vsprof("host", "--inventory", str(inventory))
    assert prepared(channel) == PREPARED
    # GRUB itself is not what boots this server: that it would pass them on is as far as this goes.
    assert "vsprof.asked=1" in channel.run("grep -m 1 vmlinuz- /boot/grub/grub.cfg", timeout=60, check=True).stdout


def test_the_second_time_nothing_changes(inventory):
    assert "bare: nothing changed" in vsprof("host", "--inventory", str(inventory))


def test_a_run_comes_home(inventory, channel, tmp_path, monkeypatch):
    before = look(channel)
    monkeypatch.setenv("VSPROF_RESULTS", str(tmp_path))
    vsprof("run", str(ONE_RUN), "--inventory", str(inventory), "--verbose")
    manifest = json.loads((tmp_path / "latest" / "manifest.json").read_text())
    assert (manifest["status"], manifest["testbed"], manifest["facts"]["server"]) == ("complete", "remote", "bare")
    rows = pd.read_parquet(tmp_path / "latest" / "measurements.parquet")
    assert set(rows["testbed"]) == {"remote"}
    assert set(rows["switch"]) == {"kernel-ovs", "ovs-dpdk"}
    assert "remote" in (tmp_path / "latest" / "report.html").read_text()
    received = rows[rows["name"] == "packets_received"]["value"]
    assert len(received) == 2
    assert (received > 500).all(), received
    after = look(channel)
    assert {part: after[part] for part in AS_BEFORE} == {part: before[part] for part in AS_BEFORE}


def test_its_own_network_cards_load_a_path_and_are_given_back(server, channel, tmp_path, monkeypatch):
    for number in (1, 2):
        server.add_card(f"card{number}", f"52:54:00:76:77:{number:02x}")
    cards = "ls -l /sys/bus/pci/drivers/igb | grep -o '0000:[^ /]*$' | sort -u"
    end = time.monotonic() + 60
    while len(found := channel.run(cards, timeout=60, check=False).stdout.split()) < 2 and time.monotonic() < end:
        time.sleep(1)
    before = look(channel)
    inventory = administrator.inventory(server, tmp_path, f"vsprof_wires={','.join(found)}")
    monkeypatch.setenv("VSPROF_RESULTS", str(tmp_path))
    vsprof("run", str(ONE_WIRE), "--inventory", str(inventory), "--verbose")
    rows = pd.read_parquet(tmp_path / "latest" / "measurements.parquet")
    rates = rows[rows["name"] == "packet_rate_received"].groupby("switch")["value"].min()
    assert set(rates.index) == {"kernel-ovs", "ovs-dpdk", "vhost-switch"}
    assert (rates > 100).all(), rates
    assert channel.run(cards, timeout=60, check=False).stdout.split() == found
    after = look(channel)
    assert {part: after[part] for part in AS_BEFORE} == {part: before[part] for part in AS_BEFORE}


def ours(channel: Channel) -> list[str]:
    return channel.run(remote.LEFT, timeout=60, check=False).stdout.split()


def killed(inventory: Path, channel: Channel, results: Path) -> None:
    """Start a campaign, and kill the runner as soon as something of it is at work on the server."""
    words = [sys.executable, "-m", "vsprof.runner.cli", "run", str(ONE_RUN), "--inventory", str(inventory)]
    running = subprocess.Popen(words, env={**os.environ, "VSPROF_RESULTS": str(results)}, stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 300
    while len(ours(channel)) < 4 and running.poll() is None and time.monotonic() < end:
        time.sleep(0.5)
    assert len(ours(channel)) >= 4
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def test_a_killed_runner_leaves_nothing_for_more_than_a_minute(inventory, channel, tmp_path):
    killed(inventory, channel, tmp_path)
    end = time.monotonic() + 60
    while ours(channel) and time.monotonic() < end:
        time.sleep(1)
    assert ours(channel) == []


def test_what_a_killed_runner_left_can_be_ended(inventory, channel, tmp_path):
    killed(inventory, channel, tmp_path)
    print(vsprof("clean", "--inventory", str(inventory)))
    assert ours(channel) == []
    assert "bare: nothing was left" in vsprof("clean", "--inventory", str(inventory))


def test_after_a_reboot_it_all_stands(server, inventory):
    first = server.channel()
    boot = first.run("cat /proc/sys/kernel/random/boot_id", timeout=60, check=True).stdout
    first.run("systemctl reboot --no-block", timeout=60, check=False)
    first.close()
    time.sleep(20)
    again = server.channel()
    assert (
        again.run("systemctl is-system-running --wait; cat /proc/sys/kernel/random/boot_id", timeout=300, check=True).stdout
        != f"running\n{boot}"
    )
    assert prepared(again) == PREPARED
    again.close()
    assert "bare: nothing changed" in vsprof("host", "--inventory", str(inventory))


def test_taken_back_nothing_is_left(state, inventory, channel):
    assert "bare: taken back" in vsprof("unhost", "--inventory", str(inventory))
    now = look(channel)
    # /run is empty at the next boot.
    left = {part: sorted(set(now[part]) ^ set(state[part])) for part in state if part != "# run"}
    assert not any(left.values()), left


def test_taking_back_again_finds_nothing(inventory):
    assert "bare: nothing to take back" in vsprof("unhost", "--inventory", str(inventory))
