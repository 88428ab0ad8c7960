# SPDX-License-Identifier: GPL-2.0-or-later
"""A Debian tree: mmdebstrap unpacks a suite, and Ansible's roles make of it what it shall be. The lab's root is one, and so are the trees
of other releases beside it.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vsprof.terms import places
from vsprof.testbeds import messages, processes
from vsprof.testbeds.emulator import cache, needs

ANSIBLE = places.ROOT / "ansible"
DATAPLANE = places.ROOT / "dataplane"
DATAPLANE_SOURCES = ("*.c", "*.h", "Makefile", "probe/*.c", "probe/*.h", "probe/Makefile", "flood/*.c", "flood/*.h", "flood/Makefile")
"""What the role vhost_switch compiles."""
LAB_SUITE = "trixie"
"""The lab's own. A line of sources.list in VSPROF_MIRROR names it; for another suite's tree its name is put there."""
ATTEMPTS = 3
"""How often a build is tried: mirrors move on, and downloads break off."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Built:
    """A built tree, and the disk that was made of it."""

    folder: Path

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def disk(self) -> Path:
        return self.folder / "disk.raw"


@dataclass(frozen=True)
class Recipe:
    """What makes a tree."""

    suite: str
    packages: Sequence[str]
    """What Ansible needs to take over; every other package comes from a role."""
    playbook: str
    """A file of ansible/."""
    options: Sequence[str] = ()
    """More of mmdebstrap's."""

    def build(self, folder: Path, variables: Mapping[str, str], log: Path, say: Say) -> None:
        """Make the tree in ``folder/tree``. Raises ``VsprofError`` with the log's end when that fails again and again."""
        for attempt in range(1, ATTEMPTS + 1):
            if self._try(folder, variables, log, say):
                return
            cache.remove(folder / "tree")
            if attempt == ATTEMPTS:
                raise messages.tree_build_failed(self.suite, ATTEMPTS, log, _tail(log))
            say(f"building the tree failed (see {log}); trying again")

    def _try(self, folder: Path, variables: Mapping[str, str], log: Path, say: Say) -> bool:
        """Run mmdebstrap with the Ansible roles as its hook; whether it went well. Everything printed goes to ``log``."""
        command = [
            *cache.as_root(), "mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(self.packages)}",
            "--aptopt=Acquire::Retries \"5\"",
            # The image can be built again at any time: flushing each file to the disk would only cost minutes.
            "--dpkgopt=force-unsafe-io",
            *(f"--dpkgopt=path-exclude={p}" for p in ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*")),
            "--dpkgopt=path-include=/usr/share/doc/*/copyright",
            *self.options,
            f"--customize-hook={self._roles_hook(variables)}",
            self.suite, str(folder / "tree"),
        ]  # fmt: skip
        if given := os.environ.get("VSPROF_MIRROR"):
            command.append(mirror(given, self.suite))
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

    def _roles_hook(self, variables: Mapping[str, str]) -> str:
        given = {"ansible_connection": "tree", "debian_release": self.suite, **variables}
        playbook = [
            sys.executable, "-m", "ansible", "playbook", str(ANSIBLE / self.playbook),
            "--inventory", "tree,", "--extra-vars", json.dumps(given),
        ]  # fmt: skip
        # mmdebstrap gives the tree's path as the hook's first argument.
        return shlex.join(playbook) + ' --extra-vars ansible_host="$1"'


def mirror(given: str, suite: str) -> str:
    """VSPROF_MIRROR for a suite: a URL serves all; of a line of sources.list, which names the lab's own, this suite's."""
    return re.sub(rf"(?<=\s){LAB_SUITE}\b", suite, given)


def make_disk(tree: Path, disk: Path, size: int) -> None:
    """Pack a tree into an ext4 image of ``size`` bytes, with holes where nothing is."""
    disk.touch()
    os.truncate(disk, size)
    run([*cache.as_root(), needs.MKE2FS, "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d", str(tree), str(disk)])


def hashed(what: object, files: Iterable[Path]) -> str:
    """A name for what is made of ``what`` and of ``files``: another hash is another tree."""
    digest = hashlib.sha256(repr(what).encode())
    for path in sorted(files):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def dataplane_sources() -> list[Path]:
    return [path for pattern in DATAPLANE_SOURCES for path in DATAPLANE.glob(pattern)]


def run(command: Sequence[str]) -> str:
    """Run a step of the build and return what it printed. Raises ``VsprofError`` with its own words."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL)
    if ran.returncode != 0:
        raise messages.build_step_failed(list(command), ran.returncode, ran.stderr or ran.stdout)
    return ran.stdout


def _tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
