# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab booted once, then resumed: the machine's state in a file, and its disk as it was at that moment.

The state is written by migration to a file in QEMU's mapped-ram format: each page has a fixed place, so that a resume
reads the touched pages alone, in parallel. Both files are only ever read afterwards.
"""

import hashlib
import shutil
import time
from pathlib import Path

from vsprof.terms import errors
from vsprof.testbeds import messages, systemd_host
from vsprof.testbeds.emulator import cache, soundness
from vsprof.testbeds.emulator import machine as machines
from vsprof.testbeds.emulator.image import Image, Say
from vsprof.testbeds.emulator.machine import Machine, Shape, instance
from vsprof.testbeds.ssh import Channel

BOOT_SECONDS = 240
RESUME_SECONDS = 30
BOOTS = 4
"""How often the lab is booted until it is sound. What makes one in many unsound is chance: see docs/testbeds/lab.md."""
CHECK_SECONDS = 60
PARTS = ["state.bin", "disk.qcow2"]
_SOURCES = (machines.__file__, soundness.__file__, systemd_host.__file__, __file__)
RECIPE = hashlib.sha256(b"".join(Path(source).read_bytes() for source in _SOURCES)).hexdigest()[:8]
MIGRATION = ("mapped-ram", "multifd")

# What must hold before the state is saved, and what every run will need: programs that are read into memory once, here,
# need not be read from an emulated disk in each run.
SETTLE = """
[ -e /dev/kvm ] || modprobe kvm_intel
systemctl is-system-running --wait >/dev/null || systemctl --failed --no-legend >&2
for module in openvswitch vhost_net tun kvm; do [ -d /sys/module/$module ] || { echo "module $module is not loaded" >&2; exit 1; }; done
[ -e /dev/kvm ] || { echo "/dev/kvm is missing" >&2; exit 1; }
journalctl --quiet --rotate --vacuum-size=1K >/dev/null 2>&1
for program in qemu-system-x86_64 ovs-vsctl ovs-appctl ovs-ofctl ovsdb-server ovsdb-tool perf iperf3 taskset systemd-run pgrep tar; do
    which $program
