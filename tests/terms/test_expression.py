# SPDX-License-Identifier: GPL-2.0-or-later
"""Formulas: what they give, what they refuse, and that no text does anything else."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.terms import expression
from vsprof.terms.expression import BadFormula, Expression, Formula, Value

VALUES = {"a": 6.0, "b": 4.0, "zero": 0.0, "none": None, "MEM.L1_MISS": 3.0, "cache-misses": 9.0, "n0": 100.0, "irq:entry": 5.0}


def evaluated(formula: str | Expression, values: dict, notes: dict | None = None) -> Value:
    read = expression.parse(formula) if isinstance(formula, str) else formula
    return expression.compute(
        "the metric", {"the metric": Formula(read)}, {name.casefold(): value for name, value in values.items()}, notes
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a / b", 1.5),
        ("a + b * 2", 14),
        ("-(a - b)", -2),
        ("+a", 6),
        ("1e3 * a", 6000),
        (".5 * a", 3),
        ("010", 10),
        ("MEM.L1_MISS / a", 0.5),
        (r"cache\-misses / MEM.L1_MISS", 3),
        ("irq:entry", 5),
        ("n0 / a * 0 + n0", 100),
        ("min(a, b, 5)", 4),
        ("max(a)", 6),
        ("d_ratio(a, b)", 1.5),
        ("a if a > b else b", 6),
        ("(a <= b) + (a != b)", 1),
        ("1 / zero if zero > 0 else 8", 8),
    ],
)
def test_values(text, value):
    assert evaluated(text, VALUES) == Value(value)


@pytest.mark.parametrize("text", ["a / zero", "d_ratio(a, zero)", "a / (b - 4)", "a / (b - b)"])
def test_division_by_zero_is_no_value(text):
    result = evaluated(text, VALUES)
    assert result.value is None
    assert result.note.startswith("division by zero: ")


def test_the_reason_names_the_divisor():
    assert evaluated(r"a / (cache\-misses - 9)", VALUES).note == "division by zero: cache-misses - 9.0 is 0"


def test_what_was_not_counted_says_so():
    assert evaluated("a + none", VALUES) == Value(None, "none was not counted")
    assert evaluated("a + gone", VALUES, {"gone": "no PMU"}) == Value(None, "no PMU")


def test_too_large_a_result_is_no_value():
    assert evaluated("a * a", {"a": 1e200}).value is None
    assert evaluated("a - a", {"a": math.inf}).value is None


def test_names_in_order_of_first_use():
    assert expression.parse("b + max(a, b) / packets").names == ("b", "a", "packets")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no formula"),
        ("a +", "is no formula"),
        ("a b", "is no formula"),
        ("(a", "is no formula"),
        ("a < b < c", "is no formula"),
        ("a if b", "is no formula"),
        ("a(b)", "is no formula"),
        ("min", "is no formula"),
        ("min + 1", "is no formula"),
        ("a, b", "is no formula"),
        ("a ** b", "is no formula"),
        ("a // b", "is no formula"),
        ("lambda", None),
        ("__import__", None),
        ("__import__('os')", "can't read"),
        ("a[0]", "can't read"),
        ("'a'", "can't read"),
        ("a; b", "can't read"),
        ("ä", "can't read"),
        ("a & b", "can't read"),
        ("#SMT_on * a", "#SMT_on is a literal of perf"),
        (r"cpu@event\=0x3c@", "names an event by its PMU"),
        ("1e999", "too large"),
        ("9" * 400, "too large"),
        ("min()", "takes one or more arguments, found 0"),
        ("d_ratio(a)", "takes 2 arguments, found 1"),
        ("(" * 150 + "a" + ")" * 150, None),
        ("-" * 100 + "a", "nested more than"),
        ("+".join("a" * 100), "nested more than"),
        ("a" * 5000, "has 5000 characters"),
    ],
)
def test_what_is_refused(text, why):
    if why is None:  # a name like any other, or brackets that mean nothing
        assert expression.parse(text).names
        return
    with pytest.raises(BadFormula, match=why.replace("+", r"\+")):
        expression.parse(text)


FORMULAS = st.recursive(
    st.sampled_from(["a", "b", "zero", "none", "gone", "MEM.L1_MISS", r"cache\-misses", "1", "0", "2.5", "1e300"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "<", ">=", "=="]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        st.tuples(st.sampled_from(["min", "max", "d_ratio"]), inner, inner).map(lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} if {parts[1]} else {parts[2]})"),
        inner.map(lambda text: f"-({text})"),
    ),
    max_leaves=25,
)


@settings(max_examples=200, deadline=None)
@given(FORMULAS)
def test_a_formula_gives_a_number_or_a_reason(text):
    result = evaluated(text, VALUES)
    assert (result.value is None) == bool(result.note)
    assert result.value is None or math.isfinite(result.value)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60) | st.text("ab01.()+-*/<>=!, \\@#'ifelsmnxd_rato", max_size=60))
def test_any_text_is_a_formula_or_refused(text):
    try:
        read = expression.parse(text)
    except BadFormula:
        return
    result = evaluated(read, VALUES)
    assert (result.value is None) == bool(result.note)
