# SPDX-License-Identifier: GPL-2.0-or-later
"""What every command has: words for scripts, completion, a manual page."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from vsprof.collectors.events import catalogue
from vsprof.collectors.uarch_model import profiles, spots
from vsprof.runner import cli, experiment, manual, names, results
from vsprof.terms import places

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


@pytest.mark.parametrize("command", [[VSPROF], [sys.executable, "-m", "vsprof"]], ids=["by name", "as a module"])
def test_the_version_is_that_of_the_project(command):
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said == f"vsprof {tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}\n"


@pytest.mark.usefixtures("places")
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


def test_a_dry_run_says_what_would_be_run_and_begins_no_result(capsys):
    before = set(results.ROOT.glob("*"))
    asked = ["run", "vm2vm", "--testbed", "lab", "--repeat", "2", "--dry-run"]
    assert cli.main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == 2 * len(told["cases"]) == 4
    assert told["testbed"] == "lab"
    assert "udp_flood-saturation" in told["traffic"]
    assert cli.main(asked) == 0
    said = capsys.readouterr().out
    assert all(case in said for case in told["cases"])
    assert "4 runs of these cases, 2 of each" in said
    assert cli.main([*asked, "--frame-size", "7"]) == 2
    assert cli.main(["run", "--resume", "reference", "--dry-run"]) == 2
    assert set(results.ROOT.glob("*")) == before


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"traffic": [{"kind": "udp_flod"}]}, "udp_flod"),
        ({"collectors": ["perf_sat"]}, "perf_sat"),
        ({"notebook": "vm2vn"}, "vm2vn"),
        ({"traffic": [{"kind": "udp_flood", "load": "equal"}]}, "its keys together: "),
        ({"testbeds": {"native": {"notebook": "vm2vn"}}}, "vm2vn"),
        ({"testbeds": {"moon": {}}}, "moon"),
    ],
)
def test_the_list_tells_what_a_run_would_refuse(wrong, said, tmp_path, monkeypatch, capsys):
    whole = yaml.safe_load((places.ROOT / "experiments" / "vm2vm.yaml").read_text()) | wrong
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "mine.yaml").write_text(yaml.safe_dump(whole))
    monkeypatch.setattr(places, "folders", lambda name: [places.ROOT / name, tmp_path / name])
    assert cli.main(["list"]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert "Value error" not in printed.err
    assert "vm2vm" in printed.out


def test_the_list_takes_what_is_right_on_each_testbed(tmp_path, monkeypatch, capsys):
    whole = yaml.safe_load((places.ROOT / "experiments" / "vm2vm.yaml").read_text())
    flood = {"kind": "udp_flood", "load": "equal"}
    whole["traffic"] = [
        {**flood, "rate_pps": 1000, "testbeds": ["lab"]},
        {**flood, "rate_pps": 2000, "testbeds": ["native"]},
        {"kind": "idle"},
    ]
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "mine.yaml").write_text(yaml.safe_dump(whole))
    monkeypatch.setattr(places, "folders", lambda name: [places.ROOT / name, tmp_path / name])
    assert cli.main(["list"]) == 0
    assert "mine" in capsys.readouterr().out


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


# --- Names, as a shell asks for them ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Complete the last of some words in bash, with one result and a plug-in of the user's own."""
    place = tmp_path_factory.mktemp("shell")
    script = subprocess.run([VSPROF, "completion", "bash"], capture_output=True, text=True, check=True, timeout=60).stdout
    (place / "completion").write_text(script)
    (place / "results" / "20260101-mine").mkdir(parents=True)
    (place / "results" / "20260101-mine" / "manifest.json").write_text("{}")
    (place / "vsprof.d" / "experiments").mkdir(parents=True)
    (place / "vsprof.d" / "experiments" / "my-question.yaml").write_text("")

    def complete(*words: str) -> list[str]:
        line = " ".join(f"'{word}'" for word in ("vsprof", *words))
        ask = f". ./completion; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _shtab_vsprof; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        own = {**os.environ, "VSPROF_RESULTS": "results"}
        said = subprocess.run(["bash", "-c", ask], cwd=place, env=own, capture_output=True, text=True, check=True, timeout=60)
        return said.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (["run", "my"], {"my-question"}),
        (["sweep", "vm2h"], {"vm2host", "vm2host-causes"}),
        *(([command, "2026"], {"20260101-mine"}) for command in ("report", "show", "timeline", "notebook", "parse", "stacks")),
        (["compare", "20260101-mine", "2026"], {"20260101-mine"}),
        (["query", "SELECT 1", "--in", "2026"], {"20260101-mine"}),
        (["run", "--resume", "2026"], {"20260101-mine"}),
        (["run", "vm2vm", "--collectors", "soft"], {"softirqs"}),
        (["run", "vm2vm", "--collectors", "cpu_time,soft"], {"cpu_time,softirqs"}),
        (["run", "vm2vm", "--switches", "ovs-dpdk,ker"], {"ovs-dpdk,kernel-ovs"}),
        (["run", "vm2vm", "--cpu-profile", "zen"], {"zen4", "zen5"}),
        (["run", "vm2vm", "--testbed", "na"], {"native"}),
        (["stacks", "--event", "l1d_mis"], {"l1d_misses"}),
        (["stacks", "--traffic", "udp"], {"udp_flood"}),
        (["events", "--microarchitecture", "zen"], {"zen4", "zen5"}),
    ],
)  # fmt: skip
def test_bash_completes_names(asked, words, some):
    assert some <= set(asked(*words))


