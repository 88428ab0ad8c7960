# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of other Debian releases, under which the lab can be booted with everything else as it is.

Of a release's tree three things are kept: the kernel, an initramfs that boots the lab's own disk with it, and its version. The initramfs
carries the kernel's modules, and puts them on that disk before anybody asks for one; and the kernel for the guests, for the processor model
takes the guests' kernel for the host's. A snapshot of a lab that booted so needs no further disk or device.
"""

import functools
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vsprof.terms import errors
from vsprof.testbeds import messages
from vsprof.testbeds.emulator import cache, needs, tree
from vsprof.testbeds.emulator.tree import Say

PACKAGES = ("linux-image-amd64", "initramfs-tools", "busybox", "cpio", "zstd", "python3")
BACKPORTS = "-backports"
"""The end of a suite's name that holds some packages alone: all others come from the suite of the name before it."""
PARTS = ["vmlinux", "initrd", "version"]
PACK = tree.ANSIBLE / "roles/guest_image/files/pack"
"""Knows how a kernel is unpacked, and which modules the guest has."""
# The index of a release that is still in the making expires in a week, so a mirror that stands still would be refused. Its signature is
# checked all the same.
VALIDITY = '--aptopt=Acquire::Check-Valid-Until "false"'

# $1: the tree, before any package comes. The initramfs is small and packed once.
CONFIGURE = r"""
set -e
mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/etc/initramfs-tools/hooks" "$1/etc/initramfs-tools/scripts/local-bottom"
cd "$1/etc/initramfs-tools"
printf 'MODULES=list\nFSTYPE=ext4\nBUSYBOX=y\n' > conf.d/vsprof
cat > hooks/vsprof <<'END'
#!/bin/sh
[ "$1" = prereqs ] && exit
. /usr/share/initramfs-tools/hook-functions
for module in virtio_pci virtio_blk crc32c ext4; do force_load $module; done
END
cat > scripts/local-bottom/vsprof <<'END'
#!/bin/sh
[ "$1" = prereqs ] && exit
set -e
cp -a /vsprof-kernel/modules/. "$rootmnt/usr/lib/modules/"
cp /vsprof-kernel/vmlinux "$rootmnt/var/lib/vsprof/guest/vmlinux"
cat /vsprof-kernel/guest.cpio >> "$rootmnt/var/lib/vsprof/guest/guest.cpio"
rm -r /vsprof-kernel
END
chmod +x hooks/vsprof scripts/local-bottom/vsprof
"""
# The same: besides its own packages the tree gets those of the suite that has few. A line for the mirror itself is there already.
ADD_SUITE = r"""
sed -n 's/ {base} / {suite} /p' "$1/etc/apt/sources.list" > "$1/etc/apt/sources.list.d/{suite}.list"
"""
KEPT = (
    "kernel/(arch|block|crypto|fs|kernel|lib|mm|net|security|virt)/",
    "kernel/drivers/(acpi|block|bus|char|dma|pci|ptp|tty|uio|vdpa|vfio|vhost|virt|virtio)/",
    "kernel/drivers/net/([^/]*$|(bonding|ipvlan|mdio|phy|team|vxlan|ethernet/intel)/)",
)
"""Modules that the lab could have a use for, by the begin of their path: a fifth of all. What they need comes with them."""
# $1: the tree, with all packages.
# A kernel takes several archives for its initramfs, one behind the other, each at a multiple of four bytes; of a file that is in several
# the last one counts. So the guest's modules go behind its image. It loads them by their order alone, and one kernel has built in what
# another has as a module.
TAKE = r"""
set -e
cp {pack} "$1/vsprof-pack"
chroot "$1" sh -e <<'END'
release=$(ls /usr/lib/modules)
# Newer packages have it beside its modules.
image=/usr/lib/modules/$release/vmlinuz
[ -e $image ] || image=/boot/vmlinuz-$release
kept=/payload/vsprof-kernel/modules/$release
mkdir -p $kept /guest/modules
cd /usr/lib/modules/$release
awk -F '[: ]+' '$1 ~ /^({kept})/ {{ for (i = 1; i <= NF; i++) if ($i) print $i }}' modules.dep | sort -u > /wanted
cpio --pass-through --make-directories --quiet $kept < /wanted
cp modules.* $kept
python3 -c "
import runpy, subprocess
from pathlib import Path
pack = runpy.run_path('/vsprof-pack')
asked = ['modprobe', '--set-version', '$release', '--show-depends']
wanted = ('virtio_pci', 'virtio_console', *pack['MODULES'])
shown = [subprocess.run([*asked, name], stdout=subprocess.PIPE, text=True, check=True).stdout for name in wanted]
loads = [line.split()[1] for line in ''.join(shown).splitlines() if line.startswith('insmod ')]
pack['add_modules'].__globals__['MODULES'] = tuple(dict.fromkeys(Path(path).name.partition('.')[0] for path in loads))
pack['unpack_kernel'](Path('$image'), Path('/payload/vsprof-kernel/vmlinux'))
pack['add_modules'](Path('/guest'), '$release')
"
cd /guest
find . -mindepth 1 | cpio --create --format=newc --quiet --owner=0:0 > /payload/vsprof-kernel/guest.cpio
cd /payload
mkinitramfs -o /initrd $release
truncate --size=%4 /initrd
find vsprof-kernel | cpio --create --format=newc --quiet --owner=0:0 >> /initrd
cp vsprof-kernel/vmlinux /vmlinux
dpkg-query --show --showformat="$release \${{Version}}\n" linux-image-$release > /version
END
"""


