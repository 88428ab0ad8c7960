# SPDX-License-Identifier: GPL-2.0-or-later
"""A metric's formula: read once, checked against a short list of what may stand in it, and computed without ``eval``.

It is written as in perf: names of events and metrics (``-`` and the like in a name are escaped, ``cache\\-misses``), numbers,
``+ - * / ( )``, comparisons, ``a if b else c``, ``min``, ``max`` and ``d_ratio``. Unlike perf's, a quotient by zero is no
value, not 0: nothing was counted that it could be the share of.

The event catalogue reads formulas, and analysis computes them again from what a result's manifest says of them: so they are
down here, where both see them.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from terms import messages

LONGEST = 4000
"""Characters of a formula."""
DEEPEST = 60
"""Operations inside each other."""
_TOKEN = re.compile(
    r"""\s+
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>(?:[A-Za-z_]|\\.)(?:[A-Za-z0-9_.:]|\\.)*)
    |(?P<operator><=|>=|==|!=|[-+*/(),<>])
    |(?P<literal>\#\w+)
    |(?P<pmu>@)""",
    re.VERBOSE | re.ASCII,
)
_WORDS = {"if", "else"}
_FUNCTIONS: dict[str, int | None] = {"min": None, "max": None, "d_ratio": 2}
"""What may be called, and with how many arguments; None: with one or more."""
_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_COMPARE: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class BadFormula(ValueError):
    """It can't be read; the text says what, and where."""


class _NoValue(Exception):
    """It can't be computed from these values; the text says why."""


@dataclass(frozen=True, slots=True)
class Value:
    """A computed number; None where there is none, and then ``note`` says why (as in ``terms.schema.Number``)."""

    value: float | None
    note: str = ""


@dataclass(frozen=True)
class Expression:
    """A formula that has been read."""

    text: str
    names: tuple[str, ...]
    """What it needs, in the order of first use."""
    tree: ast.expr

    def evaluate(self, values: Mapping[str, float | None], notes: Mapping[str, str] | None = None) -> Value:
        """Compute it. A name that ``values`` lacks, or has as None, gives no value; ``notes`` may say why a name has none."""
        try:
            result = self._compute(self.tree, values, notes or {})
        except _NoValue as why:
            return Value(None, str(why))
        except OverflowError:
            return Value(None, messages.not_finite())
        return Value(result) if math.isfinite(result) else Value(None, messages.not_finite())

    def _compute(self, node: ast.expr, values: Mapping[str, float | None], notes: Mapping[str, str]) -> float:  # noqa: PLR0911 - one a kind
        def of(part: ast.expr) -> float:
            return self._compute(part, values, notes)

        match node:
            case ast.Constant(value=number):
                return float(number)
            case ast.Name(id=identifier):
                return _known(self.names[int(identifier[1:])], values, notes)
            case ast.UnaryOp(op=sign, operand=inner):
                return -of(inner) if isinstance(sign, ast.USub) else of(inner)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._quotient(of(left), of(right), right)
            case ast.BinOp(left=left, op=sign, right=right):
                return _BINARY[type(sign)](of(left), of(right))
            case ast.Compare(left=left, ops=[sign], comparators=[right]):
                return float(_COMPARE[type(sign)](of(left), of(right)))
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return of(body) if of(test) else of(otherwise)
            case ast.Call(func=ast.Name(id="d_ratio"), args=[left, right]):
                return self._quotient(of(left), of(right), right)
            case ast.Call(func=ast.Name(id=function), args=parts):
                return (min if function == "min" else max)(map(of, parts))
        raise AssertionError(ast.dump(node))  # _check lets nothing else in

    def _quotient(self, left: float, right: float, divisor: ast.expr) -> float:
        if right == 0:
            shown = re.sub(r"\bn(\d+)\b", lambda found: self.names[int(found[1])], ast.unparse(divisor))
            raise _NoValue(messages.division_by_zero(shown))
        return left / right


@dataclass(frozen=True)
class Formula:
    """A metric's formula and the factor of its unit. What it names may be another metric."""

    expression: Expression
    factor: float = 1.0


def compute(
    name: str, formulas: Mapping[str, Formula], counts: Mapping[str, float | None], notes: Mapping[str, str] | None = None
) -> Value:
    """The metric ``name``, in its unit; or the count of that name, if there is no such metric.

    Names are the same whether written large or small: the keys of all mappings are casefolded. ``notes`` says why a name has no
    value. No formula may lead back to itself.
    """
    notes = notes or {}
    key = name.casefold()
    formula = formulas.get(key)
    if formula is None:
        value = counts.get(key)
        return Value(None, notes.get(key) or messages.not_counted(name)) if value is None else Value(value)
    parts = {used: compute(used, formulas, counts, notes) for used in formula.expression.names}
    values, why = ({used: getattr(part, field) for used, part in parts.items()} for field in ("value", "note"))
    result = formula.expression.evaluate(values, why)
    return result if result.value is None else Value(result.value * formula.factor)


def leaves(name: str, formulas: Mapping[str, Formula]) -> Iterator[str]:
    """What a name comes down to, in order, casefolded: everything in it that is no formula. As in ``compute``."""
    formula = formulas.get(name.casefold())
    if formula is None:
        yield name.casefold()
        return
    for used in formula.expression.names:
        yield from leaves(used, formulas)


def parse(text: str) -> Expression:
    """Read a formula. Raises ``BadFormula`` with one line that says what can't stand there."""
    if len(text) > LONGEST:
        raise BadFormula(messages.formula_too_long(len(text), LONGEST))
    names: dict[str, int] = {}
    python = " ".join(_translated(text, names))
    try:
        tree = ast.parse(python, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadFormula(messages.not_a_formula(text)) from error
    _check(tree, text)
    return Expression(text, tuple(names), tree)


def _translated(text: str, names: dict[str, int]) -> Iterator[str]:
    """The formula's tokens as Python has them; each name becomes ``n0``, ``n1``, …, so that none of it means anything in Python."""
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise BadFormula(messages.unreadable_formula(text, place))
        place = found.end()
        kind, token = found.lastgroup, found[0]
        if kind == "literal":
            raise BadFormula(messages.literal_not_known(token))
        if kind == "pmu":
            raise BadFormula(messages.pmu_not_known(text))
        if kind == "number":
            yield _number(token)
        elif kind == "name" and token not in _WORDS and token not in _FUNCTIONS:
            yield _renamed(token, names)
        elif kind is not None:
            yield token


def _renamed(token: str, names: dict[str, int]) -> str:
    plain = re.sub(r"\\(.)", r"\1", token)
    return f"n{names.setdefault(plain, len(names))}"


def _number(token: str) -> str:
    number = float(token)
    if not math.isfinite(number):
        raise BadFormula(messages.not_finite())
    return repr(number)


def _check(node: ast.AST, text: str, depth: int = 0) -> None:
    """Let pass what ``_compute`` knows, and nothing else."""
    if depth > DEEPEST:
        raise BadFormula(messages.formula_too_deep(DEEPEST))
    parts: list[ast.expr]
    match node:
        case ast.Constant(value=float()) | ast.Name():
            parts = []
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            parts = [inner]
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
            parts = [left, right]
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARE:
            parts = [left, right]
        case ast.IfExp(test=test, body=body, orelse=otherwise):
            parts = [test, body, otherwise]
        case ast.Call(func=ast.Name(id=function), args=parts, keywords=[]) if function in _FUNCTIONS:
            _check_arguments(function, len(parts))
        case _:
            raise BadFormula(messages.not_a_formula(text))
    if isinstance(node, ast.Name) and node.id in _FUNCTIONS:
        raise BadFormula(messages.not_a_formula(text))
    for part in parts:
        _check(part, text, depth + 1)


def _check_arguments(function: str, seen: int) -> None:
    need = _FUNCTIONS[function]
    if (need is None and seen == 0) or (need is not None and seen != need):
        raise BadFormula(messages.wrong_arguments(function, "one or more" if need is None else str(need), seen))


def _known(name: str, values: Mapping[str, float | None], notes: Mapping[str, str]) -> float:
    value = values.get(name)
    if value is None:
        raise _NoValue(notes.get(name) or messages.not_counted(name))
    return float(value)
