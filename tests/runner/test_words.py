# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands in messages, as they can be typed where vsprof is installed."""

import pytest

from vsprof.runner import words
from vsprof.terms import places


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run `make doctor` again", "run `vsprof doctor` again"),
        ("by the first `make profile-vm2vm`", "by the first `vsprof run vm2vm`"),
        ("`make profile-vm2vm TESTBED=native`", "`vsprof run vm2vm --testbed native`"),
        ("`make report RUN=…`", "`vsprof report …`"),
        ("`make resume` goes on", "`vsprof run --resume` goes on"),
        ("`make host INVENTORY=servers.ini`", "`vsprof host --inventory servers.ini`"),
        ("`make -C dataplane` and `make toplev PERFMON=x`", "`make -C dataplane` and `make toplev PERFMON=x`"),
    ],
)
def test_a_target_of_make_is_a_command_of_vsprofs(monkeypatch, text, said):
    assert words.here(text) == text
    monkeypatch.setattr(places, "IN_CLONE", False)
    assert words.here(text) == said
