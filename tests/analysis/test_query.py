# SPDX-License-Identifier: GPL-2.0-or-later
"""SQL over a result."""

import json

import pyarrow.parquet as pq
import pytest

from vsprof.analysis import query
from vsprof.analysis.load import load
from vsprof.runner import cli
from vsprof.terms.errors import BadInput


@pytest.fixture(scope="module")
def result(sample, tmp_path_factory):
    return load(sample.write(tmp_path_factory.mktemp("asked"), options={"rx": ("poll", "interrupt")}))


def test_its_tables_are_asked_as_they_are(result):
    found = query.query(result, "SELECT count(*) AS rows, count(DISTINCT run_id) AS runs FROM measurements")
    assert query.rows(found) == [{"rows": len(result.frame), "runs": 12}]


def test_numbers_meet_the_cases_that_they_are_of(result):
    sql = """SELECT c.rx, median(value) AS rate FROM measurements m JOIN cases c USING (case_id)
             WHERE name = 'packet_rate_received' AND traffic = 'udp_flood' GROUP BY c.rx ORDER BY c.rx"""
    found = query.rows(query.query(result, sql))
    assert [row["rx"] for row in found] == ["interrupt", "poll"]
    assert all(row["rate"] > 0 for row in found)


def test_runs_are_a_table(result):
    assert query.rows(query.query(result, "SELECT DISTINCT status FROM runs")) == [{"status": "done"}]


@pytest.mark.parametrize("sql", ["SELECT nothing FROM measurements", "SELEKT", "SELECT * FROM timeline", ""])
def test_what_can_not_be_asked_is_told_with_the_tables(result, sql):
    if sql:
        with pytest.raises(BadInput, match="measurements, functions, stacks, timeline, runs, cases"):
            query.query(result, sql)
    else:
        assert query.text(query.query(result, sql)) == ""


def test_the_command_prints_and_writes(result, tmp_path, capsys):
    sql = "SELECT switch, count(*) AS n FROM measurements GROUP BY switch ORDER BY switch"
    asked = ["query", sql, "--in", str(result.path)]
    assert cli.main([*asked, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["switch"] for row in rows] == ["kernel-ovs", "ovs-dpdk"]
    assert cli.main(asked) == 0
    assert "kernel-ovs" in capsys.readouterr().out
    for name in ("rows.csv", "rows.parquet"):
        assert cli.main([*asked, "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "rows.csv").read_text().splitlines()[0] == "switch,n"
    assert pq.read_table(tmp_path / "rows.parquet").to_pylist() == rows


def test_a_folder_that_is_not_there_is_told(result, tmp_path):
    with pytest.raises(BadInput, match="can't be written"):
        query.write(query.query(result, "SELECT 1"), tmp_path / "none" / "rows.csv")
