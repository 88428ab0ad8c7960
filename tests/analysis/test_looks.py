# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of looks.yaml: what they name exists, and what was not measured is not said."""

import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from vsprof.analysis import comparison, explain, explain_dataplane, explain_model, explain_numa, looks, metrics, published
from vsprof.terms import expression

FORMULAS = yaml.safe_load(Path(metrics.__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
COUNTED = re.compile(
    r"(context_switches(_voluntary)?|model_\w+)_(per_\w+|rate|share|rate_with_polling)|model_(switch|guest)_wake_up_\w+|model_cpi|cpu"
)
"""What metrics.py and model.py make of counters."""
MODULES = (explain, explain_dataplane, explain_model, explain_numa, published)


def texts(entry: Any) -> Iterator[str]:
    if isinstance(entry, dict):
        entry = [*entry.get("largest", ()), *(value for key, value in entry.items() if key not in ("traffics", "only"))]
    if isinstance(entry, list):
        for one in entry:
            yield from texts(one)
    else:
        yield str(entry)


def names(entry: Any) -> Iterator[str]:
    """Of the numbers in a row: in texts, in conditions, and as what is needed."""
    for text in texts(entry):
        found = [name for _, name, _, _ in string.Formatter().parse(text) if name]
        if not found and re.search(r"[<>=]=?", text) and not text.startswith("="):
            found = list(expression.parse(text).names)
        yield from found or ([text] if re.fullmatch(r"\w+(\.[\w -]+)+", text) else [])


SIDES = {"base", "other", "one", "rest", "both", "line", "arrow", "ratio", "has", *looks.OF_RATIOS, *looks.TRAFFICS}


def metrics_in(name: str) -> Iterator[str]:
    for part in re.split("[/:]", name):
        yield from [word for word in part.split(".") if word not in SIDES][:1]


def written(group: dict) -> Iterator[str]:
    for name, one in group.items():
        yield from written(one) if isinstance(one, dict) else [name]


@pytest.mark.parametrize("part", looks.ROWS)
def test_every_number_that_a_row_names_is_a_metric(part):
    known = {
        *written(FORMULAS),
        "traffic",
        "load",
        "data",
        "access",
        "emulated",
        "words",
        "program",
        "called",
        "things",
        "Called",
        "Things",
    }
    found = {metric for name in names(looks.ROWS[part]) if "|" not in name for metric in metrics_in(name)}
    assert found
    assert {name for name in found - known if not COUNTED.fullmatch(name)} == set()


def test_every_function_that_a_row_names_is_there():
    assert MODULES
    called = {text for part in looks.ROWS.values() for text in texts(part) if text.startswith("=")}
    assert called == set(looks._FUNCTIONS)


def test_a_text_is_left_out_where_its_number_is(two_switches):
    words = looks.Words(comparison.pairs(two_switches)[0], comparison.sent(two_switches, "flood"))
    entries = ["{other} {other.pmd_busy}", "{base} {base.pmd_busy}", {"first": ["{base.pmd_busy}", "none", "another"]}]
    said = list(words.sentences(entries))
    assert said[0].startswith("OVS-DPDK ")
    assert said[1:] == ["none"]
    assert not words.holds("base.pmd_busy >= 0")
    assert words.holds(["other.pmd_busy >= 0", "has.base.pmd_busy < 1"])
    assert [*words.sentences([{"each": [{"when": "one.pmd_busy > 0", "say": "{one}, not {rest}"}]}])] == ["OVS-DPDK, not kernel OVS"]
