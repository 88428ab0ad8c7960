# SPDX-License-Identifier: GPL-2.0-or-later
"""A bare Debian server to try `make host` on: emulated, reached over SSH on loopback, and knowing nothing of vsprof.

It has what an administrator's fresh installation has (kernel, systemd, SSH, apt, GRUB's configuration), none of the project's roles,
and, other than the lab, a way out to its Debian mirror. The emulator is the one out of the lab's image.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vsprof.terms import places
from vsprof.testbeds import messages
from vsprof.testbeds.emulator import cache, needs
from vsprof.testbeds.emulator import image as images
from vsprof.testbeds.emulator.machine import CONTROL_MAC, Instance, Machine, Shape, instance
from vsprof.testbeds.emulator.tree import LAB_SUITE
from vsprof.testbeds.ssh import Channel

DISK_BYTES = 6 << 30
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "udev", "kmod", "linux-image-amd64", "initramfs-tools", "zstd", "openssh-server", "python3",
    "iproute2", "ca-certificates", "grub-pc",
)  # fmt: skip
KERNEL_ARGUMENTS = "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off nokaslr tsc=reliable no_timer_check nowatchdog"
BOOT_SECONDS = 300
# An initramfs with every driver takes minutes to pack on an emulated processor, and installing packages packs it again.
SET_UP = f"""
set -e
echo bare > "$1/etc/hostname"
echo "127.0.0.1 localhost bare" > "$1/etc/hosts"
echo "/dev/vda / ext4 rw,noatime 0 0" > "$1/etc/fstab"
echo "nameserver 10.0.2.3" > "$1/etc/resolv.conf"
sed -i 's/^MODULES=.*/MODULES=list/' "$1/etc/initramfs-tools/initramfs.conf"
printf 'virtio_blk\\next4\\ncrc32c\\n' >> "$1/etc/initramfs-tools/modules"
printf 'FSTYPE=ext4\\n' > "$1/etc/initramfs-tools/conf.d/fstype"
chroot "$1" update-initramfs -u -k all
printf '[Match]\\nMACAddress={CONTROL_MAC}\\n[Network]\\nAddress=10.0.2.15/24\\nGateway=10.0.2.2\\n' \\
    > "$1/etc/systemd/network/10-wire.network"
chroot "$1" systemctl enable systemd-networkd.service ssh.service
mkdir -p -m 700 "$1/root/.ssh"
cp "$KEY" "$1/root/.ssh/authorized_keys"
"""


@dataclass(frozen=True)
class Disk:
    """A server as installed: paths of its parts."""

    folder: Path

    @property
    def key(self) -> Path:
        return self.folder / "key"

    @property
    def host_key(self) -> str:
        return (self.folder / "host_key.pub").read_text()


class Server(Machine):
    """The emulated server. A reboot from inside boots it again."""

    def __init__(self, emulator: images.Image, installed: Disk, folder: Path) -> None:
        super().__init__(emulator, Shape(4), folder)
        self.installed = installed

    def channel(self, seconds: float = BOOT_SECONDS) -> Channel:
        """Connect as soon as it answers."""
        channel = Channel("root@127.0.0.1", self.port, self.installed.key, self.installed.host_key, self.folder)
        channel.open(seconds, self.check_alive)
        return channel

    def cut_power(self) -> None:
        """What it had not yet written to its disk is lost, and it boots again."""
        self.qmp("system_reset")

    def _arguments(self, overlay: Path) -> list[str]:
        # It must reach its mirror, as any server does; from outside only this machine's loopback reaches it. And it may reboot.
        return [word.replace("restrict=on,", "") for word in super()._arguments(overlay) if word != "-no-reboot"]

    def _kernel(self) -> list[str]:
        part = self.installed.folder
        return ["-kernel", str(part / "vmlinuz"), "-initrd", str(part / "initrd"), "-append", KERNEL_ARGUMENTS]


@contextmanager
def running() -> Iterator[Server]:
    """A server just installed and booted; nothing of it is kept."""
    Instance.remove_stale()
    needs.for_building().check()
    emulator, installed = images.get(print), get()
    with instance() as place:
        server = Server(emulator, installed, place.folder)
        try:
            server.start(server.create_overlay(installed.folder / "disk.raw", place.folder / "overlay.qcow2"), boot=True)
            yield server
        finally:
            server.stop()


def get() -> Disk:
    """The installed disk, built first where it is missing."""
    name = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    return Disk(cache.make(cache.root() / "lab" / f"bare-server-{name}", _install, ["disk.raw", "vmlinuz", "initrd", "key"]))


def _install(folder: Path) -> None:
    tree, key = folder / "tree", folder / "key"
    _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "vsprof-bare-server", "-f", str(key)])
    mirror = [found] if (found := os.environ.get(places.MIRROR_NAMED)) else []
    _run([
        *cache.as_root(), "mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(PACKAGES)}",
        "--aptopt=Acquire::Retries \"5\"", "--dpkgopt=force-unsafe-io", f"--customize-hook={SET_UP}", LAB_SUITE, str(tree), *mirror,
    ], KEY=str(folder / "key.pub"))  # fmt: skip
    shutil.copy(next((tree / "boot").glob("vmlinuz-*")), folder / "vmlinuz")
    shutil.copy(next((tree / "boot").glob("initrd.img-*")), folder / "initrd")
    shutil.copy(tree / "etc/ssh/ssh_host_ed25519_key.pub", folder / "host_key.pub")
    (folder / "disk.raw").touch()
    os.truncate(folder / "disk.raw", DISK_BYTES)
    _run([*cache.as_root(), needs.MKE2FS, "-q", "-F", "-t", "ext4", "-d", str(tree), str(folder / "disk.raw")])
    cache.remove(tree)


def _run(command: list[str], **environment: str) -> None:
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, stdin=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    if ran.returncode != 0:
        raise messages.build_step_failed(command, ran.returncode, ran.stderr[-3000:] or ran.stdout)
