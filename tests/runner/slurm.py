# SPDX-License-Identifier: GPL-2.0-or-later
"""A Slurm cluster of its own for a test: a controller and some nodes as processes of this machine, which listen on loopback alone.

Its slurm.conf is where every program of Slurm looks for it, in a mount namespace that nobody else sees.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from vsprof.runner import sweep

NEEDED = ("slurmctld", "slurmd", "sbatch", "squeue", "munged", "nsenter", "unshare")
CONF = """
ClusterName=vsprof
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
PATIENCE_S = 60


def lacking() -> str | None:
    """Why there can be no cluster here, or None."""
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian's slurmctld, slurmd, slurm-client, munge)"
    if not Path("/etc/slurm").is_dir():
        return "there is no folder /etc/slurm, over which the cluster's own could be mounted"
    return None if os.geteuid() == 0 else "Slurm's daemons take root"


class Slurm:
    """Use as a context."""

    def __init__(self, folder: Path, nodes: int) -> None:
        """``folder``: of a short path, for it holds sockets."""
        self.folder, self.nodes = folder, [f"n{number}" for number in range(1, nodes + 1)]
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        ports = _free_ports(len(self.nodes) + 1)
        (self.folder / "state").mkdir()
        for node in self.nodes:
            (self.folder / f"spool-{node}").mkdir()
        conf = CONF.format(
            host=socket.gethostname(),
            folder=self.folder,
            nodes=len(self.nodes),
            port=ports,
            first=ports + 1,
            last=ports + len(self.nodes),
            # Room for one job a node.
            cpus=sweep.CPUS,
            memory=sweep.MEMORY_MIB,
        )
        (self.folder / "slurm.conf").write_text(conf)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        script = (
            f"mount --make-rprivate / && mount -t tmpfs slurm /etc/slurm && cp {self.folder}/slurm.conf /etc/slurm && exec sleep infinity"
        )
        self._namespace = self._start(["unshare", "--mount", "sh", "-c", script])
        _wait(lambda: self.run("test", "-e", "/etc/slurm/slurm.conf").returncode == 0)
        files = [f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        self._inside(["munged", "--foreground", "--force", f"--socket={self.folder}/munge.sock", *files])
        _wait((self.folder / "munge.sock").exists)
        self.controller = self._inside(["slurmctld", "-D"])
        for node in self.nodes:
            self._inside(["slurmd", "-D", "-N", node])
        _wait(lambda: self.run("sinfo", "--noheader", "--states=idle", "--format=%D").stdout.strip() == str(len(self.nodes)))
        return self

    def __exit__(self, *_: object) -> None:
        self.run("scancel", "--user=root")
        for process in reversed(self._started):
            process.terminate()
        for process in self._started:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def enter(self) -> list[str]:
        """The begin of a command line that runs inside."""
        return ["nsenter", f"--target={self._namespace.pid}", "--mount", f"--wd={os.getcwd()}", "--", "env", "-u", "SLURM_CONF"]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self.enter(), *words], capture_output=True, text=True, check=False, timeout=60)

    def jobs(self, state: str) -> list[str]:
        """The numbers of the jobs in a state, such as RUNNING."""
        return self.run("squeue", "--noheader", f"--states={state}", "--format=%i").stdout.split()

    def saved(self) -> None:
        """Wait until the controller has written down what it knows now, which it does every few seconds."""
        begin = time.time()
        # Without a change it writes nothing.
        self.run("scontrol", "update", "partitionname=all", "maxtime=infinite")
        _wait(lambda: (self.folder / "state/job_state").stat().st_mtime > begin)

    def restart_controller(self, forgets: bool = False) -> None:
        """Kill it, as a crash would, and start another, which finds what the first had saved; or nothing, if it ``forgets``."""
        self.controller.send_signal(signal.SIGKILL)
        self.controller.wait()
        if forgets:
            shutil.rmtree(self.folder / "state")
            (self.folder / "state").mkdir()
            # Its nodes do not start a job of a number that they have seen.
            self.run("sh", "-c", "echo FirstJobId=1000 >> /etc/slurm/slurm.conf")
        self.controller = self._inside(["slurmctld", "-D"])
        _wait(lambda: self.run("scontrol", "ping").stdout.count("is UP") == 1)

    def _inside(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        return self._start([*self.enter(), *words])

    def _start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        self._started.append(subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet))
        return self._started[-1]


def _free_ports(number: int) -> int:
    """The first of so many ports in a row that nobody listens on."""
    # Two processes that look at the same time must not find the same ones.
    for first in range(26817 + os.getpid() % 500 * 50, 60000, 50):
        taken = []
        try:
            for port in range(first, first + number):
                taken.append(socket.socket())
                taken[-1].bind(("127.0.0.1", port))
        except OSError:
            continue
        finally:
            for one in taken:
                one.close()
        return first
    raise AssertionError("no free ports")


def _wait(done) -> None:
    until = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < until, "the cluster does not come up: see its logs"
        time.sleep(0.1)
