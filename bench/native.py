# SPDX-License-Identifier: GPL-2.0-or-later
"""This machine with the lab's tree as its root: the very programs of the lab, on the real processor.

It takes root, and namespaces of its own: no mount, process, interface or socket of it outlives the call.
"""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from vsprof.bench import messages
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds import processes
from vsprof.testbeds.emulator import cache

AT = "/mnt"
"""Where the shared folders are seen in the tree."""
HUGEPAGES = Path("/proc/sys/vm/nr_hugepages")
MOST_URGENT = -20
"""The niceness that leaves the least to others."""
SESSION = Path("/proc/self/autogroup")
"""Where a session's niceness is, on kernels that share out CPUs by session."""
# $1: the tree. Then pairs of a name and a folder to be seen as /mnt/<name>. The tree itself stays read-only: the lab's image and
# the emulator are made of it.
ENTER = r"""
set -eu
tree=$1
shift
mount --bind "$tree" "$tree"
mount -o remount,bind,ro "$tree"
for folder in run tmp mnt; do mount -t tmpfs tmpfs "$tree/$folder"; done
mount -t proc proc "$tree/proc"
mount --rbind /sys "$tree/sys"
mount --rbind /dev "$tree/dev"
while [ $# -gt 0 ]; do
    mkdir "$tree/mnt/$1"
    mount --bind "$2" "$tree/mnt/$1"
    shift 2
done
exec chroot "$tree" /bin/bash -eu -s
"""


def unavailable() -> str:
    """Why programs of the tree can't run natively, or nothing."""
    if os.geteuid() != 0:
        return "only root may enter the lab's tree and count on a CPU"
    if (os.cpu_count() or 1) < 2:
        return "it takes 2 CPUs: one for the switch, one for all else"
    return ""


def run(tree: Path, script: str, folders: Mapping[str, Path], timeout: float) -> str:
    """What a bash script prints that runs in the tree; ``folders`` are at ``/mnt/<name>`` there. Raises ``RunFailed``."""
    pairs = [word for name, folder in folders.items() for word in (name, str(folder))]
    command = [*cache.as_root(), "--net", "bash", "-c", ENTER, "bash", str(tree), *pairs]
    try:
        ran = subprocess.run(
            command, input=script, capture_output=True, text=True, timeout=timeout, check=False, preexec_fn=_bound_and_first()
        )
    except subprocess.TimeoutExpired as error:
        raise testbeds_messages.command_timed_out(script, timeout) from error
    if ran.returncode != 0:
        raise messages.native_failed(ran.returncode, ran.stderr or ran.stdout)
    return ran.stdout


@contextlib.contextmanager
def hugepages(count: int) -> Iterator[None]:
    """``count`` more hugepages of 2 MiB while it lasts. Raises ``RunFailed`` where the machine does not give them."""
    before = int(HUGEPAGES.read_text())
    try:
        HUGEPAGES.write_text(f"{before + count}\n")
        if (found := int(HUGEPAGES.read_text()) - before) < count:
            raise messages.too_few_hugepages(found, count)
        yield
    finally:
        HUGEPAGES.write_text(f"{before}\n")


def _bound_and_first() -> Callable[[], None]:
    bound = processes.dying_with_parent()

    def before() -> None:
        bound()
        before_others()

    return before


def before_others() -> None:
    """In a child before it executes: it gets its CPU before all others, as far as it may have that."""
    os.setsid()
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, MOST_URGENT)
        SESSION.write_text(str(MOST_URGENT))


@contextlib.contextmanager
def softirqs_first(cpu: int) -> Iterator[None]:
    """While it lasts, the kernel's own thread that works for the network on ``cpu`` comes before all others."""
    thread = next((int(path.parent.name) for path in Path("/proc").glob("[0-9]*/comm") if _name(path) == f"ksoftirqd/{cpu}"), None)
    if thread is None:
        # A container shows no threads of the kernel.
        yield
        return
    before = os.getpriority(os.PRIO_PROCESS, thread)
    try:
        os.setpriority(os.PRIO_PROCESS, thread, MOST_URGENT)
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, thread, before)


def _name(path: Path) -> str:
    # It may have ended meanwhile.
    try:
        return path.read_text().strip()
    except OSError:
        return ""
