# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's root file system: a Debian tree built from packages by mmdebstrap and the project's Ansible roles.

The tree also gives the emulator: QEMU is started out of it, so that every host uses the same one.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vsprof.terms import places
from vsprof.testbeds import messages, processes
from vsprof.testbeds.emulator import cache, needs

SUITE = "trixie"
DISK_BYTES = 6 << 30
"""Size of the root file system. The image is sparse: about 1 GB of it is used."""
BASE_PACKAGES = ("systemd", "systemd-sysv", "dbus", "iproute2", "python3", "python3-apt", "ca-certificates")
"""What Ansible needs to take over; every other package comes from a role."""
ANSIBLE = places.ROOT / "ansible"
DATAPLANE = places.ROOT / "dataplane"
DATAPLANE_SOURCES = ("*.c", "*.h", "Makefile", "probe/*.c", "probe/*.h", "probe/Makefile")
"""What the role vhost_switch compiles."""
PARTS = ["disk.raw", "vmlinux", "initrd", "key"]
ONLY_SERVERS = {"server", "callback", "host.yml", "unhost.yml"}
"""What of it is for real servers alone: no image depends on it."""
ATTEMPTS = 3
"""How often a build is tried: mirrors move on, and downloads break off."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Image:
    """A built image: paths of its parts."""

    folder: Path

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def disk(self) -> Path:
        return self.folder / "disk.raw"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinux"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd"

    @property
    def key(self) -> Path:
        return self.folder / "key"

    @property
    def host_key(self) -> str:
        """Public half of the SSH key that the lab host shows."""
        return (self.tree / "etc/ssh/ssh_host_ed25519_key.pub").read_text()

    def program(self, name: str, preload: Sequence[Path] = ()) -> list[str]:
        """The start of a command line that runs the tree's own ``name``, with the shared objects ``preload`` before its libraries:
        they may replace functions of these. No path of theirs may hold a space or a colon.

        Called through the tree's own loader and with its own libraries, it runs on any x86-64 Linux, whatever libraries
        that has, and needs neither chroot nor root.
        """
        libraries = self.tree / "usr/lib/x86_64-linux-gnu"
        first = ["--preload", " ".join(map(str, preload))] if preload else []
        return [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries), *first, str(self.tree / "usr/bin" / name)]

    def emulator(self) -> list[str]:
        """The start of a command line of the tree's QEMU, with the firmware that belongs to it."""
        share = self.tree / "usr/share"
        return [*self.program("qemu-system-x86_64"), "-L", str(share / "qemu"), "-L", str(share / "seabios")]


def inputs_hash() -> str:
    """What the image depends on: roles, the dataplane's sources, recipe and suite. Another hash is another image."""
    digest = hashlib.sha256(repr((SUITE, DISK_BYTES, BASE_PACKAGES)).encode())
    sources = [path for pattern in DATAPLANE_SOURCES for path in DATAPLANE.glob(pattern)]
    for path in sorted([*ANSIBLE.rglob("*"), *sources, Path(__file__)]):
        if path.is_file() and not {"__pycache__", *ONLY_SERVERS} & set(path.parts):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def name() -> str:
    """The inputs' hash, taken once a process: a role that is edited while a campaign runs must not change the host under it."""
    return inputs_hash()


def path() -> Path:
    """Where the image of the present inputs lies, or would lie."""
    return cache.root() / "lab" / name()


def get(say: Say) -> Image:
    """Return the image, building it first where it is missing or damaged.

    Raises ``BadInput`` where this host can't build one (says what is missing), ``VsprofError`` when the build fails.
    """
    folder = path()
    if not cache.intact(folder):
        needs.for_building().check()
        say("building the lab's image (once; 3-5 minutes)")
    return Image(cache.make(folder, lambda partial: _build(partial, say), PARTS))


def _build(folder: Path, say: Say) -> None:
    _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "vsprof-lab", "-f", str(folder / "key")])
    log = cache.root() / "lab" / "build.log"
    for attempt in range(1, ATTEMPTS + 1):
        if _make_tree(folder, log, say):
            break
        cache.remove(folder / "tree")
        if attempt == ATTEMPTS:
            raise messages.image_build_failed(ATTEMPTS, log, _tail(log))
        say(f"building the tree failed (see {log}); trying again")
    _take_parts(folder)
    say("packing the tree into a disk image")
    _make_disk(folder)


def _make_tree(folder: Path, log: Path, say: Say) -> bool:
    """Run mmdebstrap with the Ansible roles as its hook; whether it went well. Everything printed goes to ``log``."""
    command = [
        *cache.as_root(), "mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(BASE_PACKAGES)}",
        "--aptopt=Acquire::Retries \"5\"",
        # The image can be built again at any time: flushing each file to the disk would only cost minutes.
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude={p}" for p in ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*")),
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        f"--customize-hook={_roles_hook(folder)}",
        SUITE, str(folder / "tree"),
    ]  # fmt: skip
    if mirror := os.environ.get("VSPROF_MIRROR"):
        command.append(mirror)
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "PYTHONUNBUFFERED": "1"}
    # Ansible refuses to start under a locale that is not UTF-8.
    environment["LC_ALL"] = "C.UTF-8"
    with log.open("w") as out:
        build = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=processes.dying_with_parent(),
        )
        assert build.stdout is not None
        for line in build.stdout:
            out.write(line)
            out.flush()
            # The hook's line is our own command, a screenful; its tasks follow one by one.
            if line.startswith(("TASK [", "I: ")) and "hook" not in line:
                say(line.strip(" *\n").removeprefix("I: "))
        return build.wait() == 0


def _roles_hook(folder: Path) -> str:
    playbook = [
        sys.executable, "-m", "ansible", "playbook", str(ANSIBLE / "lab.yml"),
        "--inventory", "tree,", "--extra-vars",
        json.dumps({"ansible_connection": "tree", "lab_authorized_key": (folder / "key.pub").read_text().strip()}),
    ]  # fmt: skip
    # mmdebstrap gives the tree's path as the hook's first argument.
    return shlex.join(playbook) + ' --extra-vars ansible_host="$1"'


def _take_parts(folder: Path) -> None:
    """Copy out what the machine is started with: the kernel as ELF (QEMU boots it at once, by PVH) and the initramfs."""
    tree = folder / "tree"
    shutil.copy(tree / "var/lib/vsprof/guest/vmlinux", folder / "vmlinux")
    shutil.copy(next((tree / "boot").glob("initrd.img-*")), folder / "initrd")
    # The tree's own dpkg-query: this machine need not be a Debian.
    query = [*Image(folder).program("dpkg-query"), f"--admindir={tree}/var/lib/dpkg", "--show", "--showformat=${Package} ${Version}\n"]
    (folder / "packages.txt").write_text(_run(query))


def _make_disk(folder: Path) -> None:
    (folder / "disk.raw").touch()
    os.truncate(folder / "disk.raw", DISK_BYTES)
    tree, disk = str(folder / "tree"), str(folder / "disk.raw")
    _run([*cache.as_root(), needs.MKE2FS, "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d", tree, disk])


def _run(command: list[str]) -> str:
    """Run a step of the build and return what it printed. Raises ``VsprofError`` with its own words."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)
    if ran.returncode != 0:
        raise messages.build_step_failed(command, ran.returncode, ran.stderr or ran.stdout)
    return ran.stdout


def _tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
