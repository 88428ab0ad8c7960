# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's root file system: a Debian tree built from packages by mmdebstrap and the project's Ansible roles.

The tree also gives the emulator: QEMU is started out of it, so that every host uses the same one.
"""

import functools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vsprof.testbeds.emulator import cache, needs, tree
from vsprof.testbeds.emulator.tree import ANSIBLE, LAB_SUITE, Recipe, Say

RECIPE = Recipe(LAB_SUITE, ("systemd", "systemd-sysv", "dbus", "iproute2", "python3", "python3-apt", "ca-certificates"), "lab.yml")
DISK_BYTES = 6 << 30
"""Size of the root file system. The image is sparse: about 1 GB of it is used."""
PARTS = ["disk.raw", "vmlinux", "initrd", "key"]
ONLY_SERVERS = {"server", "callback", "host.yml", "unhost.yml"}
"""What of ansible/ is for real servers alone: no image depends on it."""
ONLY_RELEASES = {"release.yml"}
"""What of it is for the trees of other releases alone."""


@dataclass(frozen=True)
class Image(tree.Built):
    """The lab's: paths of its other parts."""

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

    def packages_of(self, of: Path) -> list[str]:
        """A command line that prints each package of the tree ``of`` with its version: by our own tree's program, because this machine
        need not be a Debian."""
        shown = "--showformat=${Package} ${Version}\n"
        return [*self.program("dpkg-query"), f"--admindir={of}/var/lib/dpkg", "--show", shown]

    def emulator(self) -> list[str]:
        """The start of a command line of the tree's QEMU, with the firmware that belongs to it."""
        share = self.tree / "usr/share"
        return [*self.program("qemu-system-x86_64"), "-L", str(share / "qemu"), "-L", str(share / "seabios")]


def inputs_hash() -> str:
    """What the image depends on: roles, the dataplane's sources, recipe and suite. Another hash is another image."""
    roles = [path for path in ANSIBLE.rglob("*") if not {*ONLY_SERVERS, *ONLY_RELEASES} & set(path.parts)]
    return tree.hashed(
        (RECIPE.suite, DISK_BYTES, RECIPE.packages), [*roles, *tree.dataplane_sources(), Path(__file__), Path(tree.__file__)]
    )


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
    tree.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "vsprof-lab", "-f", str(folder / "key")])
    authorized = {"lab_authorized_key": (folder / "key.pub").read_text().strip()}
    RECIPE.build(folder, authorized, cache.root() / "lab" / "build.log", say)
    _take_parts(folder)
    say("packing the tree into a disk image")
    tree.make_disk(folder / "tree", folder / "disk.raw", DISK_BYTES)


def _take_parts(folder: Path) -> None:
    """Copy out what the machine is started with: the kernel as ELF (QEMU boots it at once, by PVH) and the initramfs."""
    made = folder / "tree"
    shutil.copy(made / "var/lib/vsprof/guest/vmlinux", folder / "vmlinux")
    shutil.copy(next((made / "boot").glob("initrd.img-*")), folder / "initrd")
    (folder / "packages.txt").write_text(tree.run(Image(folder).packages_of(made)))
