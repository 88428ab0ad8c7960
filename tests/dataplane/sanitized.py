# SPDX-License-Identifier: GPL-2.0-or-later
"""vhost-switch and its fuzz targets with AddressSanitizer and UBSan in them, run in the testbed's own tree against its DPDK."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from vsprof.testbeds.emulator import image
from vsprof.testbeds.native import Native

HERE = Path(__file__).resolve().parent
DATAPLANE = HERE.parents[1] / "dataplane"
DPDK = HERE / "fuzz" / "dpdk"
TARGETS = sorted(path.stem for path in DPDK.glob("*.c"))
"""Fuzz targets that need DPDK."""
FOLDER = "/run/sanitized"
EXTRA = "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
COMPILE_SECONDS = 300
MAKE = ["taskset", "-c", f"0-{(os.cpu_count() or 1) - 1}", "make", "-s", f"-j{os.cpu_count()}"]
"""On all CPUs: a process that has this host as its testbed keeps to one, and so would what it starts."""
OPTIONS = "detect_leaks=0:abort_on_error=1"
"""Of AddressSanitizer. DPDK leaves what it made to the end of the process."""


def push_sources(host: Native) -> None:
    """In folders as the project has them."""
    files = [*DATAPLANE.glob("*.[ch]"), DATAPLANE / "Makefile", *DPDK.iterdir(), HERE / "fuzz" / "replay.c", HERE / "fuzz" / "input.h"]
    files = [path for path in files if path.is_file()]
    host.run(f"mkdir -p {' '.join(sorted({f'{FOLDER}/{path.relative_to(HERE.parents[1]).parent}' for path in files}))}")
    for path in files:
        host.push(path.read_bytes(), f"{FOLDER}/{path.relative_to(HERE.parents[1])}")


def switch_with_sanitizers(host: Native) -> str:
    """The path of the program there."""
    push_sources(host)
    host.run(shlex.join([*MAKE, "-C", f"{FOLDER}/dataplane", "build/vhost-switch", f"EXTRA={EXTRA}"]), timeout=COMPILE_SECONDS)
    return f"{FOLDER}/dataplane/build/vhost-switch"


def build_replays(host: Native) -> None:
    """What ``replay`` runs, of all targets at once."""
    push_sources(host)
    programs = [f"replay-{target}" for target in TARGETS]
    host.run(shlex.join([*MAKE, "-C", f"{FOLDER}/tests/dataplane/fuzz/dpdk", *programs]), timeout=COMPILE_SECONDS)


def replay(host: Native, target: str, kept: Path) -> str:
    """Have a target take in all files of a folder, one after the other; what it said at the end."""
    there = f"{FOLDER}/kept/{target}"
    shutil.copytree(kept, host.socket(there), dirs_exist_ok=True)
    # One argument list would be too long for the kernel.
    listed = f"ls {there} | sed 's,^,{there}/,' | xargs -n 1000 {FOLDER}/tests/dataplane/fuzz/dpdk/build/replay-{target}"
    return host.run(listed, timeout=COMPILE_SECONDS).stdout


def build_fuzzers(build: Path) -> None:
    """What ``fuzz`` runs, of all targets at once."""
    options = [f"TREE={image.get(lambda text: None).tree}", f"BUILD={build}"]
    subprocess.run([*MAKE, "-C", str(DPDK), *(f"fuzz-{target}" for target in TARGETS), *options], check=True)


def fuzz(host: Native, target: str, seconds: int, build: Path) -> str:
    """Run a target, built in ``build``, for so long, from all that was kept and what was found before; what libFuzzer said.

    What is new lies in ``build``/corpus-TARGET, and an input that breaks it in ``build``/found. Raises ``RunFailed`` then.
    """
    there, new = f"{FOLDER}/fuzz-{target}", build / f"corpus-{target}"
    local = host.socket(there)
    for folder, source in (("kept", HERE / "fuzz" / "corpus" / target), ("new", new)):
        (local / folder).mkdir(parents=True, exist_ok=True)
        for path in source.iterdir() if source.exists() else ():
            shutil.copy(path, local / folder)
    (local / "found").mkdir(exist_ok=True)
    shutil.copy(build / f"fuzz-{target}", local / "program")
    dictionary = [f"-dict={there}/dictionary"] if _copied(DPDK / f"{target}.dict", local / "dictionary") else []
    words = [
        f"{there}/program", f"-max_total_time={seconds}", "-max_len=4096", "-timeout=10", "-print_final_stats=1",
        f"-artifact_prefix={there}/found/", *dictionary, f"{there}/new", f"{there}/kept",
    ]  # fmt: skip
    try:
        ran = host.run(f"nice -n 19 {shlex.join(words)} 2>&1", timeout=seconds + COMPILE_SECONDS)
    finally:
        shutil.copytree(local / "new", new, dirs_exist_ok=True)
        shutil.copytree(local / "found", build / "found", dirs_exist_ok=True)
    return ran.stdout


def _copied(path: Path, to: Path) -> bool:
    if path.exists():
        shutil.copy(path, to)
    return path.exists()
