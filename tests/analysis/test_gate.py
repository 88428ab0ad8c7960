# SPDX-License-Identifier: GPL-2.0-or-later
"""The gate of `vsprof compare`: what a rule is about, what it comes to, and what scripts see of it."""

import contextlib
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.analysis import compare, gate
from vsprof.analysis.gate import FAILS, HOLDS, UNTOLD, Rule
from vsprof.analysis.load import load
from vsprof.runner import cli
from vsprof.terms.errors import BadInput

TWO = ["compare", "kernel-ovs", "ovs-dpdk", "--in"]


@pytest.fixture(scope="module")
def path(sample, tmp_path_factory) -> Path:
    return sample.write(tmp_path_factory.mktemp("gate") / "r", own="uarch_model")


@pytest.fixture(scope="module")
def found(path):
    return compare.of_cases(load(path), "kernel-ovs", "ovs-dpdk")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("throughput<0.95", Rule("throughput<0.95", "throughput", "<", 0.95)),
        (" rtt_p99 > 2 ", Rule("rtt_p99 > 2", "rtt_p99", ">", 2.0)),
        ("udp_flood:goodput<1", Rule("udp_flood:goodput<1", "goodput", "<", 1.0, "udp_flood")),
        ("udp_flood/equal:cpi@poll-mode thread>1", Rule("udp_flood/equal:cpi@poll-mode thread>1", "cpi", ">", 1.0, "udp_flood", "equal", "poll-mode thread")),
    ],
)  # fmt: skip
def test_a_rule_is_read(text, rule):
    assert Rule.read(text) == rule


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("throughput", "it has neither < nor >"),
        ("throughput=1", "'=' is not an operator: use < or >"),
        ("throughput<=0.95", "'<=' is not an operator: use < or >"),
        ("throughput==0.95", "'==' is not an operator"),
        ("throughput<", "'' is not a ratio: use a number above 0"),
        ("<1", "'' is not a metric"),
        ("throughput<-1", "'-1' is not a ratio"),
        ("throughput<0", "'0' is not a ratio"),
        ("throughput<0,95", "'0,95' is not a ratio"),
        ("throughput<five", "'five' is not a ratio"),
        ("throughput<1<2", "'1<2' is not a ratio"),
        ("a b<1", "'a b' is not a metric: write METRIC, METRIC@ROLE, "),
        ("udp-flood:throughput<1", "'udp-flood:throughput' is not a metric"),
    ],
)
def test_what_is_no_rule_is_refused_with_the_reason_and_examples(text, why):
    with pytest.raises(BadInput) as refused:
        Rule.read(text)
    assert f"--fail-on {text!r} is no rule: {why}" in str(refused.value)
    assert "'throughput<0.95'" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", " has nothing in it; need a list"),
        ("[]", " has no rule in its list; need a list"),
        ("throughput<0.95", " has a text: 'throughput<0.95'; need a list"),
        ("fail_on: throughput<0.95", " has a mapping: {'fail_on': 'throughput<0.95'}; need a list"),
        ("- throughput<0.95\n- 0.95", ", rule 2 is a number: 0.95; need a list"),
        ("- throughput<0.95\n- metric: throughput", ", rule 2 is a mapping: {'metric': 'throughput'}; need a list"),
        ("- throughput<0.95\n-", ", rule 2 is nothing; need a list"),
        ("- throughput<0.95\n- [throughput<0.95\n", ", line 3, column 1: no YAML (expected ',' or ']', but got '<stream end>')"),
        ("- throughput<0.95\n- throughput<=1", ", rule 2: 'throughput<=1' is no rule: '<=' is not an operator"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_the_rule_s_number(tmp_path, content, said):
    path = tmp_path / "rules.yaml"
    path.write_text(content)
    with pytest.raises(BadInput) as refused:
        gate.rules([], path)
    assert f"{path}{said}" in str(refused.value)


def test_a_file_that_can_not_be_read_is_named(tmp_path):
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe-")
    with pytest.raises(BadInput, match=r"the rules in .*bytes.yaml can't be read: 'utf-8' codec"):
        gate.rules([], tmp_path / "bytes.yaml")
    with pytest.raises(BadInput, match=r"the rules in .*none.yaml can't be read: No such file"):
        gate.rules([], tmp_path / "none.yaml")


@given(st.text(max_size=40))
def test_any_text_is_a_rule_or_refused(text):
    with contextlib.suppress(BadInput):
        assert Rule.read(text).bound > 0


@pytest.mark.parametrize(
    ("text", "low", "high", "outcome"),
    [
        ("x<0.95", 0.90, 0.94, FAILS),
        ("x<0.95", 0.90, 0.96, UNTOLD),
        ("x<0.95", 0.95, 0.99, HOLDS),
        ("x>1.2", 1.21, 1.3, FAILS),
        ("x>1.2", 1.1, 1.3, UNTOLD),
        ("x>1.2", 0.9, 1.2, HOLDS),
        ("x<0.95", None, None, UNTOLD),
        ("x<0.95", float("nan"), float("nan"), UNTOLD),
    ],
)
def test_the_interval_decides(text, low, high, outcome):
    assert Rule.read(text).outcome(low, high) == outcome


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0.01, 100))
def test_no_interval_fails_and_holds_by_one_bound(one, other, bound):
    low, high = sorted((one, other))
    below, above = (Rule(f"x{sign}{bound}", "x", sign, bound).outcome(low, high) for sign in "<>")
    assert (below, above) not in [(FAILS, FAILS), (HOLDS, HOLDS)] or low == high == bound
    assert (below == UNTOLD) == (low < bound <= high)


