# SPDX-License-Identifier: GPL-2.0-or-later
"""`vsprof events`: what it prints on a machine that can count, and on one that can't."""

import json
import os
import re
from pathlib import Path

import pytest

from vsprof.collectors.events import catalogue, probe
from vsprof.collectors.events.probe import Probed, Ran
from vsprof.runner import cli, events
from vsprof.terms import places


@pytest.fixture(autouse=True)
def shipped_files_alone(monkeypatch):
    monkeypatch.setenv(places.EVENTS_NAMED, os.devnull)


def answered(monkeypatch, without: tuple[str, ...] = ()) -> None:
    """Let perf count every event but those with one of ``without`` in their name."""

    def run(command: list[str]) -> Ran:
        supported = not any(word in command[-2] for word in without)
        return (
            Ran(0, f"{'1' if supported else '<not supported>'};;e;{1 if supported else 0};100.00;;")
            if "stat" in command
            else Ran(0, "perf version 6.1")
        )

    real = probe.survey
    monkeypatch.setattr(probe, "survey", lambda known: real(known, run))


def printed(capsys, *arguments: str) -> str:
    assert cli.main(["events", *arguments]) == 0
    return capsys.readouterr().out


def host(monkeypatch, folder: str) -> None:
    monkeypatch.setattr(catalogue.processor, "folder_of", lambda seen, where: folder)


def test_a_machine_that_counts_all(monkeypatch, capsys):
    answered(monkeypatch)
    host(monkeypatch, "zen4")
    text = printed(capsys)
    assert "its events: zen4; perf version 6.1\n39 of 39 events can be counted" in text
    assert "yes  ls_not_halted_cyc " in text
    assert "ls_not_halted_cyc, ex_ret_instr" in next(line for line in text.splitlines() if line.startswith("  yes  cpi "))
    assert "no   walk_cycles " in text
    assert "AMD lists no event" in text


def test_errata_are_shown(monkeypatch, capsys):
    answered(monkeypatch)
    host(monkeypatch, "haswell-ep")
    assert "Instructions retired. (errata: HSD11, HSD140)" in printed(capsys)


def test_one_event_that_is_lacking_is_named_by_its_metrics(monkeypatch):
    answered(monkeypatch, without=("ex_ret_instr",))
    host(monkeypatch, "zen4")
    listing = events.examine()
    assert listing.survey.events["ex_ret_instr"] == Probed(probe.NOT_SUPPORTED)
    assert listing.why_not("cpi") == "can't be counted here: ex_ret_instr"
    assert listing.why_not("cycles") is None


def test_no_pmu_is_one_line(monkeypatch, capsys):
    answered(monkeypatch, without=("cycles", "instructions"))
    host(monkeypatch, "zen5")
    text = printed(capsys)
    assert text.count("no PMU that perf can use") == 1
    assert text.count("<not supported>") == 1
    assert text.count("no PMU") == 1
    assert "not tried" not in text
    assert "yes  context_switches " in text


def test_an_unknown_processor_gets_generic_names_with_a_warning(monkeypatch, capsys):
    answered(monkeypatch)
    host(monkeypatch, "generic")
    text = printed(capsys)
    assert "the catalogue has no events for this processor (" in text
    assert "vendor-defined" in text
    assert json.loads(printed(capsys, "--json"))["vendor_defined"] is True


def test_json_is_for_scripts(monkeypatch, capsys):
    answered(monkeypatch, without=("cycles", "instructions"))
    host(monkeypatch, "zen4")
    known = json.loads(printed(capsys, "--json"))
    assert known["microarchitecture"] == "zen4"
    metrics = {row["name"]: row for row in known["metrics"]}
    assert metrics["l1d_misses_per_packet"]["needs"] == ["l2_request_g1.all_dc", "packets"]
    assert metrics["l1d_misses_per_packet"]["available"] is False
    assert metrics["context_switches"]["available"] is True
    rows = {row["name"]: row for row in known["events"]}
    assert rows["task-clock"]["kind"] == "software"
    assert rows["ex_ret_instr"]["perf"].endswith("/event=0xc0,name=ex_ret_instr/")