@dataclass(frozen=True)
class Kernel:
    """One that is built: paths of its parts."""

    suite: str
    folder: Path

    @property
    def vmlinux(self) -> Path:
        return self.folder / "vmlinux"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd"

    @property
    def release(self) -> str:
        """What `uname -r` says under it."""
        return self._version()[0]

    @property
    def name(self) -> str:
        """Of a snapshot's folder, in part: the package's version, for the kernel of a suite moves on, and what it was built by."""
        return f"-linux-{self._version()[1]}-{self.folder.name[-8:]}"

    def _version(self) -> list[str]:
        return (self.folder / "version").read_text().split()


@dataclass(frozen=True)
class Recipe(tree.Recipe):
    """A tree of which only the kernel is wanted: no role has a say in it."""

    def _roles_hook(self, variables: Mapping[str, str]) -> str:
        return TAKE.format(pack=shlex.quote(str(PACK)), kept="|".join(KEPT).replace("/", r"\/"))


def recipe(suite: str) -> Recipe:
    base = suite.removesuffix(BACKPORTS)
    configure, preferred = CONFIGURE, []
    if base != suite:
        configure += ADD_SUITE.format(base=base, suite=suite)
        preferred = [f'--aptopt=APT::Default-Release "{suite}"']
    return Recipe(base, PACKAGES, "", (VALIDITY, *preferred, f"--setup-hook={configure}"))


@functools.cache
def path(suite: str) -> Path:
    """Where the kernel of the present inputs lies, or would lie; taken once a process, as the image's name is."""
    return cache.root() / "lab" / f"kernel-{suite}-{inputs_hash(suite)}"


def inputs_hash(suite: str) -> str:
    """What a kernel's files depend on, beside the mirror."""
    return tree.hashed((suite, PACKAGES), [Path(__file__), Path(tree.__file__), PACK])


def get(suite: str, say: Say) -> Kernel:
    """Return the kernel, fetching it first where it is missing or damaged.

    Raises ``BadInput`` where this machine can't build its initramfs (says what is missing), ``VsprofError`` when that fails.
    """
    folder = path(suite)
    if not cache.intact(folder):
        needs.for_another_tree().check()
        say(f"fetching the kernel of Debian {suite} (once; 2 minutes)")
    return Kernel(suite, cache.make(folder, lambda partial: _build(suite, partial, say), PARTS))


def _build(suite: str, folder: Path, say: Say) -> None:
    try:
        recipe(suite).build(folder, {}, cache.root() / "lab" / f"build-kernel-{suite}.log", say)
    except errors.VsprofError as error:
        raise messages.no_kernel(suite, error) from error
    for part in PARTS:
        (folder / "tree" / part).rename(folder / part)
    cache.remove(folder / "tree")
