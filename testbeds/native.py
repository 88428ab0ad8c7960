# SPDX-License-Identifier: GPL-2.0-or-later
"""The testbed ``native``: this very host, its processor and its kernel, with the lab's tree as root.

Everything runs in a network and a mount namespace of its own, out of the lab's tree: the same binaries as in the lab, and no
interface, socket or file of the host's own switches is touched. A keeper (private.sh) holds the namespaces. When the runner ends, also
by SIGKILL, the keeper ends all processes, gives the hugepages back, and goes; the kernel then takes the namespaces away.

It takes root. Processes keep their ids of the host, so that perf and eBPF know them by the same ids.
"""

import fcntl
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from vsprof.terms import places
from vsprof.terms.placement import PAIR, CpuPlan, Duties
from vsprof.testbeds import facts, messages, modules, processes, topology, tuning
from vsprof.testbeds.base import Completed, Process, Testbed
from vsprof.testbeds.emulator import image as images
from vsprof.testbeds.emulator import needs

MODULES = ("openvswitch", "vhost_net")
"""Of the kernel, for kernel OVS and its virtual machines."""
KEEPER = Path(__file__).with_name("private.sh")
SHARED = (str(places.BUILD), "/opt")
"""What vsprof and others installed on this host beside its packages: toplev, VTune."""
FOLDERS = Path("/run/vsprof-native")
"""The folders of the testbeds that are open; of one that nobody keeps, the next ``open`` or ``vsprof clean`` takes the rest away."""
LOCK = FOLDERS.with_suffix(".lock")
"""Held by the runner and its keeper. Two at once would each put back the hugepages that the other had taken."""
LOCK_SECONDS = 5
"""How long to wait for it: a keeper whose runner was killed is just setting everything back."""
HUGEPAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
NEEDED_HUGEPAGES = 1024
"""Of 2 MiB: OVS-DPDK's 1 GiB, two endpoints' 512 MiB, and as much again in reserve for pieces that don't fit."""
SWITCH_HUGEPAGES, GUEST_HUGEPAGES = 512, 128
"""What of it is a DPDK switch's; and what each further endpoint takes."""
OPEN_SECONDS = 30
STOP_SECONDS = 5
FREEZE_SECONDS = 10
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def needed_hugepages(endpoints: int, *, dpdk: bool) -> int:
    """Of 2 MiB, for so many endpoints, and a switch that uses DPDK, or one that does not."""
    return NEEDED_HUGEPAGES + GUEST_HUGEPAGES * max(0, endpoints - PAIR.endpoints) - (0 if dpdk else SWITCH_HUGEPAGES)


class NativeProcess(Process):
    """A process on this host, in the testbed's namespaces."""

    def __init__(self, name: str, child: subprocess.Popen[bytes], log: Path) -> None:
        self.name, self._child, self._log = name, child, log

    @property
    def pid(self) -> int:
        return self._child.pid

    def alive(self) -> bool:
        return self._child.poll() is None

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-20000:] if self._log.exists() else ""

    def stop(self) -> None:
        if self.alive():
            self._child.terminate()
        try:
            self._child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


