# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions and misses by function, against numbers worked out by hand from the synthetic sample."""

import dataclasses

import pandas as pd
import pytest

from vsprof.analysis import describe, explain_model, figures, functions, looks, tables
from vsprof.analysis.load import load
from vsprof.analysis.sources import MODEL
from vsprof.terms import schema

DPDK, KERNEL = "ovs-dpdk+vhost-user+64", "kernel-ovs+vhost-net+64"
TCP = {"traffic": "tcp_stream", "load": "saturation"}
FLOOD = {"traffic": "udp_flood", "load": "saturation"}


def hottest(result, case: str = DPDK, counter: str = "instructions", count: int = 99, where=FLOOD) -> pd.DataFrame:
    return functions.hottest(result, case, counter, count, **where).set_index("function")


@pytest.fixture
def with_functions(tmp_path):
    """The result with some of its functions' rows, and some of their columns changed."""

    def made(result, keep=lambda rows: slice(None), **columns):
        rows = result.functions.select().assign(**columns).loc[keep]
        schema.write(tmp_path / "functions.parquet", rows.to_dict("records"), schema.FUNCTION)
        return dataclasses.replace(result, functions=tables.ask(tmp_path / "functions.parquet", schema.FUNCTION))

    return made


def test_the_hottest_come_first_with_their_role_and_share(modelled, sample):
    found = hottest(modelled, KERNEL)
    assert list(found.index) == ["vhost_first", "guest_first", "vhost_second", "guest_second"]
    assert list(found["role"]) == ["vhost", "guest", "vhost", "guest"]
    assert found.loc["vhost_first", "median"] == pytest.approx(sample.WORK["vhost-net"] * 1.02 * 0.5 * 0.6)
    assert set(found["unit"]) == {"instructions/packet"}
    assert set(found["n"]) == {3}
    # Of the path's instructions, which are 0.9 of all.
    assert list(found["share_of_all"]) == pytest.approx([0.3 / 0.9, 0.24 / 0.9, 0.2 / 0.9, 0.16 / 0.9])
    assert list(hottest(modelled, KERNEL, count=2).index) == ["vhost_first", "guest_first"]


def test_the_functions_of_the_path_sum_up_to_it(modelled):
    for case, where, word in ((KERNEL, FLOOD, "packet"), (DPDK, FLOOD, "packet"), (DPDK, TCP, "megabit")):
        whole = MODEL.estimate(modelled, case_id=case, metric=f"model_instructions_per_{word}", **where).median
        assert hottest(modelled, case, where=where)["median"].sum() == pytest.approx(whole)


def test_misses_are_counted_by_function_too(modelled, sample):
    found = hottest(modelled, counter="l1d_misses")
    assert found.loc["switch_first", "median"] == pytest.approx(0.01 * sample.WORK["vhost-user"] * 1.02 * 0.3)
    assert set(found["unit"]) == {"events/packet"}
    assert hottest(modelled, counter="llc_misses").empty


