# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/adding-a-pmu-event.md does what it says: its entries load, give the number that it gives, and fail with its words."""

import json
import re
from pathlib import Path

import pytest

from vsprof.collectors.events import catalogue
from vsprof.collectors.events.entries import Event, Metric
from vsprof.terms import places
from vsprof.terms.errors import BadInput
from vsprof.terms.expression import Value

PAGE = (Path(__file__).parents[3] / "docs" / "adding-a-pmu-event.md").read_text()
[EXAMPLE] = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
EVENT, METRIC = (entry.get("EventName") or entry["MetricName"] for entry in json.loads(EXAMPLE))


@pytest.fixture
def example(tmp_path, monkeypatch) -> Path:
    """The page's file, where the page says."""
    monkeypatch.delenv(places.EVENTS_NAMED)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    [place] = re.findall(r"file of your own, `~/(.*?)`", PAGE)
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text(EXAMPLE)
    return path


@pytest.mark.usefixtures("example")
def test_the_example_loads_and_counts():
    known = catalogue.load("zen4")
    assert f"`perf stat -e {known.events[EVENT].perf()}`" in " ".join(PAGE.split())
    count, packets, value = (
        float(text.replace(",", ""))
        for text in re.findall(r"([\d,]+) such cycles.* of (\d+) packets make the metric (\d+) ", " ".join(PAGE.split()))[0]
    )
    assert known.evaluate(METRIC, {EVENT: count, "packets": packets}) == Value(value)
    assert known.metrics[METRIC].unit == "cycles/packet"


def test_the_error_shown_is_the_one_given(example):
    [line] = re.findall(r"^…(/mine\.json: .*)$", PAGE, re.MULTILINE)
    asked = line.partition("no event or metric ")[2].partition(";")[0]
    example.write_text(EXAMPLE.replace(f"{EVENT} / packets", f"{asked} / packets"))
    with pytest.raises(BadInput) as error:
        catalogue.load("zen4")
    assert str(error.value) == f"{example.parent}{line}"


def test_every_key_has_a_row():
    keys = {info.alias for kind in (Event, Metric) for info in kind.model_fields.values()}
    rows = {key for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}
    assert keys - {"Deprecated"} <= rows
