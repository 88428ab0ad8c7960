# SPDX-License-Identifier: GPL-2.0-or-later
"""`vsprof compare`: what it pairs, what it says, and what it refuses."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from vsprof.analysis import compare, compare_text, load
from vsprof.analysis import messages as analysis_messages
from vsprof.runner import cli
from vsprof.terms.errors import BadInput


@pytest.fixture(scope="module")
def result(sample, tmp_path_factory):
    return load.load(sample.write(tmp_path_factory.mktemp("compare"), own="uarch_model", traffics=[*_traffics(), ("idle", "none")]))


@pytest.fixture(scope="module")
def pairs(result):
    """The two switches: compared once, for it takes two seconds, and looked at in many ways."""
    return compare.of_cases(result, "kernel-ovs", "ovs-dpdk")


@pytest.fixture
def found(pairs):
    [found] = pairs
    return found


def _traffics():
    return [("tcp_stream", "saturation"), ("udp_flood", "saturation")]


def rows(found, metric, **where):
    table = found.table[found.table["metric"] == metric]
    for column, value in where.items():
        table = table[table[column] == value]
    return table


def test_two_switches_of_one_result(found):
    one = rows(found, "packet_rate_received", traffic="udp_flood").iloc[0]
    assert one["ratio"] == pytest.approx(72 / 33, rel=0.1)
    assert one["verdict"] == "more"
    assert one["effect"] == 1
    assert one["low"] < one["ratio"] < one["high"]
    assert "ovs-dpdk · vhost-user against kernel-ovs · vhost-net" in found.title


def test_exchanging_the_two_turns_every_ratio_round(result, found):
    there, [back] = found, compare.of_cases(result, "ovs-dpdk", "kernel-ovs")
    keys = ["source", "traffic", "load", "metric", "role"]
    both = there.table.merge(back.table, on=keys, suffixes=("", "_back"))
    assert len(both) == len(there.table) == len(back.table)
    known = both[both["ratio"] > 0]
    assert np.allclose(known["ratio"] * known["ratio_back"], 1)
    assert set(known.loc[known["verdict"] == "more", "verdict_back"]) == {"less"}


def test_a_verdict_needs_an_interval_that_excludes_1(found):
    told = found.table[found.table["verdict"].isin(["more", "less"])]
    assert ((told["low"] > 1) | (told["high"] < 1)).all()
    untold = found.table[found.table["verdict"] == analysis_messages.NOT_SIGNIFICANT]
    assert ((untold["low"] <= 1) & (untold["high"] >= 1)).all()
    assert list(found.table["verdict"].isin(["more", "less"])) == sorted(found.table["verdict"].isin(["more", "less"]), reverse=True)


@pytest.mark.long
def test_a_result_and_itself_can_not_be_told_apart(sample, tmp_path):
    one, other = (load.load(sample.write(tmp_path / name)) for name in ("one", "other"))
    found = compare.of_results(one, other)
    assert len(found) == 2
    for pair in found:
        assert not pair.table["verdict"].isin(["more", "less"]).any()
        assert "different campaigns" in pair.verdict


def test_the_parts_are_those_of_the_cycles(found):
    flood = found.parts[(found.parts["traffic"] == "udp_flood") & (found.parts["source"] == "model")]
    whole = flood[flood["split"] == "whole"]["part"].iloc[0]
    assert np.exp(whole) == pytest.approx(10_000 * 1.2 / (20_000 * 1.5), rel=0.05)
    assert flood[flood["split"] == "factor"]["part"].sum() == pytest.approx(whole)
    assert "Cycles, UDP flood, saturation (model)" in found.verdict


def test_one_repetition_has_no_verdict(sample, tmp_path):
    [found] = compare.of_cases(load.load(sample.write(tmp_path, repetitions=1)), "kernel-ovs", "ovs-dpdk")
    assert set(found.table["verdict"]) <= {analysis_messages.NO_INTERVAL, analysis_messages.NO_RATIO, analysis_messages.BOTH_ZERO}


@pytest.mark.parametrize(
    ("a", "b", "said"), [("kernel-ovs", "no-such", "no-such.*kernel-ovs"), ("ovs-dpdk", "ovs-dpdk", "nothing to compare")]
)
def test_bad_input_is_one_error(result, a, b, said):
    with pytest.raises(BadInput, match=said):
        compare.of_cases(result, a, b)


def test_two_testbeds_never_share_a_ratio(sample, tmp_path):
    lab, native = (load.load(sample.write(tmp_path / name, testbeds=(name,))) for name in ("lab", "native"))
    with pytest.raises(BadInput, match="native"):
        compare.of_results(lab, native)


def test_what_is_printed(found):
    printed = io.StringIO()
    compare_text.show(found, console=Console(file=printed, width=200))
    text = printed.getvalue()
    for words in ("packet_rate_received", "more", "all cycles", "instructions", "--all"):
        assert words in text


def test_each_metric_of_all_is_printed_once(found):
    printed = io.StringIO()
    compare_text.show(found, everything=True, console=Console(file=printed, width=compare_text.WIDTH))
    lines = printed.getvalue().partition("┃ metric")[2].splitlines()
    shown = [tuple(cell.strip() for cell in line.split("│")[1:4]) for line in lines if line.startswith("│")]
    assert len(shown) == len(set(shown)) == len(found.table)
    assert {"context_switches_per_packet", "context_switches_per_packet (all)", "packet_rate_received"} <= {name for name, *_ in shown}
    assert "packet_rate_received (all)" not in printed.getvalue(), "it has no other sum"


def test_json_has_no_nan(found):
    text = json.dumps(compare_text.to_json(found), allow_nan=False)
    assert json.loads(text)["metrics"]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_figure(pairs, tmp_path, ending):
    compare_text.draw(pairs, tmp_path / f"ratios.{ending}")
    assert (tmp_path / f"ratios.{ending}").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["ratios.xyz", "no-such-folder/ratios.png"])
def test_a_figure_that_can_not_be_written_is_one_error(pairs, tmp_path, name):
    with pytest.raises(BadInput, match=name):
        compare_text.draw(pairs, tmp_path / name)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kernel-ovs", "no-such"], "`no-such` is no result's folder, and no case of"),
        (["{result}", "results/no-such"], "no result 'results/no-such'"),
        (["results/no-such", "{result}"], "no result 'results/no-such'"),
        (["kernel-ovs", "ovs-dpdk", "--figure", "no-such/x.png"], "can't draw into no-such/x.png"),
    ],
)
def test_a_user_s_mistake_is_one_line(result, capsys, words, said):
    words = [word.format(result=result.path) for word in words]
    assert cli.main(["compare", *words, "--in", str(result.path)]) == BadInput.exit_status
    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1


@pytest.mark.long
def test_a_user_s_comparison(result, capsys):
    assert cli.main(["compare", "kernel-ovs", "ovs-dpdk", "--in", str(result.path), "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert found["a"]["result"] == str(result.path)
    assert cli.main(["compare", str(result.path), str(result.path)]) == 0
    assert "packet_rate_received" not in capsys.readouterr().out, "nothing differs from itself"


def test_a_count_that_is_zero_in_one_case_is_told_and_one_that_is_zero_in_both_is_not(sample, tmp_path):
    result = load.load(sample.write(tmp_path, traffics=_traffics()))
    counted = result.frame[result.frame["name"] == "retransmits"]
    drops = counted.assign(name="my_drops", value=np.where(counted["switch"] == "ovs-dpdk", 5000.0, 0.0))
    never = counted.assign(name="my_faults", value=0.0)
    [found] = compare.of_cases(sample.with_frame(result, pd.concat([result.frame, drops, never])), "kernel-ovs", "ovs-dpdk")
    told = rows(found, "my_drops_per_megabit").iloc[0]
    assert (told["a"], told["verdict"]) == (0, analysis_messages.NO_RATIO)
    assert told["b"] > 0
    assert not found.table["metric"].str.startswith("my_faults").any()
