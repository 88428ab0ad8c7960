# SPDX-License-Identifier: GPL-2.0-or-later
"""What bench-gate makes of a gate's answers; the campaigns themselves need the lab."""

import json
import subprocess
from pathlib import Path

import pytest

from vsprof.bench import gate
from vsprof.runner import experiment as experiments
from vsprof.terms import errors
from vsprof.terms.errors import RunFailed
from vsprof.testbeds.emulator import image

RULE = {"rule": gate.RULE, "ratio": 0.8, "low": 0.79, "high": 0.82}


class Answers:
    """Stands in for vsprof: what it prints, with which status, and how it was called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **status: int) -> None:
        self.status, self.called = status, []
        monkeypatch.setattr(subprocess, "run", self)

    def __call__(self, command, *, env, **_):
        words = command[3:]
        self.called.append((words[0], gate.MINE in env))
        if words[0] == "run":
            made = Path(env["VSPROF_RESULTS"]) / f"campaign-{len(self.called)}"
            made.mkdir()
            (made.parent / "latest").symlink_to(made.name)
        printed = json.dumps({"comparisons": [], "gate": {"outcome": "", "rules": [RULE]}})
        return subprocess.CompletedProcess(command, self.status.get(words[0], 0), printed, "went wrong")


def campaigns(tmp_path: Path) -> gate.Campaigns:
    return gate.Campaigns(tmp_path / "results", Path("gate.yaml"), tmp_path / "slowed")


def test_each_round_asks_about_a_slowed_switch_and_about_a_repeat(tmp_path, monkeypatch):
    answers = Answers(monkeypatch, compare=1)
    found = gate.judged(campaigns(tmp_path), 2, lambda text: None)
    assert [(one.number, one.kind, one.right) for one in found] == [
        (1, "slowed", True), (1, "repeat", False), (2, "slowed", True), (2, "repeat", False)
    ]  # fmt: skip
    assert [mine for command, mine in answers.called if command == "run"] == [False, True, False, True, False]
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["0", "1", "1-slowed", "2", "2-slowed"]


@pytest.mark.parametrize(
    ("kind", "status", "right"),
    [("slowed", 1, True), ("slowed", 0, False), ("slowed", 3, False), ("repeat", 0, True), ("repeat", 1, False), ("repeat", 3, False)],
)
def test_only_one_verdict_is_right(tmp_path, monkeypatch, kind, status, right):
    Answers(monkeypatch, compare=status)
    verdict = campaigns(tmp_path).judge(1, kind, "0", "1")
    assert verdict.right == right
    assert ("WRONG" in str(verdict)) != right


def test_a_verdict_without_an_interval_is_told():
    assert str(gate.Verdict(1, "repeat", "can't tell", 1.0, None, None)) == "repeat 1: can't tell, ratio 1.000 no interval: WRONG"


@pytest.mark.parametrize("status", [{"run": 2}, {"compare": 2}])
def test_what_fails_is_no_verdict(tmp_path, monkeypatch, status):
    Answers(monkeypatch, **status)
    with pytest.raises(RunFailed, match="exit status 2: went wrong"):
        gate.judged(campaigns(tmp_path), 1, lambda text: None)


def test_it_ends_with_the_image_s_error(monkeypatch, capsys):
    def no_image(say):
        raise errors.BadInput("no qemu here")

    monkeypatch.setattr(image, "get", no_image)
    assert gate.main([]) == 2
    assert capsys.readouterr().err == "bench-gate: no qemu here\n"


@pytest.mark.long
@pytest.mark.lab
def test_the_slowed_switch_is_compiled_for_the_image(lab_can_run, tmp_path):
    slowed = gate.compile_slowed(image.get(print).tree, tmp_path / "slowed")
    assert b"extra_copy" in slowed.read_bytes()


def test_its_experiment_is_of_one_switch_and_can_be_judged():
    _, experiment = experiments.load(str(gate.HERE / "gate.yaml"))
    [case] = experiments.cases(experiment)
    assert case.values["switch"] == "vhost-switch"
    assert experiment.repetitions >= 3