def test_names_are_those_that_the_code_knows():
    assert names.of("experiments") == experiment.names()
    assert names.of("collectors") == sorted([*experiment.COLLECTORS, "auto"])
    assert names.of("switches") == sorted(experiment.SWITCHES)
    assert names.of("traffics") == sorted(experiment.TRAFFIC)
    assert names.of("testbeds") == sorted([*experiment.TESTBEDS, "auto"])
    assert names.of("profiles") == profiles.names()
    assert names.of("processors") == catalogue.names()
    known = catalogue.load("zen4")
    shared = {name for name in known.metrics if name.endswith(("_per_packet", "_per_kilo_instructions"))}
    assert set(known.events) <= set(names.of("events"))
    assert not shared & set(names.of("events"))
    assert set(spots.KINDS[1:]) <= set(names.of("events"))


def test_names_of_cases_are_what_compare_takes(monkeypatch):
    monkeypatch.setattr(places, "RESULTS", ROOT / "results")
    monkeypatch.setattr(names, "LATEST", "reference")
    assert {"reference", "kernel-ovs", "ovs-dpdk", "vhost-net", "vm2vm_ovs-dpdk_vhost-user_64B_1f"} <= set(names.of("cases"))


@pytest.mark.parametrize("content", ["", "[1", "[]", "{}", '{"cases": []}'])
def test_a_broken_result_keeps_no_shell_waiting(content, tmp_path, monkeypatch):
    (tmp_path / "latest").mkdir()
    (tmp_path / "latest" / "manifest.json").write_text(content)
    monkeypatch.setattr(places, "RESULTS", tmp_path)
    assert names.of("cases") == ["latest"]


def test_a_shell_gets_names_without_what_takes_long_to_import():
    program = (
        "import sys; from vsprof.runner import entry; sys.argv[1:] = ['names', 'experiments']; assert entry.main() == 0;"
        "print({name for name in sys.modules} & {'pandas', 'numpy', 'pydantic', 'yaml', 'pyarrow', 'vsprof.runner.cli'})"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.splitlines()[-1] == "set()"
    assert "vm2vm" in said.splitlines()


def test_names_are_for_scripts_too(capsys):
    assert cli.main(["names", "profiles", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == profiles.names()


def test_every_shell_has_a_function_for_each_kind_of_name():
    for shell in ("bash", "zsh"):
        said = subprocess.run([VSPROF, "completion", shell], capture_output=True, text=True, check=True, timeout=60).stdout
        for own in ("experiments", "results", "cases", "collectors_list", "profiles", "events"):
            assert f"\n_vsprof_{own}() {{" in said
            assert said.count(f"_vsprof_{own}") > 1, "nothing uses it"


def test_the_manual_page_has_every_command(capsys):
    assert cli.main(["man"]) == 0
    page = capsys.readouterr().out
    assert page.startswith('.TH VSPROF "1"')
    assert all(f"vsprof {name}" in page for name in _commands())
    if not shutil.which("man"):
        pytest.skip("man is not installed: the page was not formatted")
    shown = subprocess.run(["man", "--warnings", "-l", "-"], input=page, capture_output=True, text=True, check=True, timeout=60)
    assert all(heading in shown.stdout for heading in ("NAME", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"))
    assert shown.stderr == ""


def section(heading: str) -> str:
    page = manual.page(cli._parser()).replace("\\-", "-").replace("\\(aq", "'").replace("\\(ti", "~").replace("\\&", "")
    assert page.count(f".SH {heading}\n") == 1
    return page.partition(f".SH {heading}\n")[2].partition("\n.SH ")[0]


def test_the_manual_page_has_each_exit_status_as_the_docs_have():
    listed = re.findall(
        r"^\| (\d+) \| (.*) \|$", (ROOT / "docs" / "experiments.md").read_text().partition("## Exit status")[2], re.MULTILINE
    )
    assert [int(number) for number, _ in listed] == sorted(manual.EXIT_STATUS)
    for number, text in manual.EXIT_STATUS.items():
        assert f"\\fB{number}\\fR\n{text}" in section("EXIT STATUS")


def test_the_manual_page_has_every_variable_that_the_code_looks_at():
    packages = ("analysis", "bench", "collectors", "runner", "switches", "terms", "testbeds", "workloads")
    code = [path.read_text() for package in packages for path in (ROOT / package).rglob("*.py")]
    looked_at = {name for text in code for name in re.findall(r'"((?:VSPROF|XDG)_[A-Z_]+)"', text)}
    assert looked_at == set(manual.ENVIRONMENT)
    assert all(f"\\fB{name}\\fR" in section("ENVIRONMENT") for name in looked_at)


def test_the_manual_page_has_the_files_of_a_result_and_of_a_user():
    said = section("FILES")
    assert all(name in said for name in (*results.TABLES, results.MANIFEST, "vsprof.d/", "~/.cache/vsprof/", "~/.config/vsprof/events/"))


def test_the_examples_of_the_manual_page_are_commands():
    for example in manual.EXAMPLES:
        program, *words = shlex.split(example)
        assert program == "vsprof"
        assert callable(cli._parser().parse_args(words).do)
        assert f"\\fB{example}\\fR" in section("EXAMPLES")
    assert {"vm2vm", "vm2host"} <= set(names.of("experiments"))


def test_a_reader_that_has_enough_is_no_error():
    said = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {VSPROF} man | head -1"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (said.returncode, said.stderr) == (0, "")


def test_a_reader_that_leaves_early_changes_no_exit_status():
    asked = f"set -o pipefail; {VSPROF} compare kernel-ovs ovs-dpdk --in reference --json --fail-on 'throughput<100' | head -1"
    assert subprocess.run(["bash", "-c", asked], cwd=ROOT, capture_output=True, check=False, timeout=120).returncode == 1
