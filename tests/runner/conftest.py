# SPDX-License-Identifier: GPL-2.0-or-later
"""A sound experiment to change one thing of, and a results folder of the test's own."""

import copy
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from vsprof.runner import results
from vsprof.testbeds import native
from vsprof.testbeds.lab import Lab

SOUND: dict[str, Any] = {
    "question": "Which is faster?",
    "notebook": "vm2vm",
    "fixed": {"topology": "vm2vm", "access": "auto", "frame_bytes": 64, "flows": 1},
    "vary": {"switch": ["kernel-ovs", "ovs-dpdk"]},
    "traffic": [{"kind": "udp_flood"}],
    "repetitions": 2,
    "collectors": ["softirqs"],
}


@pytest.fixture
def document() -> dict[str, Any]:
    """The experiment's YAML as a dictionary, to be changed."""
    return copy.deepcopy(SOUND)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[Any], Path]:
    """Write an experiment (or any text) and return its path."""

    def write(content: Any) -> Path:
        path = tmp_path / "mine.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in the place of results/."""
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.setattr(Lab, "open", _never)
    monkeypatch.setattr(results, "ROOT", folder)
    # ROOT is also the default of these functions' arguments, which was taken when they were defined.
    monkeypatch.setattr(results.Results.create.__func__, "__defaults__", (folder,))
    monkeypatch.setattr(results.Results.open.__func__, "__defaults__", (folder,))
    return folder


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder, a cache and a host's own files that nobody else uses: what is to be cleaned is known, and others' work stays."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("VSPROF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(native, "FOLDERS", tmp_path / "native")
    return tmp_path


def _never(lab: Lab) -> None:
    raise AssertionError("a unit test must not start the lab: the input should have been refused")
