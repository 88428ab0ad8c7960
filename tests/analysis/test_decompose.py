# SPDX-License-Identifier: GPL-2.0-or-later
"""The split of a ratio of cycles, by properties: parts sum to the whole, exchanging the cases flips signs, units change nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.analysis import decompose
from vsprof.analysis.decompose import Account

ROLES, CAUSES = ("switch", "vhost", "guest"), ("base", "memory")
few = settings(max_examples=40, deadline=None)
counts = st.floats(1.0, 1e6)


@st.composite
def accounts(draw, repetitions: int = 0, absent: bool = True):
    """Of 1 to 4 repetitions of 1 to 3 windows; a role may be absent."""
    there = [True, *(draw(st.booleans()) if absent else True for _ in ROLES[1:])]
    runs = []
    for _ in range(repetitions or draw(st.integers(1, 4))):
        windows = []
        for _ in range(draw(st.integers(1, 3))):
            cells = [draw(counts) if role else 0.0 for role in there for _ in range(1 + len(CAUSES))]
            windows.append([draw(counts), *cells])
        runs.append(np.array(windows))
    return Account(ROLES, CAUSES, tuple(runs))


def part(table, split, role="path", cause=None):
    rows = table[(table["split"] == split) & (table["role"] == role)]
    return rows if cause is None else float(rows.loc[rows["cause"] == cause, "part"].iloc[0])


def one(instructions: float, base: float, memory: float, vhost: float = 0.0) -> Account:
    """One window with one packet: the switch's instructions and cycles, and as many of vhost, all at CPI 1."""
    return Account(("switch", "vhost"), CAUSES, (np.array([[1.0, instructions, base, memory, vhost, vhost, 0.0]]),))


@few
@given(accounts(), accounts())
def test_the_parts_of_every_split_sum_to_the_whole(one, other):
    found = decompose.decompose(one, other)
    whole = part(found, "whole", cause="whole")
    factors = part(found, "factor")["part"]
    assert factors.sum() == pytest.approx(whole, abs=1e-9)
    assert part(found, "cause")["part"].sum() == pytest.approx(part(found, "factor", cause="cpi"), abs=1e-9)
    roles = found[found["split"] == "role"]
    assert roles.loc[roles["cause"] == "whole", "part"].sum() == pytest.approx(whole, abs=1e-9)
    for role in ROLES:
        both = part(found, "role", role, "instructions") + part(found, "role", role, "cpi")
        assert both == pytest.approx(part(found, "role", role, "whole"), abs=1e-9)


@few
@given(accounts(), accounts(), st.booleans())
def test_exchanging_the_cases_flips_every_sign(one, other, paired):
    if paired and len(one.runs) != len(other.runs):
        with pytest.raises(ValueError, match="pairs"):
            decompose.decompose(one, other, paired=True)
        return
    there, back = (decompose.decompose(*pair, paired=paired) for pair in ((one, other), (other, one)))
    assert back["part"].to_numpy() == pytest.approx(-there["part"].to_numpy(), abs=1e-9)
    assert back["low"].to_numpy() == pytest.approx(-there["high"].to_numpy(), abs=1e-9, nan_ok=True)


@few
@given(accounts(), accounts(), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_units_change_nothing(one, other, data, instructions, cycles):
    """Of both cases, as another unit is one for both."""
    unit = np.array([data, *([instructions, cycles, cycles] * len(ROLES))])
    scaled = [Account(ROLES, CAUSES, tuple(run * unit for run in account.runs)) for account in (one, other)]
    plain, other_units = decompose.decompose(one, other), decompose.decompose(*scaled)
    for column in ("part", "low", "high"):
        assert other_units[column].to_numpy() == pytest.approx(plain[column].to_numpy(), abs=1e-7, nan_ok=True)


@few
@given(accounts(), accounts())
def test_intervals_hold_their_parts(one, other):
    found = decompose.decompose(one, other)
    if min(len(one.runs), len(other.runs)) == 1:
        assert found[["low", "high"]].isna().all(axis=None)
    else:
        assert (found["low"] <= found["part"]).all()
        assert (found["part"] <= found["high"]).all()


@few
@given(accounts(repetitions=3))
def test_a_case_differs_from_itself_by_nothing(one):
    found = decompose.decompose(one, one, paired=True)
    assert found[["part", "low", "high"]].to_numpy() == pytest.approx(np.zeros((len(found), 3)), abs=1e-12)


def test_by_hand():
    """Twice the instructions; CPI from 2 to 1, of which memory was one half: with the logarithmic mean L(1, 2) = 1 / ln 2."""
    found = decompose.decompose(one(200, 200, 0), one(100, 100, 100))
    assert part(found, "whole", cause="whole") == pytest.approx(0)
    assert part(found, "factor", cause="instructions") == pytest.approx(np.log(2))
    assert part(found, "factor", cause="cpi") == pytest.approx(-np.log(2))
    assert part(found, "cause", cause="base") == pytest.approx(0)
    assert part(found, "cause", cause="memory") == pytest.approx(-np.log(2))


def test_a_role_that_one_case_lacks_is_all_instructions():
    """100 cycles of the switch in both, and 100 of vhost in one: all of ln 2 is vhost's."""
    found = decompose.decompose(one(100, 100, 0), one(100, 100, 0, vhost=100))
    assert part(found, "whole", cause="whole") == pytest.approx(-np.log(2))
    assert part(found, "role", "vhost", "instructions") == pytest.approx(-np.log(2))
    assert part(found, "role", "vhost", "cpi") == pytest.approx(0)
    assert part(found, "role", "switch", "whole") == pytest.approx(0)


def test_what_moves_both_alike_does_not_widen_a_paired_interval():
    """A machine that is slower from repetition to repetition, and a case that always takes twice the other's cycles."""
    slower = [1.0, 1.3, 1.7, 2.2]
    base = Account(("switch",), CAUSES, tuple(np.array([[1.0, 100, 100 * factor, 0]]) for factor in slower))
    twice = Account(("switch",), CAUSES, tuple(np.array([[1.0, 100, 200 * factor, 0]]) for factor in slower))
    paired, apart = (decompose.decompose(twice, base, paired=paired).iloc[0] for paired in (True, False))
    assert paired["high"] - paired["low"] == pytest.approx(0, abs=1e-9)
    assert apart["high"] - apart["low"] > 0.5


@pytest.mark.parametrize("missing", [0, 1], ids=["data", "instructions"])
def test_without_data_or_instructions_there_is_no_split(missing):
    without = np.array([[1.0, 100, 100, 0]])
    without[0, missing] = 0
    some = Account(("switch",), CAUSES, (np.array([[1.0, 100, 100, 0]]),))
    assert decompose.decompose(some, Account(("switch",), CAUSES, (without,))).empty
    assert decompose.decompose(Account(("switch",), CAUSES, ()), some).empty


def test_windows_without_a_number_are_left_out():
    whole = np.array([[1.0, 100, 150, 50], [1.0, 100, np.nan, 50]])
    some = Account(("switch",), CAUSES, (whole,))
    assert decompose.ratio(decompose.decompose(some, Account(("switch",), CAUSES, (whole[:1],)))).median == 1


@few
@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_the_logarithmic_mean_lies_between_the_geometric_and_the_arithmetic(x, y):
    mean = float(decompose.log_mean(x, y))
    assert np.sqrt(x * y) * (1 - 1e-9) <= mean <= (x + y) / 2 * (1 + 1e-9)
    assert float(decompose.log_mean(x, 0)) == 0
