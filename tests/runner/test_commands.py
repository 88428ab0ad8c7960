# SPDX-License-Identifier: GPL-2.0-or-later
"""What every command has: words for scripts, completion, a manual page."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from vsprof.runner import cli

ROOT = Path(__file__).resolve().parents[2]
VSPROF = Path(sys.executable).with_name("vsprof")
WITHOUT_JSON = {"completion", "man"}
"""What prints a file for another program."""


def _commands() -> dict:
    [commands] = [one for one in cli._parser()._actions if hasattr(one, "choices") and one.choices]
    return dict(commands.choices)


def test_every_command_has_json():
    assert _commands().keys() > {"run", "report", "show", "compare", "parse", "doctor", "events", "list", "host", "unhost", "clean"}
    for name, command in _commands().items():
        assert ("--json" in command.format_help()) == (name not in WITHOUT_JSON), name


def test_the_version_is_that_of_the_project():
    said = subprocess.run([VSPROF, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said == f"vsprof {tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}\n"


def test_cleaning_says_what_it_removed_as_json(capsys):
    assert cli.main(["clean", "--json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {"removed", "ended"}


def test_stacks_are_listed_and_written(tmp_path, capsys):
    folded = tmp_path / "folded"
    assert cli.main(["stacks", "reference", "--switch", "ovs-dpdk", "--event", "llc_misses", "--folded", str(folded), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["files"] == {"folded": str(folded)}
    [profile] = told["profiles"]
    assert (profile["by"], profile["data_unit"]) == ("function", "packet")
    assert sum(int(line.rpartition(" ")[2]) for line in folded.read_text().splitlines()) == profile["total"]
    assert cli.main(["stacks", "reference", "--switch", "kernel-ovs", "--against", "ovs-dpdk", "--folded", "-"]) == 0
    assert "vhost;" in capsys.readouterr().out.splitlines()[-1]
    assert cli.main(["stacks", "reference"]) == 0
    assert "llc_misses" in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_the_commands(shell, capsys):
    assert cli.main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in _commands())


def test_bash_takes_the_completion(tmp_path):
    (tmp_path / "completion").write_text(
        subprocess.run([VSPROF, "completion", "bash"], capture_output=True, text=True, check=True, timeout=60).stdout
    )
    asked = f". {tmp_path / 'completion'}; COMP_WORDS=(vsprof comp); COMP_CWORD=1; _shtab_vsprof vsprof comp vsprof; echo ${{COMPREPLY[*]}}"
    said = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.split() == ["compare", "completion"]


def test_the_manual_page_has_every_command(capsys):
    assert cli.main(["man"]) == 0
    page = capsys.readouterr().out
    assert page.startswith('.TH VSPROF "1"')
    assert all(f"vsprof {name}" in page for name in _commands())
    if not shutil.which("man"):
        pytest.skip("man is not installed: the page was not formatted")
    shown = subprocess.run(["man", "--warnings", "-l", "-"], input=page, capture_output=True, text=True, check=True, timeout=60)
    assert "NAME" in shown.stdout


def test_a_reader_that_has_enough_is_no_error():
    said = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {VSPROF} man | head -1"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (said.returncode, said.stderr) == (0, "")


def test_a_reader_that_leaves_early_changes_no_exit_status():
    asked = f"set -o pipefail; {VSPROF} compare kernel-ovs ovs-dpdk --in reference --json --fail-on 'throughput<100' | head -1"
    assert subprocess.run(["bash", "-c", asked], cwd=ROOT, capture_output=True, check=False, timeout=120).returncode == 1