def test_no_perf_is_one_line(monkeypatch, capsys):
    monkeypatch.setenv("PATH", os.devnull)
    lines = printed(capsys).splitlines()
    assert lines[0].startswith("processor: ")
    assert lines[0].endswith("; no perf")
    assert "perf not found, so nothing can be counted: install" in "\n".join(lines[1:3])
    assert not [line for line in lines if line.startswith("  yes")]


def test_this_machine_is_listed(capsys):
    known = json.loads(printed(capsys, "--json"))
    assert known["events"]
    assert known["metrics"]
    assert all(row["counted"] or row["why"] or row["state"] for row in known["events"])


def test_an_event_says_what_it_counts_where_it_was_not_tried_and_where_it_failed(monkeypatch, capsys, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('[{"EventName": "my.event", "EventCode": "0xae"}]')
    untried = printed(capsys, "--microarchitecture", "zen4", "--events", str(path))
    assert re.search(r"^  no   ex_ret_instr +Instructions retired\.$", untried, re.MULTILINE)
    assert re.search(r"^  no   my\.event +cpu/event=0xae,name=my\.event/$", untried, re.MULTILINE), "it has no text"
    answered(monkeypatch, without=("ex_ret_instr",))
    host(monkeypatch, "zen4")
    assert "Instructions retired. (not supported)\n" in printed(capsys)


def test_another_processor_is_listed_untried(capsys):
    text = printed(capsys, "--microarchitecture", "neoverse-n1")
    assert text.startswith("events: neoverse-n1\nnot probed: ")
    assert "DTLB_WALK" in text


def test_bad_input_ends_with_2(capsys, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('[{"EventName": "a"}]')
    assert cli.main(["events", "--events", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"vsprof: {path}: a: has no EventCode")
    assert cli.main(["events", "--microarchitecture", "z80"]) == 2


# --- import -------------------------------------------------------------------------------------------------------------

VENDORS = Path(__file__).parents[1] / "collectors" / "events" / "captured" / "vendors"
GNR = VENDORS / "perfmon" / "GNR" / "events" / "graniterapids_core.json"


@pytest.fixture
def own(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(places.EVENTS_NAMED, str(tmp_path))
    return tmp_path


def test_import_says_what_it_wrote_and_what_it_left_out(own, capsys):
    lines = printed(capsys, "import", str(GNR)).splitlines()
    assert lines[0] == f"{GNR} (perfmon): 7 events, 0 metrics of granite-rapids -> {own}/granite-rapids/{GNR.name}"
    assert lines[1].endswith("collector_options: {perf_stat: {events: [INST_RETIRED.ANY]}}")
    assert lines[2] == "left out: 1"
    assert lines[3] == "  1 are in the catalogue already, with the same code: L1D.REPLACEMENT"
    # What was written is listed at once.
    assert "L2_LINES_OUT.SILENT" in printed(capsys, "--microarchitecture", "granite-rapids")


def test_import_for_scripts(own, capsys):
    options = ("import", str(GNR), "--microarchitecture", "emerald-rapids", "--only", "L2*", "OCR*", "--to", str(own / "there"))
    done = json.loads(printed(capsys, *options, "--json"))
    assert done["microarchitecture"] == "emerald-rapids"
    [file] = done["files"]
    assert file["form"] == "perfmon"
    assert file["to"] == str(own / "there" / "emerald-rapids" / GNR.name)
    assert file["events"] == ["L2_LINES_IN.ALL", "L2_LINES_OUT.SILENT", "OCR.READS_TO_CORE.L3_MISS_LOCAL"]
    # Said before the word or after it.
    assert json.loads(printed(capsys, "--json", *options, "--force")) == done


def test_import_of_nothing_known_ends_with_2(own, capsys):
    assert cli.main(["events", "import", str(own / "none.json")]) == 2
    assert capsys.readouterr().err.startswith("vsprof: no events in ")
    assert cli.main(["events", "import", str(GNR)]) == 0
    assert cli.main(["events", "import", str(GNR)]) == 2
    assert "add --force to replace it" in capsys.readouterr().err
