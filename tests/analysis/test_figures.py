# SPDX-License-Identifier: GPL-2.0-or-later
"""Every figure is drawn, says where its numbers come from, and says why when it can't be drawn."""

import importlib
import math
import pkgutil
from pathlib import Path

import pytest
from matplotlib.colors import to_rgba

from vsprof.analysis import figures, metrics, model, style
from vsprof.analysis.figures import __main__, decomposition
from vsprof.analysis.load import load
from vsprof.analysis.source import WINDOW
from vsprof.terms.errors import BadInput

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(module.name for module in pkgutil.iter_modules(figures.__path__) if module.name != "__main__")
OWN = {
    "counts",
    "stages",
    "frame_latency",
    "growth",
    "growth_costs",
    "outage",
    "no_drop",
    "timeline",
    "validation_events",
    "validation_switches",
    "validation_times",
    "roofline",
    "what_if",
}
"""Of changes of the processor, of what there is more and more of, of vhost-switch alone, of frame-probe's single frames, of rates that were searched, of numbers that ask for it, of what happened when, of no result: tested by themselves."""
PROBED = ["frame_latency", "outage"]
MODELLED = [
    name
    for name in NAMES
    if getattr(importlib.import_module(f"vsprof.analysis.figures.{name}"), "SOURCE", "") == "model" and name not in OWN
]
COUNTED_BY_PMU = [name for name in NAMES if getattr(importlib.import_module(f"vsprof.analysis.figures.{name}"), "SOURCE", "") == "hardware"]
COUNTED = [name for name in NAMES if name not in {*MODELLED, *COUNTED_BY_PMU, *OWN}]


@pytest.mark.parametrize("name", COUNTED)
def test_a_figure_is_drawn_with_its_caption(three_accesses, name):
    shown = figures.show(three_accesses, name)
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert "Testbed: lab" in shown.caption
    assert "n=3" in shown.caption
    assert "Emulated lab" in shown.caption
    assert "numbers behind this figure" in shown._repr_html_()


@pytest.mark.long
@pytest.mark.parametrize("name", PROBED)
def test_a_figure_of_single_frames_is_drawn_from_them_alone(probed, two_switches, name):
    shown = figures.show(probed, name)
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert "n=3" in shown.caption
    assert "are not in this result" in figures.show(two_switches, name).text


def test_what_was_published_of_single_frames_stands_beside_ours(probed):
    found = figures.show(probed, "frame_latency").table
    assert set(found["whose"]) == {"ours", "published"}
    after = found[(found["label"] == "published: host, after") & (found["metric"] == "latency_mean")]
    assert list(after["median"]) == [14e-6]


def test_what_did_not_come_back_is_said_and_has_no_bar(probed):
    found = figures.show(probed, "outage").table
    kernel = found[found["switch"] == "kernel-ovs"]
    assert list(kernel.loc[kernel["metric"] == "came_back", "median"]) == [0]
    assert "outage" not in set(kernel["metric"])
    assert list(found.loc[(found["switch"] == "ovs-dpdk") & (found["metric"] == "outage"), "median"]) == [1.5]


@pytest.mark.parametrize("name", MODELLED)
def test_a_figure_of_the_model_says_that_it_is_an_estimate(modelled, name):
    shown = figures.show(modelled, name)
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert "Source: estimated (model: Made-up 1)" in shown.caption
    assert "software counters" not in shown.caption
    assert "is left in" not in shown.caption


@pytest.mark.parametrize("name", MODELLED)
def test_a_figure_of_the_model_needs_its_windows(two_switches, name):
    assert "no window of this result was counted by the model" in figures.show(two_switches, name).text


@pytest.mark.long
@pytest.mark.parametrize("name", COUNTED_BY_PMU)
def test_a_figure_of_the_pmu_names_the_processor(counted, name):
    shown = figures.show_counted(counted, name)
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert "Source: hardware counters (Made-up 2)" in shown.caption
    assert "software counters" not in shown.caption


@pytest.mark.parametrize("name", COUNTED_BY_PMU)
def test_a_figure_of_the_pmu_is_there_only_if_one_counted(modelled, name):
    assert figures.show_counted(modelled, name) is None
    assert "no PMU counted in this result" in figures.show(modelled, name).text


