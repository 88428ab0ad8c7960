# SPDX-License-Identifier: GPL-2.0-or-later
"""A switch and a traffic that analysis never heard of are shown as their plug-ins say, by the manifest alone."""

import json

import pyarrow as pa
import pytest

from tests.analysis import sample
from vsprof.analysis import describe, figures, metrics, series, style, vocabulary
from vsprof.analysis.load import load
from vsprof.analysis.sources import HARDWARE, MODEL, SOFTWARE, speakers
from vsprof.runner.experiment import COLLECTORS, SWITCHES, TRAFFIC
from vsprof.terms import schema
from vsprof.terms.errors import BadInput
from vsprof.terms.vocabulary import CollectorWords, Data, Headline, NumberWords, SwitchWords, TrafficWords, Vocabulary

HEADLINES = (
    Headline("rumour_rate", "what it says itself"),
    Headline("context_switches_per_rumour", "switches per rumour", ("saturation",)),
)
OWN = Vocabulary(
    {"own-switch": SwitchWords("my own switch", 15)},
    {"own_gossip": TrafficWords("gossip", 25, Data("rumour", "rumour heard", "packet_rate_received", scale=0.5), HEADLINES)},
)
RENAMED = {"ovs-dpdk": "own-switch", "udp_flood": "own_gossip"}


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """What one result taught must not be known to the next test."""
    monkeypatch.setattr(vocabulary, "_switches", dict(vocabulary._switches))
    monkeypatch.setattr(vocabulary, "_traffics", dict(vocabulary._traffics))
    monkeypatch.setattr(vocabulary, "_collectors", dict(vocabulary._collectors))


@pytest.fixture
def result(tmp_path):
    """A synthetic result of an own switch and an own traffic: the usual one under other names."""
    path = sample.write(tmp_path / "r")
    rows = schema.read(path / "measurements.parquet")
    for column in ("case_id", "run_id", "switch", "traffic", "collector"):
        words = [_renamed(word) for word in rows[column].to_pylist()]
        rows = rows.set_column(
            rows.schema.get_field_index(column), rows.schema.field(column), pa.array(words, rows.schema.field(column).type)
        )
    schema.write(path / "measurements.parquet", [*rows.to_pylist(), *_own_numbers(rows.to_pylist())])
    manifest = json.loads(_renamed((path / "manifest.json").read_text()))
    (path / "manifest.json").write_text(json.dumps({**manifest, "vocabulary": OWN.to_json()}))
    return load(path)


def test_an_earlier_manifest_is_completed_of_what_is_known_by_now(tmp_path):
    path = sample.write(tmp_path / "r")
    manifest = json.loads((path / "manifest.json").read_text())
    said = Vocabulary({"ovs-dpdk": SwitchWords("its name then", 50, 2)}, {}).to_json()
    del said["switches"]["ovs-dpdk"]["program"]
    (path / "manifest.json").write_text(json.dumps({**manifest, "vocabulary": said}))
    load(path)
    assert vocabulary.switch("ovs-dpdk") == SwitchWords("its name then", 50, 2, "ovs-vswitchd")


def _own_numbers(rows):
    """A number that the traffic alone knows, in each of its windows."""
    for row in rows:
        if row["collector"] == row["traffic"] == "own_gossip" and row["name"] == "window_seconds":
            yield row | {"name": "rumour_rate", "value": 7.0, "unit": "packets/s"}


def _renamed(text):
    for name, other in RENAMED.items():
        text = text.replace(name, other) if text else text
    return text


def test_its_counts_are_divided_by_its_own_unit(result):
    per = SOFTWARE.summary(result, ["context_switches_per_rumour"], role="path", cpu=-1)
    flood = SOFTWARE.summary(result, ["packet_rate_received"], traffic="own_gossip", load="saturation")
    second = SOFTWARE.summary(result, ["context_switches_per_second"], role="path", cpu=-1, traffic="own_gossip", load="saturation")
    per = per[per["load"] == "saturation"]
    assert set(per["traffic"]) == {"own_gossip"}
    assert set(per["unit"]) == {"events/rumour"}
    assert list(per["median"]) == pytest.approx(list(second["median"] / (flood["median"] * 0.5)), rel=0.1)


def test_figures_have_its_words_place_and_colour(result):
    assert ("own_gossip", "saturation") in metrics.carrying(result)
    assert style.traffic_name("own_gossip", "saturation") == "gossip, saturation"
    assert style.unit_of_data("own_gossip") == "rumour heard"
    # By its rank, before kernel OVS.
    assert list(result.cases["switch"]) == ["own-switch", "kernel-ovs"]
    assert style.switch_colour("own-switch") not in {style.switch_colour(name) for name in SWITCHES if vocabulary.is_switch(name)}
    figure = figures.show(result, "context_switches").figure
    said = {text.get_text() for axes in figure.axes for text in (axes.title, axes.xaxis.label)}
    assert "context switches per rumour heard" in said
    figure.draw_without_rendering()
    titles = {axes.get_title(loc) for axes in figure.axes for loc in ("left", "center")}
    assert "gossip, saturation" in titles


