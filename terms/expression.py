# SPDX-License-Identifier: GPL-2.0-or-later
"""A metric's formula: read once, checked against a short list of what may stand in it, and computed without ``eval``.

It is written as in perf: names of events and metrics (``-`` and the like in a name are escaped, ``cache\\-misses``), numbers,
``+ - * / ( )``, comparisons, ``a if b else c``, ``min``, ``max`` and ``d_ratio``. Unlike perf's, a quotient by zero is no
value, not 0: nothing was counted that it could be the share of.

The event catalogue reads formulas, and analysis computes them again from what a result's manifest says of them: so they are
down here, where both see them.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vsprof.terms import messages

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
_OPERATORS: dict[type[ast.AST], Callable[[float, float], float]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Lt: operator.lt, ast.LtE: operator.le},
    **{ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne},
}
_Known = Callable[[str], float]
"""The value of a name; raises ``_NoValue``."""


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
    compute: Callable[[_Known], float]


@dataclass(frozen=True)
class Formula:
    """A metric's formula and the factor of its unit. What it names may be another metric."""

    expression: Expression
    factor: float = 1.0


def compute(
    name: str, formulas: Mapping[str, Formula], counts: Mapping[str, float | None], notes: Mapping[str, str] | None = None
) -> Value:
    """The metric ``name``, in its unit; or the count of that name, if there is no such metric.

    Names are the same whether written large or small: the keys of all mappings are casefolded. A name that ``counts`` lacks, or has as
    None, gives no value; ``notes`` may say why it has none. No formula may lead back to itself.
    """

    def known(one: str) -> float:
        key = one.casefold()
        if (formula := formulas.get(key)) is not None:
            if not math.isfinite(result := formula.expression.compute(known)):
                raise _NoValue(messages.NOT_FINITE)
            return result * formula.factor
        if (value := counts.get(key)) is None:
            raise _NoValue((notes or {}).get(key) or messages.not_counted(one))
        return float(value)

    try:
        return Value(known(name))
    except _NoValue as why:
        return Value(None, str(why))
    except OverflowError:
        return Value(None, messages.NOT_FINITE)


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
    return Expression(text, tuple(names), _read(tree, tuple(names), text))


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
            if not math.isfinite(number := float(token)):
                raise BadFormula(messages.NOT_FINITE)
            yield repr(number)
        elif kind == "name" and token not in _WORDS and token not in _FUNCTIONS:
            plain = re.sub(r"\\(.)", r"\1", token)
            yield f"n{names.setdefault(plain, len(names))}"
        elif kind is not None:
            yield token


def _read(node: ast.AST, names: Sequence[str], text: str, depth: int = 0) -> Callable[[_Known], float]:  # noqa: PLR0911 - one a kind
    """What computes a part of the formula. These kinds of parts are let in, and nothing else."""
    if depth > DEEPEST:
        raise BadFormula(messages.formula_too_deep(DEEPEST))

    def of(*parts: ast.AST) -> list[Callable[[_Known], float]]:
        return [_read(part, names, text, depth + 1) for part in parts]

    match node:
        case ast.Constant(value=float(number)):
            return lambda known: number
        case ast.Name(id=identifier) if identifier not in _FUNCTIONS:
            return lambda known: known(names[int(identifier[1:])])
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=inner):
            (only,) = of(inner)
            return (lambda known: -only(known)) if isinstance(sign, ast.USub) else only
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _quotient(*of(left, right), _named(right, names))
        case ast.BinOp(left=left, op=sign, right=right) | ast.Compare(left=left, ops=[sign], comparators=[right]) if (
            apply := _OPERATORS.get(type(sign))
        ):
            one, other = of(left, right)
            return lambda known: float(apply(one(known), other(known)))
        case ast.IfExp(test=test, body=body, orelse=otherwise):
            asked, yes, no = of(test, body, otherwise)
            return lambda known: yes(known) if asked(known) else no(known)
        case ast.Call(func=ast.Name(id=function), args=parts, keywords=[]) if function in _FUNCTIONS:
            need = _FUNCTIONS[function]
            if len(parts) != need and (need is not None or not parts):
                raise BadFormula(messages.wrong_arguments(function, "one or more" if need is None else str(need), len(parts)))
            if function == "d_ratio":
                return _quotient(*of(*parts), _named(parts[1], names))
            choose, among = min if function == "min" else max, of(*parts)
            return lambda known: choose(part(known) for part in among)
    raise BadFormula(messages.not_a_formula(text))


def _named(part: ast.AST, names: Sequence[str]) -> str:
    return re.sub(r"\bn(\d+)\b", lambda found: names[int(found[1])], ast.unparse(part))


def _quotient(one: Callable[[_Known], float], other: Callable[[_Known], float], divisor: str) -> Callable[[_Known], float]:
    def divided(known: _Known) -> float:
        left, right = one(known), other(known)
        if right == 0:
            raise _NoValue(messages.division_by_zero(divisor))
        return left / right

    return divided
