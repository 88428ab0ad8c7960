# SPDX-License-Identifier: GPL-2.0-or-later
"""`make host` on a bare Debian server, as its administrator sees it: prepared, prepared again, measured on, rebooted, taken back.

The tests of this file are steps on one server, in this order. They take long, for the server is emulated: `make test-host` runs them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from testbeds.emulator import bare_server
from testbeds.ssh import Channel

pytestmark = [
    pytest.mark.lab,
    pytest.mark.usefixtures("lab_can_run"),
    pytest.mark.timeout(3600),
    pytest.mark.skipif("VSPROF_TEST_HOST" not in os.environ, reason="prepares a whole server (20 minutes): `make test-host` runs it"),
]
ONE_RUN = Path(__file__).with_name("one_run.yaml")
PREPARE_SECONDS = 2400

# Everything that preparing can change, but for what any use of a server changes: logs, caches, indexes, copies that dpkg keeps of its own
# lists, and what systemd and SSH write down of units and sessions.
STATE = r"""
export LC_ALL=C
echo "# packages"; dpkg-query -W -f '${binary:Package} ${Version} ${db:Status-Status}\n' | grep -v not-installed; apt-mark showmanual
echo "# files"; find /etc /root /home /usr /opt /srv -xdev \( -type f -o -type l \) ! -path /etc/.pwd.lock ! -name '*-' ! -name '*.pyc' \
    ! -path /etc/ld.so.cache -printf '%M %u %g %s %p %l\n' | sort -k5
echo "# contents"; find /etc -xdev -type f ! -path /etc/.pwd.lock ! -name '*-' ! -path /etc/ld.so.cache -exec sha256sum {} + | sort -k2
echo "# folders"; find /etc /var/lib /var/log /var/cache /root /tmp -xdev -maxdepth 1 -type d | grep -v -e systemd-private | sort
echo "# users"; getent passwd; getent group
echo "# settings"
for name in kernel/perf_event_paranoid kernel/kptr_restrict kernel/nmi_watchdog vm/max_map_count vm/nr_hugepages; do
    echo "$name = $(cat /proc/sys/$name)"
done
echo "# units"; systemctl list-unit-files --no-legend --no-pager | sort
systemctl list-units --state=running,waiting,listening --plain --no-legend --no-pager --type=service,timer,socket | awk '{print $1}' | grep -v -e ^user -e ^run- | sort
echo "# modules"; cut -d' ' -f1 /proc/modules | sort
echo "# boot loader"; sha256sum /boot/grub/grub.cfg
echo "# links"; ip -brief link | awk '{print $1}'
echo "# run"; ls /run
"""


@pytest.fixture(scope="module")
def server() -> Iterator[bare_server.Server]:
    with bare_server.running() as one:
        one.channel().close()
        yield one


@pytest.fixture(scope="module")
def inventory(server: bare_server.Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server as a user would list it."""
    folder = tmp_path_factory.mktemp("inventory")
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{server.port} {server.installed.host_key}")
    ssh = f"-F none -o IdentitiesOnly=yes -o IdentityAgent=none -o UserKnownHostsFile={known}"
    (folder / "servers.ini").write_text(
        f"bare ansible_host=127.0.0.1 ansible_port={server.port} ansible_user=root"
        f" ansible_ssh_private_key_file={server.installed.key} ansible_ssh_common_args='{ssh}'"
        " server_kernel_arguments='vsprof.asked=1'\n"
    )
    return folder / "servers.ini"


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


def look(channel: Channel) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in channel.run(STATE, timeout=600, check=True).stdout.splitlines():
        if line.startswith("# "):
            part = found.setdefault(line, [])
        else:
            part.append(line)
    return found


def vsprof(*words: str, seconds: float = PREPARE_SECONDS) -> str:
    began = time.monotonic()
    ran = subprocess.run([sys.executable, "-m", "runner.cli", *words], capture_output=True, text=True, timeout=seconds, check=False)
    print(
        f"\n$ vsprof {' '.join(words)}   ({time.monotonic() - began:.0f} s, exit status {ran.returncode})\n{ran.stdout}{ran.stderr[-3000:]}"
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def prepared(channel: Channel) -> list[str]:
    return channel.run(
        "cat /proc/sys/vm/nr_hugepages; ls -d /sys/module/openvswitch /sys/module/vhost_net /dev/kvm; systemctl is-active apt-daily.timer;"
        " systemctl is-enabled openvswitch-switch; ls /var/lib/vsprof/guest/guest.cpio /usr/local/bin/vhost-switch; cat /proc/sys/kernel/perf_event_paranoid",
        timeout=60,
        check=False,
    ).stdout.split()


PREPARED = [
    "1024",
    "/dev/kvm",
    "/sys/module/openvswitch",
    "/sys/module/vhost_net",
    "inactive",
    "masked",
    "/usr/local/bin/vhost-switch",
    "/var/lib/vsprof/guest/guest.cpio",
    "-1",
]


def test_a_bare_server_is_not_measured_on(state, inventory):
    ran = subprocess.run(
        [sys.executable, "-m", "runner.cli", "run", str(ONE_RUN), "--inventory", str(inventory)],
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
    assert after["# links"] == before["# links"]
    assert after["# run"] == before["# run"]
    assert after["# units"] == before["# units"]


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
