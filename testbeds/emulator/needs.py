# SPDX-License-Identifier: GPL-2.0-or-later
"""What this machine must have to build, and to run, the lab; and how it looks now."""

import os
import platform
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from vsprof.terms import units
from vsprof.testbeds import messages
from vsprof.testbeds.emulator import cache

LAB_MEMORY_BYTES = 4 << 30
"""Memory of the emulated host with two guests. About 2.5 GB of it are touched in a run."""
NEEDED_MEMORY_BYTES = 5 << 30
NEEDED_DISK_BYTES = 5 << 30
"""Tree 1.2 GB, image 1 GB, snapshot 0.5 GB, one with virtual machines 0.7 GB, overlays, and the packages while they are unpacked."""
BUILDING_MEMORY_BYTES = 1 << 30
NEEDED_TREE_BYTES = 3 << 30
"""Of another release's tree: the tree, its disk, and the packages while they are unpacked."""
MKE2FS = shutil.which("mke2fs", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or "mke2fs"
PROGRAMS = {"mmdebstrap": "mmdebstrap", "ssh": "openssh-client", "ssh-keygen": "openssh-client", "unshare": "util-linux"}
"""Programs that building and running the lab takes, and the Debian package of each."""


@dataclass(frozen=True)
class Need:
    """One requirement. ``problem`` is None where it is met."""

    what: str
    seen: str
    problem: str | None


@dataclass(frozen=True)
class Needs:
    """All requirements of one purpose."""

    needs: list[Need]

    def check(self) -> None:
        """Raise ``BadInput`` that lists every requirement that is not met."""
        missing = [need for need in self.needs if need.problem]
        if missing:
            raise messages.host_lacks([f"{need.what}: {need.problem}" for need in missing])


def for_building() -> Needs:
    """What building the image takes, beyond what running it takes."""
    return Needs([*for_running().needs, *map(_program, PROGRAMS), _mke2fs(), _becoming_root(), _disk()])


def for_another_tree() -> Needs:
    """What building the tree of another release takes. The lab, which may run meanwhile, has its memory already."""
    return Needs(
        [_machine(), _memory(BUILDING_MEMORY_BYTES), *map(_program, PROGRAMS), _mke2fs(), _becoming_root(), _disk(NEEDED_TREE_BYTES)]
    )


def for_running(more_bytes: int = 0) -> Needs:
    """``more_bytes``: what the lab has beyond ``LAB_MEMORY_BYTES``."""
    return Needs([_machine(), _memory(NEEDED_MEMORY_BYTES + more_bytes)])


def _machine() -> Need:
    seen = f"{platform.system()} {platform.machine()}"
    return Need("machine", seen, None if seen == "Linux x86_64" else messages.needs_linux_x86(seen))


def _memory(needed: int = NEEDED_MEMORY_BYTES) -> Need:
    free = available_memory()
    short = messages.too_little_memory(free, needed) if free < needed else None
    return Need("memory", f"{units.gib(free)} available", short)


def available_memory() -> int:
    """Bytes that new programs can get without swapping (MemAvailable)."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def _disk(needed: int = NEEDED_DISK_BYTES) -> Need:
    free = free_disk()
    short = messages.too_little_disk(cache.root(), free, needed) if free < needed else None
    return Need("disk", f"{units.gib(free)} free for {cache.root()}", short)


def free_disk() -> int:
    """Bytes that can be written where the cache is, or will be."""
    folder = cache.root()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _program(name: str) -> Need:
    found = shutil.which(name)
    return Need(name, found or "not found", None if found else messages.program_missing(name, PROGRAMS[name]))


def _mke2fs() -> Need:
    found = shutil.which(MKE2FS)
    return Need("mke2fs", found or "not found", None if found else messages.program_missing("mke2fs", "e2fsprogs"))


def _becoming_root() -> Need:
    """Whether a user namespace with sub-ids works here; root needs none."""
    if os.geteuid() == 0:
        return Need("root of a tree", "root", None)
    user = pwd.getpwuid(os.geteuid()).pw_name
    # Giving a file away takes more than one id: a namespace of root alone would fail only when dpkg does that, minutes later.
    give_away = 'file=$(mktemp) && chown 1:1 "$file"; status=$?; rm -f "$file"; exit $status'
    try:
        tried = subprocess.run([*cache.as_root(), "sh", "-c", give_away], capture_output=True, text=True, timeout=20, check=False)
        problem = None if tried.returncode == 0 else messages.no_user_namespace(user, tried.stderr.strip())
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = messages.no_user_namespace(user, str(error))
    return Need("root of a tree", "user namespace" if problem is None else "no user namespace", problem)


def check_kvm(kernel: Path, qemu: list[str]) -> None:
    """Raise ``BadInput`` where the lab can't run under KVM: no guest boots, or none would inside, for which KVM must be nested."""
    boots, seen = kvm_boots(kernel, qemu)
    if not boots:
        raise messages.kvm_not_here(seen)
    nested = [path for path in Path("/sys/module").glob("kvm_*/parameters/nested") if path.read_text().strip() in ("1", "Y")]
    if not nested:
        raise messages.kvm_not_here("a guest boots, but KVM does not nest, and the lab has guests of its own")


def kvm_boots(kernel: Path, qemu: list[str], seconds: float = 20) -> tuple[bool, str]:
    """Whether KVM really boots a guest here: /dev/kvm may exist, and even create CPUs, without one ever getting further.

    Starts ``kernel`` without a root file system under KVM and waits for the panic that says so.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False, "/dev/kvm is missing or not ours to open"
    command = [
        *qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35", "-accel", "kvm", "-cpu", "host",
        "-m", "256", "-serial", "stdio", "-kernel", str(kernel), "-append", "console=ttyS0 panic=-1 root=/dev/none",
    ]  # fmt: skip
    try:
        tried = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return False, f"/dev/kvm opens, but a guest did not boot in {seconds:.0f} s"
    if "Unable to mount root fs" in tried.stdout:
        return True, "a guest kernel booted"
    last = (tried.stderr or tried.stdout).strip().splitlines()
    return False, f"/dev/kvm opens, but a guest did not boot: {last[-1] if last else 'it printed nothing'}"