def test_the_first_table_has_its_headlines(result):
    rows = list(describe.headlines(result).frame.iloc[:, 0])
    assert "gossip, saturation: switches per rumour" in rows
    assert "gossip, saturation: what it says itself" in rows
    own = SOFTWARE.summary(result, ["rumour_rate"], traffic="own_gossip", load="saturation")
    assert (list(own["median"]), set(own["unit"])) == ([7.0, 7.0], {"packets/s"})
    assert series.judged(result)["own_gossip", "saturation"] == "rumour_rate"


def test_every_plug_in_has_words_and_no_two_switches_a_colour():
    assert all(one.words for one in (*SWITCHES.values(), *TRAFFIC.values()))
    colours = [style.switch_colour(name) for name in SWITCHES]
    assert len(set(colours)) == len(colours)
    assert len({one.rank for one in SWITCHES.values()}) == len(SWITCHES)


def test_what_plug_ins_say_now_is_what_was_frozen_for_results_before():
    """Until one of them changes its words on purpose: then the frozen ones stay, for they are of what was written before."""
    for name, frozen in vocabulary._BEFORE.switches.items():
        assert (SWITCHES[name].words, SWITCHES[name].rank, SWITCHES[name].colour) == (frozen.words, frozen.rank, frozen.colour)
    for name, words in vocabulary._BEFORE.traffics.items():
        assert (TRAFFIC[name].data, TRAFFIC[name].headlines) == (words.data, words.headlines)


def test_a_vocabulary_that_is_not_understood_is_one_sentence(result):
    path = result.path / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["vocabulary"]["switches"]["own-switch"]["smell"] = "of roses"
    path.write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match=r"manifest.json can't be read .*smell"):
        load(result.path)


def test_a_vocabulary_survives_its_manifest():
    assert Vocabulary.from_json(json.loads(json.dumps(OWN.to_json()))) == OWN


def test_words_are_those_of_the_collector_that_counted(monkeypatch):
    """The model's cycles are estimated, a PMU's are not; and a stage's TSC cycles per packet are no part of the model's stack."""
    model, switch = (COLLECTORS[name] for name in ("uarch_model", "vhost_switch"))
    monkeypatch.setattr(
        vocabulary,
        "_collectors",
        {
            "uarch_model": CollectorWords(model.words, model.says),
            "perf_stat": CollectorWords("", {"cycles": NumberWords("core cycles", better="less"), "ipc": NumberWords("", better="more")}),
            "vhost_switch": CollectorWords(switch.words, switch.says),
        },
    )
    vocabulary.number.cache_clear()
    assert vocabulary.number("cycles_per_packet", ("uarch_model",)).words == "estimated cycles"
    assert vocabulary.number("cycles_per_packet_user", ("perf_stat",)).words == "core cycles"
    assert vocabulary.number("cycles_per_packet_p99", speakers(SOFTWARE)).words == "TSC cycles per packet of a burst"
    assert (speakers(MODEL), speakers(HARDWARE), speakers(SOFTWARE)) == (("uarch_model",), ("perf_stat",), ("vhost_switch",))
    assert vocabulary.better("udp_flood", "ipc", speakers(HARDWARE)) == "more"
    assert vocabulary.better("udp_flood", "ipc", speakers(SOFTWARE)) == ""
    vocabulary.number.cache_clear()


@pytest.mark.parametrize("words", [lambda **better: NumberWords("a", **better), lambda **better: Headline("a", "b", **better)])
def test_a_direction_that_is_none_is_refused(words):
    with pytest.raises(ValueError, match="better is 'lower': use one of '', 'more', 'less'"):
        words(better="lower")


def test_a_figure_that_does_not_draw_what_asks_for_it_is_told(result):
    manifest = json.loads((result.path / "manifest.json").read_text())
    asked = {
        "sneezes": "counts",
        "mood": "throughput",
        "coughs": "nonsense",
        "stalls": "hardware_per_packet",
        "x_per_packet": "hardware_per_packet",
    }
    numbers = {name: {"words": "", "better": "", "figure": figure} for name, figure in asked.items()}
    manifest["vocabulary"]["collectors"] = {"own_doctor": {"words": "", "numbers": numbers}}
    (result.path / "manifest.json").write_text(json.dumps(manifest))
    said = figures.not_taken(load(result.path))
    assert said == [
        "`mood` asks to be drawn by the figure `throughput`, which does not draw it: use counts.",
        "`coughs` asks to be drawn by the figure `nonsense`, which does not draw it: use counts.",
        "`stalls` asks to be drawn by the figure `hardware_per_packet`, which does not draw it: use counts.",
    ]
    assert said[0] in describe.all_limits(load(result.path))


def test_what_shipped_collectors_ask_for_is_drawn():
    asked = {words.figure for one in COLLECTORS.values() for words in one.says.values()} - {""}
    assert asked <= {"counts", "hardware_per_packet"}