def outcomes(found, *rules):
    return [(one.where, one.outcome) for one in gate.judge(found, [Rule.read(rule) for rule in rules])]


@pytest.mark.long
def test_throughput_is_what_each_traffic_at_saturation_is_judged_by(found):
    judged = dict(outcomes(found, "throughput<0.95"))
    assert "UDP flood, saturation: packet_rate_received" in judged
    assert "TCP stream, saturation: goodput" in judged
    assert not any("equal" in where for where in judged)


def test_a_rule_of_one_traffic_load_and_role(found):
    assert [where for where, _ in outcomes(found, "udp_flood/saturation:packet_rate_received<0.5")] == [
        "UDP flood, saturation: packet_rate_received"
    ]
    assert all(where.endswith("(switch)") for where, _ in outcomes(found, "context_switches_per_packet@switch>1000"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("packet_rate_recieved<1", "there is no metric 'packet_rate_recieved' that both sides have; near it: packet_rate_received"),
        ("thruput<1", "there is no metric 'thruput' that both sides have; near it: throughput"),
        ("udp_floood:throughput<1", "there is no traffic 'udp_floood' that both sides have; use ping_paced or tcp_stream or udp_flood"),
        ("udp_flood/full:goodput<1", "there is no load 'full' that both sides have; use equal or saturation"),
        ("udp_flood:goodput<1", "there is no metric 'goodput' that both sides have"),
        ("context_switches_per_packet@swich<1", "there is no role 'swich' that both sides have; use "),
    ],
)
def test_a_rule_about_nothing_names_the_word_and_what_there_is(found, text, said):
    with pytest.raises(BadInput) as refused:
        gate.judge(found, [Rule.read(text, "rules.yaml, rule 3:")])
    assert str(refused.value).startswith(f"rules.yaml, rule 3: {text!r}: {said}")


@pytest.mark.long
def test_the_gravest_outcome_is_the_exit_status(path, capsys):
    assert cli.main([*TWO, str(path), "--fail-on", "udp_flood:packet_rate_received<0.5"]) == 0
    assert "gate: holds" in capsys.readouterr().out
    assert cli.main([*TWO, str(path), "--fail-on", "udp_flood/saturation:packet_rate_received<100"]) == 1
    assert "gate: fails" in capsys.readouterr().out


