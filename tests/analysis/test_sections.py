# SPDX-License-Identifier: GPL-2.0-or-later
"""Sections display what they have, in order, and nothing for what a result lacks. The whole reports are tested with the notebooks."""

import dataclasses

import pytest
from IPython.display import Markdown

from vsprof.analysis import figures, sections
from vsprof.terms.errors import BadInput


@pytest.fixture
def displayed(monkeypatch):
    """What was displayed, in order."""
    parts = []
    monkeypatch.setattr(sections, "display", lambda *shown: parts.extend(shown))
    return parts


def texts(parts):
    return [part.data for part in parts if isinstance(part, Markdown)]


def headings(parts):
    return [text.splitlines()[0] for text in texts(parts) if text.startswith("## ")]


def test_a_text_is_markdown_and_nothing_is_left_out_but_what_is_empty(displayed):
    sections.show("**so**", None, "", 7)
    [text, number] = displayed
    assert (text.data, number) == ("**so**", 7)


def test_rates_that_nobody_searched_have_no_section(displayed, two_switches):
    sections.Report(two_switches).no_drop()
    assert not displayed


def test_rates_that_were_searched_are_explained_by_whose_time_they_are_in(displayed, searched):
    manifest = {**searched.manifest, "facts": {**searched.manifest["facts"], "clock": {"cpu_name": "Made-up 1"}}}
    for result in (searched, dataclasses.replace(searched, manifest=manifest)):
        sections.Report(result).no_drop()
    real, modelled = (text for text in texts(displayed) if text.startswith("## Rates without loss\n"))
    assert "RFC 2544" in real
    assert "In modelled time" not in real
    assert "In modelled time a trial lasts" in modelled


def test_where_the_model_counted_nothing_its_figures_are_left_out_and_the_reason_said_once(displayed, two_switches):
    sections.Report(two_switches).cycles()
    assert headings(displayed) == ["## Why: where the cycles of a packet went"]
    assert not [part for part in displayed if isinstance(part, figures.Shown | figures.NotShown)]
    [reason] = [text for text in texts(displayed) if "no window of this result was counted by the model" in text]
    assert reason.startswith("*Not shown")


def test_where_the_model_counted_all_of_it_is_shown(displayed, modelled):
    sections.Report(modelled).cycles()
    assert len([part for part in displayed if isinstance(part, figures.Shown)]) == 5


def test_every_report_ends_alike(displayed, two_switches):
    sections.Report(two_switches).rest("*Mine*: a note.")
    assert headings(displayed) == ["## Everything that was counted", "## How to read this"]
    [notes] = [text for text in texts(displayed) if "*Mine*" in text]
    assert notes.startswith("- *Mine*: a note.\n- *Interval*")


def test_a_result_that_is_not_there(displayed, tmp_path):
    with pytest.raises(BadInput, match="is no result"):
        sections.begin(tmp_path / "none")
    assert not displayed