@pytest.fixture(scope="module")
def early(sample, tmp_path_factory):
    """SYNTHETIC: of a model that did not tell yet which polls were in vain."""
    result = load(sample.write(tmp_path_factory.mktemp("early") / "r", own="uarch_model", repetitions=1))
    return sample.with_frame(result, result.frame[~result.frame["name"].str.startswith("empty_polls")])


@pytest.mark.long
@pytest.mark.parametrize("name", MODELLED)
def test_a_figure_of_the_model_says_where_polling_is_left_in(early, name):
    assert "Idle polling is left in" in figures.show(early, name).caption


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in COUNTED if name not in ("published", "ratios")])
def test_a_figure_without_numbers_says_why(sample, tmp_path, name):
    needs = getattr(importlib.import_module(f"vsprof.analysis.figures.{name}"), "NEEDS", ("goodput",))
    shown = figures.show(load(sample.write(tmp_path / "r", repetitions=1, drop=(*needs, "packet_rate_received"))), name)
    if name == "loss_per_hop":  # its counts belong to the whole flood, which the sample never drops
        return
    assert "not offered here" in shown.text


@pytest.mark.long
def test_one_repetition_is_drawn_without_an_interval(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", repetitions=1))
    for name in COUNTED:
        assert "no interval" in figures.show(result, name).caption, name


def test_a_native_result_is_not_called_emulated(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", testbeds=("native",)))
    assert "Emulated" not in figures.show(result, "throughput").caption


@pytest.fixture(scope="module")
def idle_too(sample, tmp_path_factory):
    """SYNTHETIC: all traffics, and idle."""
    return load(sample.write(tmp_path_factory.mktemp("idle") / "r", traffics=[*sample.TRAFFICS, sample.IDLE]))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in COUNTED if name != "access_rates"])
def test_a_figure_is_drawn_where_nothing_was_sent(idle_too, name):
    assert figures.png(figures.show(idle_too, name).figure).startswith(b"\x89PNG")


def test_idle_is_named_and_has_no_cost_per_packet(idle_too):
    figure = figures.show(idle_too, "pmd").figure
    shares, costs = figure.axes
    assert [text.get_text() for text in shares.get_yticklabels()][-1] == "idle"
    assert len(shares.get_yticks()) == len(costs.get_yticks()) == 5
    assert len(costs.patches) == 4
    texts = [text.get_text() for axes in figures.show(idle_too, "context_switches").figure.axes for text in axes.texts]
    assert "nothing was sent" in texts


def test_every_switch_has_a_colour_of_its_own():
    assert len(set(style.SWITCHES)) == len(style.SWITCHES)