done > /tmp/programs
ls /usr/lib/openvswitch-switch*/* >> /tmp/programs
xargs -n 1 ldd < /tmp/programs 2>/dev/null | grep -o '/[^ ]*' | sort -u >> /tmp/programs
xargs cat < /tmp/programs > /dev/null
cat /usr/lib/x86_64-linux-gnu/dpdk/pmds-*/* /usr/share/seabios/* /var/lib/vsprof/guest/guest.cpio /var/lib/vsprof/guest/vmlinux > /dev/null
sync
"""


def folder(image: Image, shape: Shape, prepared: str = "") -> Path:
    """Where the snapshot lies: named by what it depends on, which is the image, the machine, how it is made here, and the key of what
    was ``prepared`` on it."""
    return image.folder.with_name("-".join(filter(None, (image.folder.name, shape.name, RECIPE, prepared))))


def get(image: Image, shape: Shape, say: Say) -> Path:
    """Return the folder of the snapshot, booting the lab and saving it first where it is missing or damaged."""
    where = folder(image, shape)
    if not cache.intact(where):
        nodes = f" in {shape.nodes} NUMA nodes" if shape.nodes > 1 else ""
        kernel = f", Linux {shape.kernel.release}" if shape.kernel else ""
        say(f"booting the lab host, {shape.cpus} CPUs{nodes}{kernel} (once; about a minute)")
    return cache.make(where, lambda partial: _boot_until_sound(image, shape, partial, say), PARTS)


def discard(where: Path) -> None:
    """Forget a snapshot that does not resume; it is made again when it is next asked for."""
    cache.remove(where)


def resume(machine: Machine, snapshot: Path, disk: Path | None = None) -> None:
    """Start ``machine`` from ``snapshot`` and let it run. ``disk``: where its disk goes if that is to be kept.

    Raises ``VsprofError`` when the state does not load.
    """
    if disk:
        shutil.copyfile(snapshot / "disk.qcow2", disk)
    machine.start(disk or machine.create_overlay(snapshot / "disk.qcow2", machine.folder / "overlay.qcow2"), boot=False)
    _set_capabilities(machine)
    machine.qmp("migrate-incoming", uri=f"file:{snapshot / 'state.bin'}")
    machine.wait_until(lambda: machine.qmp("query-status")["status"] != "inmigrate", RESUME_SECONDS, "the snapshot to load")
    machine.qmp("cont")


def connect(machine: Machine, seconds: float) -> Channel:
    """Open the control channel to a running machine. Raises ``VsprofError`` when it ends, or does not answer."""
    image = machine.image
    channel = Channel(
        "root@127.0.0.1", machine.port, image.key, image.host_key, machine.folder, held_up=machine.held_up, doing=machine.doing
    )
    channel.open(seconds, machine.check_alive)
    return channel


def check(channel: Channel, cpus: int) -> None:
    """Raise ``LabUnsound`` where a CPU's timer is dead, the clocks disagree, or KVM is missing."""
    printed = channel.run(soundness.CHECK, timeout=CHECK_SECONDS, check=False).stdout
    if faults := soundness.faults(printed, cpus):
        raise messages.lab_unsound(faults)


def _boot_until_sound(image: Image, shape: Shape, to: Path, say: Say) -> None:
    for left in reversed(range(BOOTS)):
        try:
            return boot_and_save(image, shape, to)
        except errors.LabUnsound as error:
            if not left:
                raise
            say(f"{error}; booting it again")
            for part in PARTS:
                (to / part).unlink(missing_ok=True)


def boot_and_save(image: Image, shape: Shape, to: Path) -> None:
    """Boot a lab once, and save it in ``to``. Raises ``LabUnsound`` where it is that."""
    with instance() as place:
        machine = Machine(image, shape, place.folder)
        try:
            # This overlay is kept: it is the disk that belongs to the saved memory.
            machine.start(machine.create_overlay(image.disk, to / "disk.qcow2"), boot=True)
            channel = connect(machine, BOOT_SECONDS)
            settled = channel.run(SETTLE, timeout=BOOT_SECONDS, check=False)
            if settled.status != 0:
                raise messages.lab_not_ready(settled.stderr.strip())
            try:
                check(channel, shape.cpus)
            except errors.LabUnsound as error:
                error.registers = [_registers(machine, cpu) for cpu in range(shape.cpus)]
                raise
            save(machine, channel, to / "state.bin")
        finally:
            machine.stop()


def _registers(machine: Machine, cpu: int) -> str:
    """A CPU's local APIC, in QEMU's words: a timer that is not armed, or an interrupt that is never ended, shows there."""
    return str(machine.qmp("human-monitor-command", **{"command-line": f"info lapic {cpu}"}))


def save(machine: Machine, channel: Channel, state: Path) -> None:
    """Save what ``machine`` does at this moment; then it stands still, and the ``channel`` to it is closed."""
    channel.close()
    # The lab's side of the connection ends a moment after ours; a half-open one would be saved.
    time.sleep(1)
    machine.qmp("stop")
    _set_capabilities(machine)
    machine.qmp("migrate-set-parameters", **{"max-bandwidth": 0})
    machine.qmp("migrate", uri=f"file:{state}")
    machine.wait_until(lambda: machine.qmp("query-migrate")["status"] in ("completed", "failed"), 120, "the state to be saved")
    outcome = machine.qmp("query-migrate")
    if outcome["status"] == "failed":
        raise messages.emulator_failed(f"saving its state failed: {outcome.get('error-desc', 'no reason given')}")


def _set_capabilities(machine: Machine) -> None:
    machine.qmp("migrate-set-capabilities", capabilities=[{"capability": c, "state": True} for c in MIGRATION])
