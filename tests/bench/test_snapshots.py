# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of ``make bench-snapshots``, and what it keeps of an unsound lab. The labs themselves are put in."""

import json

import pytest

from vsprof.bench import snapshots, table
from vsprof.testbeds import messages as testbeds_messages


def test_no_boot_is_no_answer(capsys):
    with pytest.raises(SystemExit) as ended:
        snapshots.main(["--count", "0"])
    assert ended.value.code == 2
    assert "--count 0: boot it once at least" in capsys.readouterr().err


@pytest.mark.parametrize("bad", [(), (2,)])
def test_each_boot_is_counted_and_the_unsound_are_kept(monkeypatch, tmp_path, capsys, bad):
    number = iter(range(1, 4))
    fault = testbeds_messages.lab_unsound(["CPU 3 took no timer interrupts"])
    fault.registers = ["SYNTHETIC registers"]
    monkeypatch.setattr(snapshots, "boot", lambda made, shape: fault if next(number) in bad else None)
    monkeypatch.setattr(snapshots.image, "get", lambda say: None)
    monkeypatch.setattr(table, "FOLDER", tmp_path)
    assert snapshots.main(["--count", "3"]) == (1 if bad else 0)
    rows = {row["name"]: row["value"] for row in json.loads((tmp_path / "bench-snapshots.json").read_text())}
    assert rows["snapshots_unsound_share"] == pytest.approx(len(bad) / 3)
    kept = json.loads((tmp_path / "bench-snapshots-unsound.json").read_text())
    assert [one["boot"] for one in kept] == list(bad)
    assert capsys.readouterr().out.count(": sound (") == 3 - len(bad)
    assert all(one["registers"] == ["SYNTHETIC registers"] and "CPU 3 took no timer" in one["why"] for one in kept)
