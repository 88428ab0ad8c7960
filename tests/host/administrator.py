# SPDX-License-Identifier: GPL-2.0-or-later
"""A bare server as its administrator sees it, for the tests that prepare it and take it back."""

import subprocess
import sys
import time
from pathlib import Path

from vsprof.testbeds.emulator import bare_server
from vsprof.testbeds.ssh import Channel

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


def inventory(server: bare_server.Server, folder: Path, variables: str = "") -> Path:
    """The server as a user would list it."""
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{server.port} {server.installed.host_key}")
    ssh = f"-F none -o IdentitiesOnly=yes -o IdentityAgent=none -o UserKnownHostsFile={known}"
    (folder / "servers.ini").write_text(
        f"bare ansible_host=127.0.0.1 ansible_port={server.port} ansible_user=root"
        f" ansible_ssh_private_key_file={server.installed.key} ansible_ssh_common_args='{ssh}' {variables}\n"
    )
    return folder / "servers.ini"


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
    ran = subprocess.run([sys.executable, "-m", "vsprof.runner.cli", *words], capture_output=True, text=True, timeout=seconds, check=False)
    print(
        f"\n$ vsprof {' '.join(words)}   ({time.monotonic() - began:.0f} s, exit status {ran.returncode})\n{ran.stdout}{ran.stderr[-3000:]}"
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