def test_the_host_is_part_of_the_path_where_it_is_an_endpoint(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", topology="vm2host", own="uarch_model"))
    assert "host-other" in set(hottest(result)["role"])


def test_a_window_without_functions_does_not_count_as_zero(modelled, with_functions):
    result = with_functions(modelled, lambda rows: ~rows["run_id"].str.endswith("#1"))
    found = hottest(result, KERNEL)
    assert set(found["n"]) == {2}
    assert found.loc["vhost_first", "median"] == pytest.approx(hottest(modelled, KERNEL).loc["vhost_first", "median"], rel=0.02)


def test_a_function_that_a_window_does_not_name_has_zero_there(modelled, with_functions):
    result = with_functions(modelled, lambda rows: (rows["function"] != "vhost_first") | (rows["window"] != "uarch_model-2"))
    assert hottest(result, KERNEL).loc["vhost_first", "median"] == pytest.approx(20_000 * 1.02 * 0.3 / 2)


def test_a_result_without_functions_says_how_they_are_made(sample, tmp_path):
    path = sample.write(tmp_path / "old", own="uarch_model")
    (path / "functions.parquet").unlink()
    result = load(path)
    assert hottest(result).empty
    assert "vsprof parse old" in figures.show(result, "functions").text
    assert "vsprof parse old" in describe.misses(result)
    assert "parts of the instructions per packet" not in explain_model.markdown(result)


def test_a_result_without_the_model_says_so(two_switches):
    for shown in (figures.show(two_switches, "functions").text, describe.misses(two_switches)):
        assert "no window of this result was counted by the model" in shown


def test_without_a_traffic_at_saturation_there_is_no_profile_and_it_is_said(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", own="uarch_model", traffics=[("udp_flood", "equal")]))
    for shown in (figures.show(result, "functions").text, describe.misses(result)):
        assert "no traffic at saturation" in shown


def test_another_sources_functions_are_no_part_of_the_models(modelled, with_functions):
    result = with_functions(modelled, source=lambda table: table["source"].where(table["function"] != "guest_first", "hardware"))
    assert "guest_first" not in hottest(result).index
    assert "guest_first" in hottest(modelled).index


def test_misses_make_one_table_with_a_column_a_case(modelled):
    frame = describe.misses(modelled).frame
    assert list(frame.columns[1:]) == ["kernel-ovs · vhost-net", "ovs-dpdk · vhost-user"]
    assert "modelled" in frame.columns[0]
    kinds = [text for text in frame.iloc[:, 0] if not text[0].isdigit()]
    # No function of the sample has an LLC miss.
    assert kinds == ["L1D misses", "DTLB walks", "branch misses"]
    assert list(frame.iloc[0, 1:]) == ["184 in all", "91.8 in all"]
    assert list(frame.iloc[1, 1:]) == ["61.2 (33 %): vhost_first (sample), vhost", "30.6 (33 %): switch_first (sample), switch"]


def test_the_explanation_names_them_with_their_shares(modelled):
    (found,) = [one for one in looks.findings(modelled, explain_model.LOOKS) if "parts of the instructions per packet" in one.claim]
    assert (
        "with kernel OVS in `vhost_first (sample)` (33 %), `guest_first (sample)` (27 %) and `vhost_second (sample)` (22 %)" in found.claim
    )
    assert "with OVS-DPDK in `switch_first (sample)` (33 %)" in found.claim
    assert "estimated from samples" in found.markdown()


@pytest.mark.parametrize(
    ("where", "function", "text"),
    [
        ("kernel", "fdget", "fdget (kernel)"),
        ("ovs-vswitchd", "ovs-vswitchd+0x1a", "ovs-vswitchd+0x1a"),
        ("guest kernel modules", "(unknown)", "guest kernel modules, unnamed"),
    ],
)
def test_a_function_is_named_with_its_place(where, function, text):
    assert functions.named(where, function) == text


def test_long_names_are_cut_in_the_figure_but_not_in_its_numbers(modelled, with_functions):
    name = "a_function_whose_name_goes_on_" * 4
    others = {"guest_first": name, "guest_second": "ip_rcv.constprop.0"}
    result = with_functions(modelled, function=lambda table: table["function"].replace(others))
    shown = figures.show(result, "functions")
    drawn = [label.get_text() for label in shown.figure.axes[0].get_yticklabels()]
    assert "ip_rcv (sample)" in drawn
    assert max(map(len, drawn)) <= 42
    assert name in shown._repr_html_()


def test_three_cases_are_drawn_and_no_panel_is_left_empty(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", accesses=("virtio-net", "vhost-net", "vhost-user"), own="uarch_model"))
    figure = figures.show(result, "functions").figure
    assert [axes.get_title(loc="left") for axes in figure.axes if axes.axison] == list(result.cases["label"])
