# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading results, good and bad."""

from __future__ import annotations

import json

import pytest

from analysis.load import load
from terms.errors import BadInput


def test_cases_come_in_one_order_and_are_named(three_accesses):
    labels = ["kernel-ovs · virtio-net", "kernel-ovs · vhost-net", "ovs-dpdk · vhost-user"]
    assert list(three_accesses.cases["label"]) == labels


def test_values_that_vary_are_part_of_the_name(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", frames=(1518, 64), repetitions=1))
    assert list(result.cases["setting"]) == ["64 B", "1518 B"] * 2


def test_failed_runs_are_kept_out_and_listed(sample, tmp_path):
    run = "ovs-dpdk+vhost-user+64#2"
    result = load(sample.write(tmp_path / "r", failed=(run,)))
    assert run not in set(result.frame["run_id"])
    assert [failed["run_id"] for failed in result.failed] == [run]
    assert any("the switch ended by itself" in text for text in result.limits())
    assert result.repetitions == 2


def test_numbers_of_another_testbed_or_source_never_share_an_axis(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", testbeds=("lab", "native")))
    assert set(result.numbers["testbed"]) == {"lab"}
    assert any("native" in text for text in result.limits())


def test_no_result(tmp_path):
    with pytest.raises(BadInput, match=r"manifest.json is missing"):
        load(tmp_path)


def test_no_measurements(sample, tmp_path):
    path = sample.write(tmp_path / "r", repetitions=1)
    (path / "measurements.parquet").unlink()
    with pytest.raises(BadInput, match=r"measurements.parquet is missing"):
        load(path)


def test_cut_short_files(sample, tmp_path):
    path = sample.write(tmp_path / "r", repetitions=1)
    (path / "measurements.parquet").write_bytes(b"PAR1")
    with pytest.raises(BadInput, match="cut short"):
        load(path)
    (path / "manifest.json").write_text("{")
    with pytest.raises(BadInput, match="cut short"):
        load(path)


@pytest.mark.parametrize(("version", "move"), [(99, "newer"), (0, "again"), (None, "again")])
def test_another_schema_names_both_versions(sample, tmp_path, version, move):
    path = sample.write(tmp_path / "r", repetitions=1)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "schema_version": version}))
    with pytest.raises(BadInput, match=rf"version {version}.*version 1.*{move}"):
        load(path)


def test_nothing_but_failed_runs(sample, tmp_path):
    run = "kernel-ovs+vhost-net+64#1"
    path = sample.write(tmp_path / "r", accesses=("vhost-net",), repetitions=1, failed=(run,))
    with pytest.raises(BadInput, match="no finished run"):
        load(path)
