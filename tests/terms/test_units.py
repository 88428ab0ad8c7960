# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers as people read them."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.terms.units import duration, gib, si, significant, unknown

MISSING = "–"


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (33_400, "packets/s", "33.4 kpps"),
        (412_752_007.24, "bit/s", "413 Mbit/s"),
        (0.00267, "seconds", "2.67 ms"),
        (15e-6, "seconds", "15.0 µs"),
        (3e-9, "seconds", "3.00 ns"),
        (1.2e9, "hertz", "1.20 GHz"),
        (0, "packets/s", "0 pps"),
        (0.0, "ratio", "0 ratio"),
        (0.001, "packets", "0.00100 packets"),
        (-33_400, "packets/s", "-33.4 kpps"),
        (None, "seconds", MISSING),
        (math.nan, "packets/s", MISSING),
    ],
)
def test_examples(value, unit, shown):
    assert si(value, unit) == shown


@given(st.sampled_from(["packets/s", "seconds", "bytes", "events", "ratio", ""]))
def test_a_missing_value_is_never_shown_as_zero(unit):
    assert "0" not in si(None, unit)
    assert "0" not in si(math.nan, unit)


@given(st.floats(1e-9, 1e12) | st.floats(-1e12, -1e-9), st.sampled_from(["packets/s", "seconds", "bytes", "events", "ratio"]))
def test_what_was_counted_is_never_shown_as_zero_or_missing(value, unit):
    shown = si(value, unit)
    assert shown != MISSING
    assert float(shown.split()[0].replace(",", "")) != 0


@given(st.floats(1e-9, 1e12))
def test_three_digits_are_within_half_a_percent(value):
    prefix = {"G": 1e9, "M": 1e6, "k": 1e3, "": 1, "m": 1e-3, "µ": 1e-6, "n": 1e-9}
    match = re.fullmatch(r"([\d,.]+) ([GMkmµn]?)s", si(value, "seconds"))
    assert float(match[1].replace(",", "")) * prefix[match[2]] == pytest.approx(value, rel=0.0051)


@given(st.floats(1e-300, 1e300))
def test_significant_uses_no_exponent(value):
    assert "e" not in significant(value)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(3.21, "3.2 s"), (12.3, "12 s"), (245, "4 min 05 s"), (3720, "1 h 02 min"), (3599.9, "1 h 00 min"), (0, "0.0 s")]
)
def test_duration(seconds, shown):
    assert duration(seconds) == shown


@given(st.floats(0, 1e6))
def test_a_duration_never_shows_sixty(seconds):
    assert not re.search(r"\b60 (s|min)", duration(seconds))


def test_gib():
    assert gib(5 << 30) == "5.0 GiB"


def test_units_of_ours_quotients_and_fractions_of_something_are_known():
    assert not unknown(("own", unit, "x") for unit in ("events", "TSC cycles", "packets/s", "bytes/flow", "fraction of slots", "number"))


def test_a_warning_about_a_unit_names_its_numbers_and_the_units_that_are_known():
    numbers = [("softnet", "pakets", f"softnet_{name}") for name in "ba"] + [("softnet", "events", "softnet_squeezed")]
    [text] = unknown([*numbers, *numbers])
    assert text.startswith(
        "softnet has softnet_a, softnet_b in 'pakets', which is no unit that vsprof knows: shown as written, neither per packet"
    )
    assert "Known are events, packets, bytes, " in text
    assert text.endswith("A count of anything else is in `events`, a quotient has a / (`bytes/flow`), and anything else is a `number`.")
