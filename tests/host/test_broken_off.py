# SPDX-License-Identifier: GPL-2.0-or-later
"""`make host` broken off at ten random moments, with an administrator's own things there before, and others that came meanwhile:
`make unhost` takes back what vsprof did, and nothing else. VSPROF_TEST_SEED=number tries the same moments again.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import administrator
import pytest
from administrator import look, vsprof

from vsprof.testbeds.emulator import bare_server
from vsprof.testbeds.ssh import Channel

pytestmark = [
    pytest.mark.lab,
    pytest.mark.usefixtures("lab_can_run"),
    pytest.mark.timeout(3600),
    pytest.mark.skipif("VSPROF_TEST_HOST" not in os.environ, reason="prepares a server ten times (80 minutes): `make test-host` runs it"),
]
SEED = int(os.environ.get("VSPROF_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
TIMES = 10
STEPS = 50
"""Lines that `vsprof host` prints on the way, about."""
WITHIN_SECONDS = 25
"""How long after a line it may be broken off: installing takes long, and prints nothing."""
WAYS = ("runner", "power", "server")
"""Who dies: the runner, at once; the server, by its power; what vsprof runs on the server, as if memory were short."""


@dataclass(frozen=True)
class Trap:
    """Something of an administrator's: how it comes, that it is still there, and how it goes."""

    name: str
    come: str
    there: str
    go: str


APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends"
BEFORE = [
    Trap("a setting", "echo vm.nr_hugepages=8 > /etc/sysctl.d/10-own.conf; echo 8 > /proc/sys/vm/nr_hugepages",
         "grep -q =8 /etc/sysctl.d/10-own.conf", ""),
    Trap("a file where ours goes", "echo own > /usr/local/bin/vhost-switch; chmod 711 /usr/local/bin/vhost-switch",
         "grep -q own /usr/local/bin/vhost-switch", ""),
    Trap("a unit of its own", "cp /usr/lib/systemd/system/fstrim.timer /etc/systemd/system/; systemctl daemon-reload",
         "test -f /etc/systemd/system/fstrim.timer", ""),
    Trap("a user", "useradd --create-home own; echo work > /home/own/work", "grep -q work /home/own/work; id own", ""),
]  # fmt: skip
# An administrator waits for another's apt to end; and whose apt complains of something broken off does first what apt says.
WAITED = "import fcntl; fcntl.lockf(open('/var/lib/dpkg/lock-frontend', 'w'), fcntl.LOCK_EX)"
FIXED = f'python3 -c "{WAITED}"; dpkg --configure -a; {APT} -f install;'
MEANWHILE = [
    Trap("a user", "useradd --create-home late; echo work > /home/late/work", "grep -q work /home/late/work", "userdel --remove late"),
    Trap("a daemon's user", "useradd --system late-daemon", "id late-daemon", "userdel late-daemon"),
    Trap("a program", "echo late > /usr/local/bin/late", "grep -q late /usr/local/bin/late", "rm /usr/local/bin/late"),
    Trap("a setting", "echo kernel.sysrq=1 > /etc/sysctl.d/95-late.conf; cp /proc/sys/vm/max_map_count /root/late; echo 777777 > /proc/sys/vm/max_map_count",
         "test -e /etc/sysctl.d/95-late.conf; grep -q 777777 /proc/sys/vm/max_map_count", "rm /etc/sysctl.d/95-late.conf; cp /root/count /proc/sys/vm/max_map_count; rm /root/late"),
    Trap("a package that is also ours", f"{FIXED} {APT} install tcpdump", "tcpdump --version; id tcpdump",
         f"{APT} purge --autoremove tcpdump"),
    Trap("a file in a folder that a package of ours made", "mkdir -p /etc/network/own; echo late > /etc/network/own/late",
         "grep -q late /etc/network/own/late", "rm -r /etc/network/own; rmdir /etc/network"),
]  # fmt: skip
DATABASE = Trap(
    "a database",
    f'{FIXED} {APT} install postgresql && su postgres -c \'psql -c "create table late (n int)" -c "insert into late values (42)"\'',
    "su postgres -c 'psql -A -t -c \"select n from late\"' | grep -q 42",
    # It leaves its logs, locale and user to whoever asks for them.
    f"{APT} purge --autoremove 'postgresql*'; rm -rf /var/lib/postgresql /var/log/postgresql /etc/postgresql*; userdel postgres",
)


@pytest.fixture(scope="module")
def server() -> Iterator[bare_server.Server]:
    print(f"\nVSPROF_TEST_SEED={SEED}")
    with bare_server.running() as one:
        with connected(one) as channel:
            channel.run("cp /proc/sys/vm/max_map_count /root/count; apt-get -q update && update-grub", timeout=900, check=True)
            for trap in BEFORE:
                channel.run(trap.come, timeout=300, check=True)
            # An administrator's own purge leaves something, too, such as a library that was upgraded: that is there from the first.
            for step in (DATABASE.come, DATABASE.go):
                channel.run(step, timeout=1800, check=True)
        yield one


@contextlib.contextmanager
def connected(server: bare_server.Server) -> Iterator[Channel]:
    channel = server.channel()
    try:
        yield channel
    finally:
        channel.close()


def broken_off(server: bare_server.Server, inventory: Path, way: str, step: int, seconds: float) -> str:
    """Start `vsprof host`, and break it off ``seconds`` after its ``step``-th line; returns that line."""
    words = [sys.executable, "-m", "vsprof.runner.cli", "host", "--inventory", str(inventory)]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
    line = ""
    for _ in range(step):
        line = next(iter(running.stderr.readline, ""), line)
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.wait(seconds)
        return f"{line.strip()}, the end"
    if way == "power":
        server.cut_power()
    if way == "server":
        with connected(server) as channel:
            # In brackets, for this very command has these words, too.
            channel.run("pkill -KILL -f '[h]ost/ledger|[a]pt-get|[d]pkg|[a]nsible'; true", timeout=60, check=True)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    if way == "power":
        time.sleep(5)
    return line.strip()


@pytest.mark.parametrize("number", range(TIMES))
def test_only_what_was_done_is_taken_back(server, tmp_path, number):
    chosen = random.Random(f"{SEED} {number}")
    way, step = WAYS[number % len(WAYS)], chosen.randrange(STEPS * number // TIMES, STEPS * (number + 1) // TIMES) + 1
    traps = [*MEANWHILE, *([DATABASE] if number in (4, 8) else [])]
    inventory = administrator.inventory(server, tmp_path)
    with connected(server) as channel:
        before = look(channel)
    seconds = chosen.uniform(0, WITHIN_SECONDS)
    line = broken_off(server, inventory, way, step, seconds)
    print(f"\n{number}: {way} died {seconds:.0f} s after line {step}: {line}")
    with connected(server) as channel:
        for trap in traps:
            channel.run(trap.come, timeout=1800, check=True)
        if number == TIMES - 1:
            vsprof("host", "--inventory", str(inventory))
        would = vsprof("unhost", "--check", "--inventory", str(inventory))
        assert "nothing was changed" in would or "nothing to take back" in would
        vsprof("unhost", "--inventory", str(inventory))
        lost = [trap.name for trap in [*BEFORE, *traps] if channel.run(f"set -e; {trap.there}", timeout=300, check=False).status]
        assert not lost
        for trap in traps:
            channel.run(trap.go, timeout=900, check=True)
        now = look(channel)
    left = {part: sorted(set(now[part]) ^ set(before[part])) for part in before if part not in ("# run", "# modules")}
    assert not any(left.values()), {part: lines for part, lines in left.items() if lines}