@pytest.mark.long
def test_many_settings_are_drawn(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", frames=(64, 1518), repetitions=2, own="uarch_model"))
    assert all(figures.png(figures.show(result, name).figure) for name in NAMES if name not in {"access_rates", *COUNTED_BY_PMU, *OWN})


def test_the_stages_of_vhost_switch_are_drawn_per_packet_and_make_up_the_whole(staged):
    shown = figures.show(staged, "stages")
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert set(shown.table["traffic"]) == {"udp_flood"}
    for _, case in shown.table.groupby("case_id"):
        cost = case.set_index("stage")["median"]
        assert cost["dequeue"] == pytest.approx(40.0)
        assert cost.drop("all").sum() == pytest.approx(cost["all"])
    assert "64 B, dequeue=zero-copy" in " ".join(shown.table["label"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "whole", "column", "parts"),
    [
        (model, "model_cycles_per_packet", "metric", [f"model_{part}_per_packet" for part in model.CYCLES]),
        (model, "model_cycles_per_packet", "role", ["switch", "vhost", "guest", "softirq"]),
        (metrics, "context_switches_per_packet", "role", ["switch", "vhost", "guest", "softirq"]),
    ],
    ids=["causes", "roles", "switches"],
)
def test_in_each_window_the_parts_of_a_stack_are_the_whole(source, whole, column, parts):
    """Else drawing them in proportion would hide a rest."""
    rows = source.of(load(ROOT / "results" / "reference"))
    rows = rows[(rows["traffic"] == "udp_flood") & (rows["cpu"] == -1)]
    rows = rows if column == "role" else rows[rows["role"] == "path"]
    rows = rows if column == "metric" else rows[rows["metric"] == whole]
    sums = rows[rows[column].isin(parts)].groupby(WINDOW)["part"].sum()
    wholes = rows[(rows["metric"] == whole) & (rows["role"] == "path")].set_index(WINDOW)["part"]
    assert len(wholes) >= 12
    assert list(sums.reindex(wholes.index)) == pytest.approx(list(wholes))


@pytest.mark.long
@pytest.mark.parametrize("name", ["cpi_stack", "context_switches", "model_roles"])
def test_the_parts_of_a_stack_are_drawn_up_to_the_number_beside_it(name):
    """Of a real result: in made-up ones the medians of the parts may happen to sum to that of the whole."""
    drawn = figures.show(load(ROOT / "results" / "reference"), name).figure
    outside = to_rgba(style.ROLES["host-other"]["color"])
    numbers = 0
    for axes in drawn.axes:
        bars = [bar for bar in axes.patches if bar.get_facecolor() != outside]
        for text in axes.texts:
            if not text.get_text()[0].isdigit():
                continue
            place = text.get_position()[1]
            long = sum(bar.get_width() for bar in bars if bar.get_y() < place < bar.get_y() + bar.get_height())
            assert long == pytest.approx(float(text.get_text().replace(",", "")), rel=0.006), name
            numbers += 1
    assert numbers >= 12


def test_there_are_no_stages_where_another_switch_ran(two_switches):
    assert "timed_packets" in figures.show(two_switches, "stages").text


def test_the_poll_mode_thread_of_vhost_switch_is_drawn_as_that_of_ovs_is(staged):
    table = figures.show(staged, "pmd").table
    assert set(table[table["traffic"] == "idle"]["metric"]) == {"pmd_busy", "pmd_idle"}
    assert table[table["metric"] == "pmd_cycles_per_packet"]["median"].tolist() == pytest.approx([125.0] * 4)


def test_rates_that_were_searched_are_drawn_between_their_bounds(searched):
    shown = figures.show(searched, "no_drop")
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert "n=3" in shown.caption
    assert "Emulated lab" in shown.caption
    rates = shown.table[shown.table["load"] == "ndr"].set_index("access")
    assert rates.loc["vhost-user", "median"] == pytest.approx(61_200)
    assert rates.loc["vhost-user", "upper_bound"] == pytest.approx(1.04 * 61_200)
    label = shown.figure.axes[0].get_xlabel()
    assert label == "rate found (kpps); trials of 1 s, 5 s at each rate, of which 50% may be bad; bounds within 5%"


def test_where_no_rate_was_found_there_is_no_bar_and_a_reason(searched):
    shown = figures.show(searched, "no_drop")
    none = shown.table[shown.table["access"] == "virtio-net"]
    assert len(none) == 2
    assert none["median"].isna().all()
    assert "even at the lowest rate" in shown.caption
    panel = shown.figure.axes[0]
    assert len(panel.patches) == 2
    assert panel.get_yticklabels()[0].get_text().endswith("(no rate found)")


def test_nothing_is_said_of_rates_where_none_was_searched(two_switches):
    assert "not in this result" in figures.show(two_switches, "no_drop").text


def test_a_search_that_found_nothing_anywhere_is_drawn_all_the_same(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", accesses=("virtio-net",), traffics=sample.SEARCHED))
    shown = figures.show(result, "no_drop")
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert list(shown.table["upper_bound"]) == [1000.0, 1000.0]


@pytest.mark.parametrize("reach", [0.01, 0.1, 0.5, 1.0, 1.05, 1.2, 2.0, 3.8, 4.2, 8.0])
def test_a_ratios_axis_has_round_marks_on_both_sides_of_one(reach):
    ticks = list(decomposition.round_ratios(reach))
    assert 1.0 in ticks
    assert 3 <= len(ticks) <= 12
    assert min(ticks) < 1 < max(ticks)
    assert all(abs(math.log(tick)) <= reach for tick in ticks)


@pytest.mark.parametrize(("name", "near"), [("througput", "throughput"), ("validation_event", "validation_events")])
def test_a_misspelt_figure_is_one_error_on_the_command_line(two_switches, capsys, tmp_path, name, near):
    assert __main__.main([name, str(two_switches.path), str(tmp_path / "x.png")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"unknown figure '{name}': use one of access_rates, causes, ")
    assert f"; did you mean {near}" in printed
    assert printed.count("\n") == 1


def test_so_it_is_in_a_notebook(two_switches):
    for shown in (figures.show, figures.show_counted):
        with pytest.raises(BadInput, match=r"unknown figure 'misspelt': use one of access_rates, .*, what_if$"):
            shown(two_switches, "misspelt")