def test_one_repetition_can_not_tell(sample, tmp_path, capsys):
    one = sample.write(tmp_path / "r", repetitions=1)
    assert cli.main([*TWO, str(one), "--fail-on", "throughput<0.95"]) == 3
    assert "no interval (n=1)" in capsys.readouterr().out


def test_bad_rules_are_said_before_anything_is_read(tmp_path, capsys):
    assert cli.main(["compare", "a", "b", "--fail-on", "nonsense"]) == 2
    assert "is no rule" in capsys.readouterr().err
    for content in ("", "x: 1", "- 1", "[", "- nonsense"):
        (tmp_path / "rules.yaml").write_text(content)
        assert cli.main(["compare", "a", "b", "--rules", str(tmp_path / "rules.yaml")]) == 2
    assert cli.main(["compare", "a", "b", "--rules", str(tmp_path / "none.yaml")]) == 2


def test_scripts_get_json_junit_and_markdown(path, tmp_path, capsys):
    rules = tmp_path / "rules.yaml"
    rules.write_text("- udp_flood/saturation:packet_rate_received<100\n- throughput<0.01\n")
    files = ["--junit", str(tmp_path / "r.xml"), "--markdown", str(tmp_path / "r.md")]
    assert cli.main([*TWO, str(path), "--rules", str(rules), "--json", *files]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["gate"]["outcome"] == FAILS
    assert [one["outcome"] for one in said["gate"]["rules"]].count(FAILS) == 1
    assert said["comparisons"][0]["metrics"]
    suite = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    assert len(suite.findall("testcase")) == int(suite.get("tests")) == len(said["gate"]["rules"])
    assert suite.find("testcase/failure").get("message").startswith("ratio ")
    text = (tmp_path / "r.md").read_text()
    assert text.startswith("### vsprof: fails\n")
    assert text.count("\n| ") == 2 + len(said["gate"]["rules"])


@pytest.mark.long
def test_without_rules_nothing_changes(path, capsys):
    assert cli.main([*TWO, str(path), "--json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), list)


@pytest.mark.long
def test_a_file_that_can_not_be_written_is_said(path, tmp_path, capsys):
    assert cli.main([*TWO, str(path), "--fail-on", "throughput<0.01", "--junit", str(tmp_path / "no" / "r.xml")]) == 2
    assert "can't be written" in capsys.readouterr().err


def test_files_without_a_rule_are_refused(tmp_path, capsys):
    assert cli.main(["compare", "a", "b", "--junit", str(tmp_path / "r.xml")]) == 2
    assert "needs --fail-on or --rules" in capsys.readouterr().err
    assert not (tmp_path / "r.xml").exists()


def test_a_rule_may_be_about_the_switch_alone(found):
    [one] = found
    alone = set(one.table["metric"]) - set(one.table.loc[one.table["role"].isin(["all", "path"]), "metric"])
    assert alone
    for metric in alone:
        assert outcomes(found, f"{metric}>1000")


def test_a_case_that_the_second_result_lost_is_not_passed_over(sample, tmp_path, capsys):
    whole, half = (sample.write(tmp_path / name) for name in ("whole", "half"))
    result = load(half)
    failed = sample.with_frame(result, result.frame[result.frame["switch"] != "ovs-dpdk"])
    judged = gate.judge(compare.of_results(load(whole), failed), [Rule.read("throughput<0.01")], compare.lost(load(whole), failed))
    assert gate.worst(judged) == UNTOLD
    assert "no finished run in the second result" in gate.text(judged)
    assert gate.junit(judged).count("<error") == 1
    [row, *_] = json.loads(json.dumps([one.to_json() for one in judged]))
    assert (row["ratio"], row["n"], row["metric"]) == (None, 0, "throughput")
    assert row["case_id"]["a"] in set(result.cases.index)
    assert row["case_id"]["b"] is None


@pytest.mark.parametrize("rule", ["throughput<0.01", "udp_flood/saturation:packet_rate_received<0.01", "context_switches_per_packet>1000"])
def test_a_number_of_one_case_that_the_second_result_lost_is_not_passed_over(sample, tmp_path, rule):
    whole, half = (sample.write(tmp_path / name) for name in ("whole", "half"))
    result = load(half)
    flood = (result.frame["switch"] == "ovs-dpdk") & (result.frame["traffic"] == "udp_flood") & (result.frame["load"] == "saturation")
    judged = gate.judge(compare.of_results(load(whole), sample.with_frame(result, result.frame[~flood])), [Rule.read(rule)])
    [gone] = [one for one in judged if one.outcome == UNTOLD and one.n == 0]
    assert gone.where.startswith("UDP flood, saturation: ")
    assert gone.reason == "not in the second result"
    assert gone.case_id["b"]
    assert gate.worst(judged) == UNTOLD
    # The other case has it, and is judged.
    assert HOLDS in {one.outcome for one in judged}


def test_a_role_that_is_gone_is_not_judged_where_the_whole_path_is_there(sample, tmp_path):
    whole, half = (sample.write(tmp_path / name) for name in ("whole", "half"))
    result = load(half)
    gone = (result.frame["role"] == "vhost") & result.frame["name"].str.startswith("context_switches")
    assert gone.any()
    judged = gate.judge(
        compare.of_results(load(whole), sample.with_frame(result, result.frame[~gone])), [Rule.read("context_switches_per_packet>1000")]
    )
    assert {one.number["role"] for one in judged} == {"path"}
    assert gate.worst(judged) == HOLDS


@pytest.fixture(scope="module")
def said(path):
    """What a script reads of a rule that holds."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert cli.main([*TWO, str(path), "--json", "--fail-on", "udp_flood/saturation:packet_rate_received<0.01"]) == 0
    return json.loads(printed.getvalue())


def test_scripts_rely_on_these_names(said):
    """Names may be added, to this test and to docs/gating.md; none may go or mean something else."""
    assert said.keys() == {"comparisons", "gate"}
    assert said["gate"].keys() == {"outcome", "rules"}
    row = said["gate"]["rules"][0]
    assert list(row) == [
        "rule", "title", "case_id", "source", "traffic", "load", "metric", "role", "unit", "where",
        "ratio", "low", "high", "detectable", "n", "verdict", "outcome",
    ]  # fmt: skip
    assert row["case_id"].keys() == {"a", "b"}
    [one] = said["comparisons"]
    assert list(one) == ["a", "b", "verdict", "metrics", "parts"]
    assert list(one["a"]) == list(one["b"]) == ["result", "case_id", "label"]
    assert list(one["metrics"][0]) == [
        "source", "traffic", "load", "metric", "role", "unit", "a", "b", "ratio", "low", "high", "effect", "detectable", "n", "verdict",
        "better",
    ]  # fmt: skip
    assert set(one["parts"][0]) == {"split", "role", "cause", "part", "low", "high", "n", "source", "traffic", "load"}


def test_the_names_are_in_the_page(said):
    page = (Path(__file__).resolve().parents[2] / "docs" / "gating.md").read_text().partition("## JSON")[2].partition("\n## ")[0]
    [one] = said["comparisons"]
    for name in {*said["gate"]["rules"][0], *one, *one["a"], *one["metrics"][0], *one["parts"][0]}:
        assert f"`{name}`" in page, name


def test_a_judged_row_is_one_of_the_comparison(said):
    [row], [one] = said["gate"]["rules"], said["comparisons"]
    assert row["case_id"] == {side: one[side]["case_id"] for side in "ab"}
    [same] = [metric for metric in one["metrics"] if all(metric[name] == row[name] for name in gate.NUMBER)]
    assert {name: same[name] for name in ("ratio", "low", "high", "n", "verdict")} == {
        name: row[name] for name in ("ratio", "low", "high", "n", "verdict")
    }
    assert (row["rule"], row["outcome"]) == ("udp_flood/saturation:packet_rate_received<0.01", HOLDS)
    assert (row["traffic"], row["load"], row["unit"]) == ("udp_flood", "saturation", "packets/s")
