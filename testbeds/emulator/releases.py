# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees of other Debian releases beside the lab's own: the same switches, by the same roles, as those releases have them.

A tree is built when a case asks for it, packed as a disk that is only ever read, and kept in the cache beside the images. A running lab
gets the disk as one more device; see ``Lab.enter``.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

from vsprof.testbeds.emulator import cache, needs, tree
from vsprof.testbeds.emulator import image as images
from vsprof.testbeds.emulator.tree import Recipe, Say

PACKAGES = ("python3", "python3-apt", "ca-certificates")
ROLES = ("put", "kernel_ovs", "ovs_dpdk", "vhost_switch")
"""What release.yml applies."""
# The index of a release that is still in the making expires in a week, so a mirror that stands still would be refused. Its signature is
# checked all the same.
OPTIONS = ('--aptopt=Acquire::Check-Valid-Until "false"',)
DISK_BYTES = 3 << 30
"""Size of the file system. The image is sparse: less than 1 GB of it is used."""
PARTS = ["disk.raw"]


PLACE = "/var/lib/vsprof/release"
"""Where the lab has the trees. Not below what they share with it."""
# $1: the release, which is its disk's serial number. What a daemon takes from its disk while a window lasts would come at once, or far too
# late: all programs and libraries are read into memory before.
MOUNT = f"""
set -e
where={PLACE}/$1
for try in $(seq 400); do
    for disk in /sys/block/vd*; do
        [ "$(cat $disk/serial 2>/dev/null)" = "$1" ] && break 2
    done
    disk=
    sleep 0.05
done
[ "$disk" ]
mkdir -p $where
mount -o ro /dev/${{disk##*/}} $where
for shared in dev proc sys run tmp; do
    mount --rbind /$shared $where/$shared
done
cd $where
programs=$(ls usr/lib/openvswitch-switch*/* usr/sbin/ovsdb-server usr/bin/ovsdb-tool usr/local/bin/*)
libraries=$(chroot . ldd $programs | sed -n 's/.* => \\([^ ]*\\) .*/\\1/p' | sort -u)
cat $programs $(printf '.%s ' $libraries) usr/lib/x86_64-linux-gnu/dpdk/pmds-*/* > /dev/null
"""


@dataclass(frozen=True)
class Release(tree.Built):
    """Another release's."""

    name: str


def recipe(release: str) -> Recipe:
    return Recipe(release, PACKAGES, "release.yml", OPTIONS)


@functools.cache
def path(release: str) -> Path:
    """Where the tree of the present inputs lies, or would lie; taken once a process, as the image's name is."""
    return cache.root() / "lab" / f"{release}-{inputs_hash(release)}"


def inputs_hash(release: str) -> str:
    """What a tree depends on: its roles, the dataplane's sources, recipe and suite."""
    roles = [path for role in ROLES for path in (tree.ANSIBLE / "roles" / role).rglob("*")]
    others = [tree.ANSIBLE / "release.yml", *(tree.ANSIBLE / "plugins/connection").glob("*"), Path(tree.__file__)]
    return tree.hashed((release, DISK_BYTES, PACKAGES), [*roles, *others, *tree.dataplane_sources()])


def get(release: str, say: Say) -> Release:
    """Return the tree, building it first where it is missing or damaged.

    Raises ``BadInput`` where this machine can't build one (says what is missing), ``VsprofError`` when the build fails.
    """
    folder = path(release)
    if not cache.intact(folder):
        needs.for_another_tree().check()
        say(f"building a tree of Debian {release} (once; up to 7 minutes)")
    return Release(cache.make(folder, lambda partial: _build(release, partial, say), PARTS), release)


def _build(release: str, folder: Path, say: Say) -> None:
    recipe(release).build(folder, {}, cache.root() / "lab" / f"build-{release}.log", say)
    made = Release(folder, release)
    (folder / "packages.txt").write_text(tree.run(images.get(say).packages_of(made.tree)))
    say("packing the tree into a disk image")
    tree.make_disk(made.tree, made.disk, DISK_BYTES)
