# SPDX-License-Identifier: GPL-2.0-or-later
"""What `vsprof doctor` says of this very host: something of each switch, and a next move for each thing that is not there."""

import json

import pytest

from vsprof.runner import cli, doctor
from vsprof.runner.experiment import SWITCHES
from vsprof.testbeds.emulator import image
from vsprof.testbeds.native import Native

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("native_can_run")]


@pytest.fixture(scope="module")
def checks():
    image.get(print)
    return {check.name: check for check in doctor.examine()}


def test_each_switch_is_there_with_its_accesses_or_with_a_reason(checks):
    for switch, one in SWITCHES.items():
        check = checks[f"native: {switch}"]
        assert check.ok == (check.seen != "none")
        if check.ok:
            assert set(check.seen.split(", ")) <= set(one.accesses)
        else:
            assert check.remedy


def test_what_is_not_there_has_a_next_move(checks):
    assert {check.name for check in checks.values() if not check.ok and not check.remedy} == set()


def test_the_first_lines_say_what_to_call(checks):
    words = " ".join(doctor.render(list(checks.values())).partition("\n\n")[0].split())
    assert "make profile-vm2vm`" in words
    assert "ovs-userspace" in words
    assert words.endswith("`make profile-vm2vm TESTBED=native`.")


def test_a_testbed_in_use_is_a_line_and_no_error(monkeypatch):
    monkeypatch.setattr("vsprof.testbeds.native.LOCK_SECONDS", 0.2)
    with Native():
        [check] = doctor._native_switches()
    assert "somebody else uses this host" in check.remedy


def test_scripts_get_the_same(checks, capsys):
    assert cli.main(["doctor", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {check["name"] for check in printed} == set(checks)
    assert {"name", "ok", "seen", "serves", "remedy"} == set(printed[0])
