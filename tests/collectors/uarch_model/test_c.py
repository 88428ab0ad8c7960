# SPDX-License-Identifier: GPL-2.0-or-later
"""The processor model's own tests, in C: each test_*.c here is compiled with the sanitizers and the model's sources, and run."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
C_FOLDER = HERE.parents[2] / "collectors" / "uarch_model"
FLAGS = ("-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# The last: QEMU exports its functions, too, and the plug-in looks for them by name.
LIBRARIES = ("-lpthread", "-lm", "-ldl", "-rdynamic")
NEEDS_QEMU = {path.stem for path in C_FOLDER.glob("plugin*.c")}
"""Included by their test."""
PARTS_OF_CORE = {path.stem for path in C_FOLDER.glob("core_*.c")}
"""Tested through core.h, by test_core and test_core_naive."""
PROGRAMS = sorted(path.stem for path in HERE.glob("test_*.c"))
PATIENCE_SECONDS = 120


def run(command: Sequence[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)


@pytest.fixture(scope="session")
def gcc(tmp_path_factory):
    """The compiler, if it has the sanitizers and what they make of a program runs here."""
    if not (found := shutil.which("gcc")):
        pytest.skip("no gcc here: the model's tests in C are not run")
    folder = tmp_path_factory.mktemp("sanitizers")
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    for command in ([found, *FLAGS, "empty.c", "-o", "empty"], ["./empty"]):
        if (tried := run(command, folder)).returncode:
            pytest.skip(f"gcc has no sanitizers that work here: {(tried.stderr or 'a program made with them fails').strip()[-300:]}")
    return found


@pytest.fixture(scope="session")
def model(gcc, tmp_path_factory):
    """All of the model but the glue to QEMU, compiled once."""
    folder = tmp_path_factory.mktemp("model")
    sources = [path for path in sorted(C_FOLDER.glob("*.c")) if path.stem not in NEEDS_QEMU]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda path: run([gcc, *FLAGS, "-c", path, "-o", f"{path.stem}.o"], folder), sources))
    wrong = "".join(one.stderr for one in done if one.returncode)
    assert not wrong, wrong
    return [folder / f"{path.stem}.o" for path in sources]


@pytest.fixture
def run_program(gcc, model, tmp_path):
    """Compile a test program, run it in a folder of its own, and complain about anything but success."""

    def compile_and_run(name: str, *arguments: str) -> None:
        program = tmp_path / name
        command = [gcc, *FLAGS, f"-I{C_FOLDER}", HERE / f"{name}.c", *model, *LIBRARIES, "-o", program]
        for step in (command, [program, *arguments]):
            done = run(step, tmp_path)
            assert done.returncode == 0, f"{done.stdout}{done.stderr}"

    return compile_and_run


def test_every_module_has_a_test():
    modules = {path.stem for path in C_FOLDER.glob("*.c")} - NEEDS_QEMU - PARTS_OF_CORE - {"counters"}  # no more than names and a sum
    assert {f"test_{module}" for module in modules} <= set(PROGRAMS)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "test_model"])
def test_in_c(run_program, name):
    run_program(name)


def counters_of(modes: dict) -> dict[str, int]:
    """All modes together, without the cycles: those are rounded, each by itself."""
    total: dict[str, int] = {}
    for counters in modes.values():
        for name, count in counters.items():
            if not name.startswith("cycles"):
                total[name] = total.get(name, 0) + count
    return total


def test_model_and_the_window_it_writes(run_program, tmp_path):
    run_program("test_model", "window.json")
    window = json.loads((tmp_path / "window.json").read_text())
    assert window["seconds"] > 0
    first, second, third = window["cores"]

    assert counters_of(first["modes"])["instructions"] == 21220
    assert set(first["modes"]) == {"host_kernel", "host_user"}
    assert [(task["id"], task["name"]) for task in first["tasks"]] == [(-1, ""), (1, "quote? back?sl?"), (0, "sixteen letters!")]
    assert [counters_of(task["modes"])["instructions"] for task in first["tasks"]] == [100, 20000, 1120]
    # What the threads of a core did is what the core did, counter by counter.
    assert counters_of({i: counters_of(task["modes"]) for i, task in enumerate(first["tasks"])}) == counters_of(first["modes"])
    assert first["hooks"] == {"a_hook/host_user/0": [2, 100], "a_hook/host_user/1": [4, 32]}
    # The third poll has no end.
    assert [task.get("empty_polls") for task in first["tasks"]] == [None, None, 2]
    assert first["tasks"][2]["empty"]["instructions"] == 60

    assert set(second["modes"]) == {"guest_kernel", "guest_user"}
    assert [(task["id"], task["name"]) for task in second["tasks"]] == [(2**32 - 2, "??t??")]
    assert (third["modes"], third["tasks"], third["hot"]) == ({}, [], {"dropped": 0, "stacks_lost": 0, "stacks": [], "spots": []})
    for core in window["cores"]:
        assert core["walks_failed"] == 0
        assert core["sample_every"] == 500
        for counters in core["modes"].values():
            parts = sum(value for name, value in counters.items() if name.startswith("cycles_"))
            assert abs(parts - counters["cycles"]) <= len(counters)


def test_the_hot_spots_of_a_window(run_program, tmp_path):
    run_program("test_model", "window.json")
    first, second, _ = json.loads((tmp_path / "window.json").read_text())["cores"]
    kinds = re.search(r"#define HOT_KINDS\(X\) (.*)", (C_FOLDER / "hot.h").read_text())[1]
    kinds = re.findall(r"X\((\w+)\)", kinds)

    counted, empty = counters_of(first["modes"]), first["tasks"][2]["empty"]
    for at, kind in enumerate(kinds[1:], 4):
        assert sum(spot[at] for spot in first["hot"]["spots"]) == counted.get(kind, 0) - empty.get(kind, 0), kind
    samples = sum(spot[3] for spot in first["hot"]["spots"])
    assert 30 <= samples <= 56, "one in 500 instructions, more or less"
    assert {int(spot[0], 16) for spot in first["hot"]["spots"]} <= {0, 0x400000, 0xFFFFFFFF81000000}
    assert {spot[1] for spot in first["hot"]["spots"]} == {-1, 0, 1}
    assert {spot[2] for spot in second["hot"]["spots"]} <= {2, 3}
