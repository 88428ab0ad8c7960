# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things are, in a clone and once installed; and a user's own plug-ins, in a folder of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vsprof.terms import places

COLLECTOR = """
from collections.abc import Iterable
from vsprof.collectors.base import Collector, Marks, Recorded
from vsprof.terms.schema import Number

class Mine(Collector):
    def begin(self) -> str: return "true"
    def end(self) -> str: return "true"
    def numbers(self, recorded: Recorded) -> Iterable[Number]: return []

COLLECTOR = Mine
"""
EVENTS = '[{"EventName": "my.event", "EventCode": "0x76", "UMask": "0x00", "BriefDescription": "Mine"}]'
ASK = """
from vsprof.collectors.events import catalogue
from vsprof.collectors.uarch_model import profiles
from vsprof.runner import experiment
print("mine" in experiment.names(), "mine" in experiment.COLLECTORS, "mine" in profiles.names())
print([path.name for path in __import__("vsprof.terms.places").terms.places.folders("notebooks")[0].glob("*.py")])
"""


def fill(folder: Path) -> None:
    texts = {
        "experiments/mine.yaml": (places.ROOT / "experiments" / "vm2vm.yaml").read_text().replace("notebook: vm2vm", "notebook: own"),
        "notebooks/own.py": (places.ROOT / "notebooks" / "vm2vm.py").read_text(),
        "collectors/mine.py": COLLECTOR,
        "profiles/mine.yaml": (places.ROOT / "collectors/uarch_model/profiles/zen4.yaml").read_text(),
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("named", [True, False], ids=["named", "vsprof.d"])
def test_plug_ins_of_a_folder_of_ones_own_are_found(tmp_path, named):
    folder = tmp_path / ("elsewhere" if named else "vsprof.d")
    fill(folder)
    environment = {**os.environ, "PYTHONPATH": str(places.IMPORTED_FROM), **({places.PLUGINS: str(folder)} if named else {})}
    said = subprocess.run(
        [sys.executable, "-c", ASK], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert said.stdout.splitlines() == ["True True True", "['own.py']"]


@pytest.mark.parametrize("text", ["import nothing_of_that_name\n", "def (:\n"])
def test_a_plug_in_of_ones_own_that_is_broken_is_named(tmp_path, text):
    (tmp_path / "vsprof.d" / "collectors").mkdir(parents=True)
    (tmp_path / "vsprof.d" / "collectors" / "mine.py").write_text(text)
    said = vsprof(tmp_path, "list")
    assert said.returncode == 2
    assert "collectors/mine.py can't be imported" in said.stderr
    assert "Traceback" not in said.stderr


def test_results_are_where_the_command_line_says(tmp_path):
    said = vsprof(tmp_path, "--results", "mine", "show", "none")
    assert said.returncode == 2
    assert "there is none yet" in said.stderr


def vsprof(folder, *words):
    command = [sys.executable, "-m", "vsprof.runner.entry", *words]
    environment = {**os.environ, "PYTHONPATH": str(places.IMPORTED_FROM)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_folder_that_is_not_there_is_said_before_anything_is_done(tmp_path):
    command = [sys.executable, "-m", "vsprof.runner.entry", "--plugins", str(tmp_path / "none"), "list"]
    environment = {**os.environ, "PYTHONPATH": str(places.IMPORTED_FROM)}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (said.returncode, said.stdout) == (2, "")
    assert "no such folder" in said.stderr


def test_in_a_clone_everything_is_in_the_clone():
    assert places.IN_CLONE
    assert places.BUILD == places.ROOT / "build"
    assert places.folders("experiments") == [places.ROOT / "experiments"]
