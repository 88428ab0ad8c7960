# SPDX-License-Identifier: GPL-2.0-or-later
"""User-Mode Linux as Debian builds it: the kernel as a program, and its modules for Open vSwitch and bridges.

The package is unpacked into build/, not installed, and it is of the suite that the lab is made of.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from vsprof.bench import messages
from vsprof.testbeds import messages as testbeds_messages

PACKAGE = "user-mode-linux"
FOLDER = Path(__file__).resolve().parents[1] / "build" / "bench" / PACKAGE
WANTED = ("kernel/net/openvswitch/openvswitch.ko", "kernel/net/bridge/bridge.ko", "kernel/drivers/net/veth.ko")
KEYS = Path("usr/share/keyrings/debian-archive-keyring.gpg")


def get(tree: Path, say: Callable[[str], None]) -> Path:
    """The folder with ``linux.uml``, ``modules/`` and their ``order``; fetched first, where it is missing. Raises ``VsprofError``."""
    if is_whole():
        return FOLDER
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise testbeds_messages.host_lacks([testbeds_messages.program_missing("apt-get, dpkg-deb", "apt")])
    say(f"fetching Debian's package {PACKAGE} (36 MB), to be unpacked in build/bench and not installed")
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as place:
        _fetch(tree, Path(place))
        _unpack(next(Path(place).glob("*.deb")), Path(place))
    return FOLDER


def is_whole() -> bool:
    """Whether the folder is there, with all modules: one that an earlier vsprof left may lack some."""
    order = FOLDER / "order"
    return order.exists() and {Path(name).name for name in WANTED} <= set(order.read_text().split())


def _fetch(tree: Path, place: Path) -> None:
    """By the sources of the tree and an index of its own, so that this machine's Debian, its version and its index don't matter."""
    for folder in ("lists/partial", "archives/partial"):
        (place / folder).mkdir(parents=True)
    options = {
        "Dir::Etc::SourceList": tree / "etc/apt/sources.list", "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Trusted": tree / KEYS if (tree / KEYS).exists() else Path("/") / KEYS,
        "Dir::State": place, "Dir::State::status": "/dev/null", "Dir::Cache": place,
        "Acquire::Languages": "none", "Acquire::Retries": 5, "APT::Architecture": "amd64",
        # Its sandbox's user may not write here.
        "APT::Sandbox::User": "",
    }  # fmt: skip
    settings = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    for words in (["update"], ["download", PACKAGE]):
        _run(["apt-get", "-q", *settings, *words], place)


def _unpack(package: Path, place: Path) -> None:
    _run(["dpkg-deb", "--extract", str(package), "all"], place)
    modules = next((place / "all/usr/lib/uml/modules").iterdir())
    kept = place / "kept"
    (kept / "modules").mkdir(parents=True)
    shutil.copy2(place / "all/usr/bin/linux.uml", kept)
    order = load_order((modules / "modules.dep").read_text(), WANTED)
    for name in order:
        shutil.copy2(modules / name, kept / "modules")
    # Last, and by its final name: a folder that has it is whole.
    (kept / "order").write_text("".join(f"{Path(name).name}\n" for name in order))
    shutil.rmtree(FOLDER, ignore_errors=True)
    kept.rename(FOLDER)


def load_order(dependencies: str, wanted: tuple[str, ...]) -> list[str]:
    """Modules in the order of their loading, from a modules.dep: there, what a module needs stands in the order of unloading."""
    needs = {name: rest.split() for name, _, rest in (line.partition(":") for line in dependencies.splitlines())}
    order: list[str] = []
    for module in wanted:
        order.extend(name for name in [*reversed(needs[module]), module] if name not in order)
    return order


def _run(command: list[str], place: Path) -> None:
    ran = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300, check=False)
    if ran.returncode != 0:
        raise messages.fetch_failed(PACKAGE, ran.stderr or ran.stdout)
