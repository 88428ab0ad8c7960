# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading results, good and bad."""

import dataclasses
import json

import pandas as pd
import pytest

from vsprof.analysis import comparison, describe, explain, metrics, published
from vsprof.analysis.load import load
from vsprof.terms import schema
from vsprof.terms.errors import BadInput


def test_cases_come_in_one_order_and_are_named(three_accesses):
    labels = ["kernel-ovs · virtio-net", "kernel-ovs · vhost-net", "ovs-dpdk · vhost-user"]
    assert list(three_accesses.cases["label"]) == labels


def test_values_that_vary_are_part_of_the_name(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", frames=(1518, 64), repetitions=1))
    assert list(result.cases["setting"]) == ["64 B", "1518 B"] * 2


PATHS = {"path": ("vector", "mergeable"), "forwarding": ("io", "mac")}


def test_cases_that_differ_in_options_have_names_and_an_order_of_their_own(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", accesses=("vhost-user",), repetitions=1, options=PATHS))
    assert list(result.cases["label"]) == [
        # All have one switch and access: these need not be told.
        f"forwarding={way}, path={path}"
        for way in ("io", "mac")
        for path in ("vector", "mergeable")
    ]


def test_every_number_has_its_options_in_columns(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", repetitions=1, options=PATHS))
    assert set(result.frame["path"]) == {"vector", "mergeable"}
    assert result.frame.groupby("case_id")["path"].nunique().max() == 1


def test_an_option_that_a_switch_does_not_have_sets_it_apart_from_none(sample, tmp_path):
    path = sample.write(tmp_path / "r", repetitions=1, options={"rings": ("librte", "own")})
    manifest = json.loads((path / "manifest.json").read_text())
    kernel = [case for case in manifest["cases"] if case["case_id"].startswith("kernel")]
    for case in kernel:
        del case["values"]["rings"]
    manifest["cases"].remove(kernel[1])
    (path / "manifest.json").write_text(json.dumps(manifest))
    frame = schema.read(path / "measurements.parquet").to_pylist()
    schema.write(path / "measurements.parquet", [row for row in frame if row["case_id"] != kernel[1]["case_id"]])
    result = load(path)
    assert list(result.cases["label"]) == [
        "kernel-ovs · vhost-net", "ovs-dpdk · vhost-user, rings=librte", "ovs-dpdk · vhost-user, rings=own",
    ]  # fmt: skip
    names = [(*pair.names(), pair.setting) for pair in comparison.pairs(result)]
    assert names == [
        ("kernel OVS", "OVS-DPDK (rings=librte)", ""), ("kernel OVS", "OVS-DPDK (rings=own)", ""), ("rings=librte", "rings=own", ""),
    ]  # fmt: skip


def test_each_value_of_an_option_is_explained_against_the_first_and_all_else_being_equal(sample, tmp_path):
    options = {"path": ("mergeable", "vector", "packed"), "forwarding": ("io", "mac")}
    result = load(sample.write(tmp_path / "r", accesses=("vhost-user",), frames=(64, 1518), repetitions=1, options=options))
    found = [(*pair.names(), pair.setting) for pair in comparison.pairs(result)]
    for frame in ("64 B", "1518 B"):
        for way in ("io", "mac"):
            assert ("path=mergeable", "path=vector", f"{frame}, forwarding={way}") in found
            assert ("path=mergeable", "path=packed", f"{frame}, forwarding={way}") in found
        for path in options["path"]:
            assert ("forwarding=io", "forwarding=mac", f"{frame}, path={path}") in found
    assert len(found) == 2 * (2 * 2 + 3)
    assert "path=vector" in explain.answer(result)


def test_a_published_figure_of_an_option_is_set_beside_each_pair_that_differs_in_it_alone(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", accesses=("vhost-user",), frames=(64, 1518), repetitions=1, options=PATHS))
    pairs = published.pairs(result, {"path": "mergeable"}, {"path": "vector"})
    assert len(pairs) == 2 * 2
    assert all(result.differences(*pair) == {"path"} for pair in pairs)
    assert len(published.pairs(result, {"path": "mergeable", "forwarding": "io"}, {"path": "vector", "forwarding": "io"})) == 2
    assert published.pairs(result, {"path": "mergeable"}, {"path": "packed"}) == []


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


@pytest.fixture
def with_own(sample, tmp_path):
    """The same result as `two_switches`, but with own windows of a collector `uarch_model`."""
    return load(sample.write(tmp_path / "own", own="uarch_model"))


def test_own_windows_are_kept_apart(with_own, two_switches):
    pd.testing.assert_frame_equal(with_own.numbers.reset_index(drop=True), two_switches.numbers.reset_index(drop=True))
    assert set(with_own.own_numbers["window"]) == {"uarch_model-1", "uarch_model-2"}
    assert set(with_own.own_numbers["source"]) == {"software", "model"}
    assert {"uarch_model", "ovs_pmd", "udp_flood"} <= set(with_own.own_numbers["collector"])
    assert len(with_own.own_numbers) + len(with_own.numbers) == len(with_own.frame)


def test_the_models_numbers_are_not_called_left_out(with_own):
    assert not any("left out here" in text for text in with_own.limits())


def test_own_windows_change_no_metric(with_own, two_switches):
    pd.testing.assert_frame_equal(metrics.of(with_own), metrics.of(two_switches))


def test_a_result_without_own_windows_has_no_such_numbers(two_switches):
    assert two_switches.own_numbers.empty
    assert len(two_switches.numbers) == len(two_switches.frame)


def test_own_windows_are_part_of_what_was_run(with_own, two_switches):
    texts = [describe.what(result).frame.set_index("").loc["windows", "as recorded"] for result in (with_own, two_switches)]
    assert texts[0] == f"{texts[1]}; then 2 of 1.0 s or more for uarch_model alone"


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


def test_a_result_from_before_there_were_functions_has_an_empty_table(sample, tmp_path, modelled):
    path = sample.write(tmp_path / "r", own="uarch_model", repetitions=1)
    (path / "functions.parquet").unlink()
    old = load(path).functions.select()
    assert old.empty
    assert set(old.columns) >= {"run_id", "traffic", "load", "role", "object", "function", "name", "value"}
    assert list(old.columns) == [*schema.KEYS.names, *schema.FUNCTION.names, "load"]
    assert set(modelled.functions.select(["window"])["window"]) == {"uarch_model-1", "uarch_model-2"}


def test_functions_of_failed_runs_are_kept_out(sample, tmp_path):
    run = "ovs-dpdk+vhost-user+64#2"
    result = load(sample.write(tmp_path / "r", failed=(run,), own="uarch_model"))
    runs = set(result.functions.select(["run_id"])["run_id"])
    assert run not in runs
    assert len(runs) == 5


def test_a_table_of_functions_that_is_cut_short_is_refused(sample, tmp_path):
    path = sample.write(tmp_path / "r", repetitions=1)
    (path / "functions.parquet").write_bytes(b"PAR1")
    with pytest.raises(BadInput, match=r"functions\.parquet.*cut short"):
        load(path)


def test_a_table_of_functions_that_is_none_is_refused(sample, tmp_path):
    path = sample.write(tmp_path / "r", repetitions=1)
    (path / "functions.parquet").write_bytes((path / "measurements.parquet").read_bytes())
    with pytest.raises(BadInput, match="lacks the columns object, function"):
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


@pytest.mark.parametrize(("given", "emulated"), [({}, True), ({"accel": "tcg"}, True), ({"accel": "kvm"}, False)])
def test_under_kvm_the_labs_rates_are_no_emulators(two_switches, given, emulated):
    told = dataclasses.replace(two_switches, manifest={**two_switches.manifest, "testbed": "lab", "host_options": given})
    assert told.emulated is emulated


def test_windows_in_turn_and_servers_of_a_pool_are_described(two_switches):
    manifest = two_switches.manifest
    runs = [{**run, "beside": ["r009"]} for run in manifest["runs"]]
    told = dataclasses.replace(
        two_switches, manifest={**manifest, "runs": runs, "facts": {**manifest["facts"], "servers": {"big": {}, "small": {}}}}
    )
    assert "windows in turn" in describe.what(told).frame.set_index("").loc["order", "as recorded"]
    assert "windows in turn" not in describe.what(two_switches).frame.set_index("").loc["order", "as recorded"]
    assert describe.where(told).frame.set_index("").loc["its servers", "as recorded"] == "big, small"


def test_a_host_that_booted_other_kernels_is_described_with_these(two_switches, monkeypatch):
    own = describe.where(two_switches).frame.set_index("").loc["its kernel", "as recorded"]
    assert own == two_switches.manifest["facts"]["kernel"]
    first, *others = two_switches.values
    values = {first: {"kernel": "bookworm"}, **{case: {"kernel": "forky"} for case in others}}
    facts = {**two_switches.manifest["facts"], "cases": {case: {"kernel": f"uname of {of['kernel']}"} for case, of in values.items()}}
    changed = dataclasses.replace(two_switches, manifest={**two_switches.manifest, "facts": facts})
    monkeypatch.setitem(changed.__dict__, "values", values)
    said = describe.where(changed).frame.set_index("").loc["its kernel", "as recorded"]
    assert said == "bookworm: uname of bookworm; forky: uname of forky"


def test_a_limit_with_brackets_is_no_tag():
    assert describe._escaped("cycles are <not supported>: `a<b` & c") == "cycles are &lt;not supported&gt;: `a<b` &amp; c"
