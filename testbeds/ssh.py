# SPDX-License-Identifier: GPL-2.0-or-later
"""The control channel to a host over SSH: one connection (OpenSSH's ControlMaster) that every command shares."""

import contextlib
import os
import selectors
import shlex
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from vsprof.testbeds import messages, processes
from vsprof.testbeds.base import Completed
from vsprof.testbeds.patience import HeldUp, Patience

CONNECT_SECONDS = 5
LEAVE_SECONDS = 5
PULL_SECONDS = 300
GLANCE_S = 1.0
LEAST_WAIT_S = 0.05
"""Less that is left of a time-out is none."""


@dataclass
class Channel:
    """A connection to ``user@host``; ``folder`` takes its sockets. All commands run through the user's login shell."""

    destination: str
    port: int
    key: Path
    host_key: str
    folder: Path
    held_up: HeldUp = dict
    doing: Callable[[], str] = str
    """What an emulator does at this moment, for the error of a host that does not answer."""
    _forwarded: dict[str, Path] = field(default_factory=dict)
    _master: subprocess.Popen[bytes] | None = None

    def open(self, seconds: float, still_worth_it: Callable[[], None] = lambda: None) -> None:
        """Connect, trying again until ``seconds`` are over or ``still_worth_it`` raises.

        Raises ``VsprofError`` with SSH's last words.
        """
        known = self.folder / "known_hosts"
        known.write_text(f"[{self.destination.rpartition('@')[2]}]:{self.port} {self.host_key}")
        patience = Patience(seconds, self.held_up)
        while True:
            still_worth_it()
            if (failed := self._connect(15)) is None:
                return
            if patience.over():
                raise messages.no_control_channel(seconds, failed)
            time.sleep(0.1)

    def _connect(self, seconds: float) -> str | None:
        """Try once to make the connection that all others share. None, or SSH's words where it failed.

        It is this process's child and ends with it. One in the background (``-f``) would outlive a runner that is killed.
        """
        with tempfile.TemporaryFile() as words:
            self._master = subprocess.Popen(
                self._command(["-M", "-N"]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=words, start_new_session=True,
                preexec_fn=processes.dying_with_parent(),
            )  # fmt: skip
            patience = Patience(seconds, self.held_up)
            while self._master.poll() is None and not patience.over():
                # A machine that is too busy to answer is asked again.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    if self._ssh(["-O", "check"], timeout=5).returncode == 0:
                        return None
                time.sleep(0.05)
            self._end_master()
            words.seek(0)
            return words.read().decode(errors="replace").strip() or f"no answer in {seconds:.0f} s"

    def _end_master(self) -> None:
        if self._master is not None:
            self._master.kill()
            self._master.wait()
            self._master = None

    def run(self, command: str, *, timeout: float, check: bool, stdin: bytes | None = None) -> Completed:
        """Run a shell command. Raises ``RunFailed`` on time-out, lost connection, or (with ``check``) failure."""
        try:
            ran = self._ssh([], command, stdin=stdin, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise messages.command_timed_out(command, timeout, self.doing()) from error
        done = Completed(command, ran.returncode, ran.stdout, ran.stderr)
        # 255 is SSH's own failure; no command here ends with it.
        if done.status == 255 or (check and done.status != 0):
            raise messages.command_failed(command, done.status, done.stderr or done.stdout)
        return done

    def push(self, content: str | bytes, path: str) -> None:
        data = content.encode() if isinstance(content, str) else content
        self.run(f"cat > {shlex.quote(path)}", timeout=120, check=True, stdin=data)

    def pull(self, path: str, to: Path) -> None:
        to.mkdir(parents=True, exist_ok=True)
        at, name = str(Path(path).parent), Path(path).name
        # Through a file, so that either end can fail, or hang, and one knows which.
        with tempfile.TemporaryFile() as archive:
            command = f"tar -C {shlex.quote(at)} -cf - {shlex.quote(name)}"
            try:
                sent = ran(self._command([], command), None, PULL_SECONDS, self.held_up, archive)
            except subprocess.TimeoutExpired as error:
                raise messages.command_timed_out(command, PULL_SECONDS, self.doing()) from error
            if sent.returncode:
                raise messages.command_failed(command, sent.returncode, sent.stderr.decode(errors="replace"))
            archive.seek(0)
            try:
                with tarfile.open(fileobj=archive, mode="r:") as packed:
                    # Later Pythons warn unless they are told what to trust; before 3.11.4 there was nobody to tell.
                    packed.extraction_filter = lambda member, _: member
                    packed.extractall(to, members=[_harmless(member) for member in packed])
            except tarfile.TarError as error:
                raise messages.command_failed(command, 0, f"what arrived is no archive: {error}") from error

    def socket(self, path: str) -> Path:
        """Forward a local Unix socket to the host's socket ``path``."""
        if path not in self._forwarded:
            local = self.folder / f"s{len(self._forwarded)}"
            done = self._ssh(["-O", "forward", "-L", f"{local}:{path}"], timeout=15)
            if done.returncode != 0:
                raise messages.command_failed(f"forward {path}", done.returncode, done.stderr)
            self._forwarded[path] = local
        return self._forwarded[path]

    def shell(self) -> "Shell":
        """A shell that stays: a line costs it a few milliseconds, where a command of its own costs a slow host most of a second."""
        return Shell(self._command([], "bash"), self.held_up)

    def close(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            self._ssh(["-O", "exit"], timeout=5)
        self._end_master()
        self._forwarded.clear()

    def _ssh(self, options: list[str], *command: str, stdin: bytes | None = None, timeout: float) -> subprocess.CompletedProcess[str]:
        done = ran(self._command(options, *command), stdin, timeout, self.held_up)
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )

    def _command(self, options: list[str], *command: str) -> list[str]:
        return [
            "ssh", *self._options(), "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}",
            "-o", f"ControlPath={self.folder / 'ssh'}", "-o", "ServerAliveInterval=20", "-o", "ServerAliveCountMax=15",
            *options, self.destination, *command,
        ]  # fmt: skip

    def _options(self) -> list[str]:
        """How the host is found, and whom to trust."""
        return [
            # No configuration file: a user's own settings for all hosts (a proxy, an agent) must not matter here.
            "-F", "none", "-o", "LogLevel=ERROR", "-p", str(self.port),
            "-i", str(self.key), "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
            "-o", f"UserKnownHostsFile={self.folder / 'known_hosts'}", "-o", "GlobalKnownHostsFile=/dev/null",
            "-o", "StrictHostKeyChecking=yes",
        ]  # fmt: skip


def ran(
    words: list[str], stdin: bytes | None, timeout: float, held_up: HeldUp, to: IO[bytes] | int = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    """``subprocess.run``, with a time-out that is a ``Patience``. ``to``: takes its standard output."""
    patience, left = Patience(timeout, held_up), timeout
    given = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    with subprocess.Popen(words, stdin=given, stdout=to, stderr=subprocess.PIPE) as process:
        try:
            while True:
                try:
                    printed, said = process.communicate(stdin, left)
                    return subprocess.CompletedProcess(words, process.returncode, printed, said)
                except subprocess.TimeoutExpired:
                    # It has kept what is still to be sent, and takes no other.
                    stdin = None
                if (left := patience.left()) < LEAST_WAIT_S:
                    raise subprocess.TimeoutExpired(words, timeout)
        except BaseException:
            process.kill()
            raise


def _harmless(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A file or folder that lies below the folder it is unpacked into. Raises ``TarError`` for any other: a host sends what it likes."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
        raise tarfile.TarError(f"it has {member.name!r}, which is no file or folder of its own")
    # No more than that: what its owner and its rights are elsewhere means nothing here.
    member.mode = 0o755 if member.isdir() else 0o644
    return member


class Shell:
    """A shell at the other end of a connection, asked line by line."""

    def __init__(self, command: list[str], held_up: HeldUp = dict) -> None:
        self._held_up = held_up
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(
        self, line: str, seconds: float, goes_on: Callable[[], bool] = lambda: False, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        """Run ``line`` and wait for its end; ``meanwhile`` is called about once a second.

        Raises ``RunFailed`` when the line fails, the shell is gone, or the line takes longer than ``seconds``; where it ``goes_on`` then,
        it may take as long once more.
        """
        assert self._process.stdin is not None
        try:
            # What the line prints is no answer.
            self._process.stdin.write(f"{{ {line}\n}} >&2\necho $?\n".encode())
            self._process.stdin.flush()
        except OSError as error:
            raise messages.command_failed(line, 255, str(error)) from error
        status = self._answer(line, seconds, goes_on, meanwhile)
        if status != "0":
            raise messages.command_failed(line, int(status or 255), "")

    def tell(self, line: str) -> None:
        """Send a line that has no answer; a shell that is gone does not hear it."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def leave(self) -> None:
        """Close it when it has ended by itself, which it is given some seconds for."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LEAVE_SECONDS)
        self.close()

    def close(self) -> None:
        """Safe to call twice."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            # A line that it did not read is nobody's.
            with contextlib.suppress(OSError):
                stream.close()

    def _answer(self, line: str, seconds: float, goes_on: Callable[[], bool], meanwhile: Callable[[], None]) -> str:
        assert self._process.stdout is not None
        patience, said = Patience(seconds, self._held_up), b""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            while not said.endswith(b"\n"):
                if not waiting.select(max(0, min(GLANCE_S, patience.left()))):
                    meanwhile()
                    if not patience.over():
                        continue
                    if not goes_on():
                        raise messages.command_timed_out(line, seconds)
                    patience = Patience(seconds, self._held_up)
                    continue
                if not (more := os.read(self._process.stdout.fileno(), 4096)):
                    break
                said += more
        return said.decode(errors="replace").strip()