class Native(Testbed):
    """This host, in namespaces of its own; nothing of it outlives ``close``."""

    name: ClassVar[str] = "native"
    takes_turns: ClassVar[bool] = True

    def __init__(
        self,
        cpus: int | None = None,
        say: Callable[[str], None] = lambda text: None,
        plugins: Sequence[Path] = (),
        tune: bool = False,
        beside: "Native | None" = None,
    ) -> None:
        """``cpus`` is for emulated hosts: this one has what it has. ``tune``: write the settings of ``tuning``, and put them back.
        ``beside``: another one of this process, which is opened before and closed after this one. Each has namespaces and processes of
        its own, on the same CPUs; one whose turn it is not can be frozen."""
        self._say, self._tune, self._beside = say, tune, beside
        self._folder: Path | None = None
        self._keeper: subprocess.Popen[str] | None = None
        self._hugepages_found = 0
        self._affinity: set[int] = set()
        self._settings: list[tuning.Setting] = []
        self._now: list[tuning.Setting] = []
        self._lock: int | None = None
        self._frozen = False

    def open(self) -> None:
        if os.geteuid() != 0:
            raise messages.needs_root()
        beside = self._beside
        self._lock = os.dup(beside._lock) if beside and beside._lock is not None else _take_lock()
        if self._lock is None:
            raise messages.in_use()
        if not beside:
            _remove_stale()
        image = images.get(self._say)
        # The other one has sent this process to a CPU of its own.
        self._available = beside._available if beside else topology.cpus(_here(topology.COMMAND))
        self._plan, self._shared = topology.plan(self._available)
        _groups()
        FOLDERS.mkdir(exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix="t", dir=FOLDERS))
        self._cgroup = _cgroup(self._folder.name)
        # What must be undone is listed before it is done: nothing between the two may leave the host changed.
        self._hugepages_found = int(HUGEPAGES.read_text()) if HUGEPAGES.exists() else 0
        # What a case needs is not known yet: there are some with many CPUs.
        _, *measured = (cpu.number for cpu in topology.choose(self._available, len(self._available)))
        self._settings = tuning.look(measured)
        # Of several, the first one alone knows how many hugepages there were. Those in use by another then go with it.
        pages = [] if beside else [f"echo {self._hugepages_found} > {HUGEPAGES}"]
        undo = [*pages, _unload(), *(tuning.undo(self._settings) if self._tune else [])]
        (self._folder / "undo").write_text("\n".join(undo) + "\n")
        self._keep(image.tree)
        self._take_hugepages(NEEDED_HUGEPAGES)
        if self._tune:
            tuning.write(self._settings)
        self._now = tuning.look(measured)
        self._affinity = os.sched_getaffinity(0)
        # What vsprof itself does must not disturb the CPUs that are measured.
        os.sched_setaffinity(0, {self._plan.housekeeping})

    def close(self) -> None:
        if self._affinity:
            os.sched_setaffinity(0, self._affinity)
            self._affinity = set()
        if self._keeper is not None:
            assert self._keeper.stdin is not None
            self._keeper.stdin.close()
            try:
                self._keeper.wait(OPEN_SECONDS)
            except subprocess.TimeoutExpired:
                self._keeper.kill()
                self._keeper.wait()
            self._keeper = None
        if self._folder is not None and self._folder.exists():
            _undo(self._folder)
        self._folder = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @classmethod
    def machines(cls, options: Mapping[str, Any]) -> list[str]:
        return ["this host"]

    @classmethod
    def needs(cls) -> str | None:
        """Why this host can't be a testbed at all, or None."""
        return None if os.geteuid() == 0 else str(messages.needs_root())

    @classmethod
    def lacks(cls) -> str | None:
        """What stands against a comparison of both kinds of Open vSwitch with virtual machines on this host, or None. Changes nothing."""
        if why := cls.needs():
            return why
        # Whether the module could be loaded is asked without loading it.
        missing = [module for module in MODULES if not _loaded(module) and not _loadable(module)]
        return messages.kernel_lacks(" and no ".join(missing), "") if missing else cls().guests_boot()

    @property
    def cpus(self) -> int:
        return os.cpu_count() or 1

    def plan(self, duties: Duties = PAIR) -> CpuPlan:
        return self._plan if duties == PAIR else topology.plan(self._available, duties)[0]

    def facts(self) -> dict[str, Any]:
        return {
            **facts.of(self),
            "image": images.name(),
            "hugepages_2mib_found": self._hugepages_found,
            "cpus_shared_by": self._shared,
            "tuning": [{**asdict(found), "now": now.seen} for found, now in zip(self._settings, self._now, strict=True)],
        }

    def findings(self) -> list[str]:
        shared = [messages.cpu_shared(cpu, duties) for cpu, duties in self._shared.items()]
        say = messages.not_settable if self._tune else messages.not_tuned
        return [*shared, *(say(one.what, one.seen, one.wanted) for one in tuning.differing(self._now))]

    def guests_boot(self) -> str | None:
        image = images.get(self._say)
        share = image.tree / "usr/share"
        qemu = [*image.program("qemu-system-x86_64"), "-L", str(share / "qemu"), "-L", str(share / "seabios")]
        boots, seen = needs.kvm_boots(image.kernel, qemu)
        return None if boots else seen

    def run(self, command: str, *, timeout: float = 60, check: bool = True) -> Completed:
        try:
            ran = subprocess.run(
                self._inside("bash", "-c", command), capture_output=True, text=True, errors="replace", timeout=timeout, check=False,
                stdin=subprocess.DEVNULL, env=_environment({}), preexec_fn=self._joining(),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise messages.command_timed_out(command, timeout) from None
        done = Completed(command, ran.returncode, ran.stdout, ran.stderr)
        if check and done.status != 0:
            raise messages.command_failed(command, done.status, done.stderr or done.stdout)
        return done

    def start(self, name: str, command: str, *, cpus: Sequence[int], environment: Mapping[str, str] = {}) -> Process:
        log = self._path(f"/run/vsprof-{name}.log")

        join = self._joining()

        def become() -> None:
            join()
            os.sched_setaffinity(0, cpus)

        with log.open("ab") as out:
            child = subprocess.Popen(
                self._inside(*shlex.split(command)), stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=_environment(environment),
                preexec_fn=become, start_new_session=True,
            )  # fmt: skip
        return NativeProcess(name, child, log)

    def freeze(self) -> None:
        """As of every testbed. A command that is run meanwhile raises ``RunFailed``."""
        self._set_frozen(True)

    def thaw(self) -> None:
        self._set_frozen(False)

    def _set_frozen(self, frozen: bool) -> None:
        end = time.monotonic() + FREEZE_SECONDS
        try:
            (self._cgroup / "cgroup.freeze").write_text(f"{frozen:d}")
            self._frozen = frozen
            while f"frozen {frozen:d}" not in (self._cgroup / "cgroup.events").read_text():
                if time.monotonic() > end:
                    raise messages.not_frozen(frozen, FREEZE_SECONDS)
                time.sleep(0.0005)
        except OSError as error:
            # The group goes with the keeper.
            raise messages.keeper_gone() from error

    def push(self, content: str | bytes, path: str) -> None:
        target = self._path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def pull(self, path: str, to: Path) -> None:
        found = self._path(path)
        if not found.exists():
            raise messages.command_failed(f"read {path}", 1, "no such file")
        to.mkdir(parents=True, exist_ok=True)
        if found.is_dir():
            shutil.copytree(found, to / found.name)
        else:
            shutil.copy(found, to / found.name)

    def socket(self, path: str) -> Path:
        return self._path(path)

    def files(self) -> Path | None:
        return images.get(self._say).tree

    @classmethod
    def remove_stale(cls) -> list[Path]:
        """Take away what a testbed left whose keeper was killed; return the folders removed. Of one in use, nothing."""
        if cls.needs() or not FOLDERS.exists() or (lock := _take_lock()) is None:
            return []
        try:
            return _remove_stale()
        finally:
            os.close(lock)

    def _keep(self, tree: Path) -> None:
        assert self._folder is not None
        assert self._lock is not None
        command = ["unshare", "--net", "--mount", "bash", str(KEEPER), str(self._folder), str(tree), str(self._cgroup), *SHARED]
        # A session of its own: Ctrl-C of a terminal goes to the runner alone, which closes us in order.
        self._keeper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            pass_fds=[self._lock],
        )  # fmt: skip
        (self._folder / "keeper").write_text(str(self._keeper.pid))
        assert self._keeper.stdout is not None
        assert self._keeper.stderr is not None
        if self._keeper.stdout.readline().strip() != "ready":
            self._keeper.stdin.close()  # type: ignore[union-attr]
            raise messages.no_namespaces(self._keeper.stderr.read().strip())

    def room_lacking(self, endpoints: int, *, dpdk: bool = True) -> str | None:
        needed = needed_hugepages(endpoints, dpdk=dpdk)
        self._take_hugepages(needed)
        free = int(HUGEPAGES.with_name("free_hugepages").read_text()) if HUGEPAGES.exists() else 0
        return None if free >= needed else messages.hugepages_lacking(free, needed)

    def _take_hugepages(self, needed: int) -> None:
        """Raise the pool to what is needed; what others use of it stays theirs. Without any, DPDK's switches say so by themselves."""
        if not HUGEPAGES.exists():
            return
        free, there = (int(HUGEPAGES.with_name(name).read_text()) for name in ("free_hugepages", HUGEPAGES.name))
        if free < needed:
            HUGEPAGES.write_text(f"{there + needed - free}\n")

    def hugepages_lacking(self) -> str | None:
        return self.room_lacking(PAIR.endpoints)

    def _inside(self, *command: str) -> list[str]:
        if self._keeper is None or self._keeper.poll() is not None:
            raise messages.keeper_gone()
        # nsenter becomes its program, so that the id we know is the program's.
        return ["nsenter", f"--target={self._keeper.pid}", "--net", "--mount", f"--root={self._root}", f"--wd={self._root}", *command]

    def _joining(self) -> Callable[[], None]:
        """What a child does before it becomes its program: it joins the keeper's group of processes, and does not outlive the runner.

        Raises ``RunFailed`` where that group is frozen: so would the child be, before it became its program, and waited for without an end.
        """
        if self._frozen:
            raise messages.frozen()
        bound = processes.dying_with_parent()

        def join() -> None:
            bound()
            with open(f"{self._cgroup}/cgroup.procs", "w") as procs:
                procs.write("0")

        return join

    @property
    def _root(self) -> Path:
        """The private root as the host sees it: through the keeper."""
        assert self._keeper is not None
        assert self._folder is not None
        return Path(f"/proc/{self._keeper.pid}/root{self._folder}/root")

    def _path(self, path: str) -> Path:
        return self._root / path.lstrip("/")


