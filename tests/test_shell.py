# SPDX-License-Identifier: GPL-2.0-or-later
"""Each shell script of the project, by shellcheck."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def _scripts() -> list[str]:
    """Paths in git of what begins with a shell's name, and of what only scripts source; none where this is no clone, or another user's."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    return [path for path in listed if path.endswith(".sh") or _first_line(ROOT / path).endswith(b"sh")]


def _first_line(path: Path) -> bytes:
    """Nothing of what does not name its program."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        line = file.readline(100).strip()
    return line if line.startswith(b"#!") else b""


def test_scripts_are_found():
    if not _scripts():
        pytest.skip("git lists no files here: shell scripts are not checked")
    assert {"tools/setup", ".ci/run", "bench/switch_common.sh", "testbeds/private.sh"} <= set(_scripts())


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed: `make test-tools`")
@pytest.mark.parametrize("script", _scripts())
def test_shellcheck_finds_nothing(script):
    ran = subprocess.run(["shellcheck", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