def _here(command: str) -> str:
    """What a shell command prints on this host, outside of the namespaces."""
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=STOP_SECONDS, check=True).stdout


def _take_lock() -> int | None:
    """The lock as an open file, which is to be closed; None if somebody else keeps it."""
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(lock)
                return None
            time.sleep(0.05)


def _unload() -> str:
    """A shell script that unloads what a switch may load: modules that are not there now."""
    return f"before={shlex.quote(' '.join(_here(modules.LOADED).split()))}\n{modules.UNLOAD}"


def _loaded(module: str) -> bool:
    return Path(f"/sys/module/{module}").exists()


def _loadable(module: str) -> bool:
    try:
        tried = subprocess.run(["modprobe", "--dry-run", "--quiet", module], capture_output=True, timeout=STOP_SECONDS, check=False)
    except OSError:
        return False
    return tried.returncode == 0


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """The host's own environment has nothing to say in another root."""
    return {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", **more}


def _groups() -> Path:
    """Where cgroup v2 is mounted. Raises ``BadInput`` where it isn't."""
    mounted = next((line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"), None)
    if mounted is None:
        raise messages.no_cgroup()
    return Path(mounted)


def _cgroup(name: str) -> Path:
    """A group of processes (cgroup v2, kernel 5.14 on for cgroup.kill), so that none can escape its end."""
    group = _groups() / f"vsprof-native-{name}"
    group.mkdir(exist_ok=True)
    return group


def _remove_stale() -> list[Path]:
    """For who holds the lock: nobody keeps any of the folders that are there."""
    found = list(FOLDERS.glob("t*"))
    for folder in found:
        _undo(folder)
    return found


def _undo(folder: Path) -> None:
    group = _cgroup(folder.name)
    (group / "cgroup.kill").write_text("1")
    if (folder / "undo").exists():
        subprocess.run(["bash", str(folder / "undo")], check=False, timeout=OPEN_SECONDS)
    # Never recursively: see private.sh.
    for name in ("undo", "keeper"):
        (folder / name).unlink(missing_ok=True)
    for path in (folder / "root", folder / "memory", folder):
        if path.exists():
            path.rmdir()
    _remove_group(group)


def _remove_group(group: Path) -> None:
    """Once the last of its killed processes is gone, which takes a moment."""
    end = time.monotonic() + STOP_SECONDS
    while True:
        try:
            return group.rmdir()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


TESTBED = Native
