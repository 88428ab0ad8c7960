# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab is booted with the one of Debian's kernels that is nearest to this machine's."""

from types import SimpleNamespace

import pytest

from vsprof.bench import like_kernel
from vsprof.testbeds.base import KERNELS


@pytest.mark.parametrize(
    ("older", "newer", "between"),
    [("6.12.118+deb13-amd64", "6.18.44-fc-v657", 6), ("6.18.44", "7.3.4+deb13-amd64", 5), ("5.19.0", "6.0-rc1", 1), ("4.20", "5.0.1", 1)],
)
def test_releases_are_counted_over_major_numbers(older, newer, between):
    assert like_kernel.place(newer) - like_kernel.place(older) == between


@pytest.mark.parametrize(("own", "suite"), [("6.18.44", "trixie-backports"), ("6.15.2", "trixie"), ("6.5.0-test", "bookworm")])
def test_the_nearest_one_counts(own, suite):
    assert like_kernel.nearest(own, {**like_kernel.STABLE, like_kernel.NEWEST: "7.3.4+deb13-amd64"}) == suite


def test_of_two_as_near_it_is_the_older_one():
    assert like_kernel.nearest("6.2", {"trixie": "6.3", "bookworm": "6.1"}) == "bookworm"


def test_the_newest_is_fetched_only_for_a_newer_machine(monkeypatch):
    asked = []
    monkeypatch.setattr(like_kernel.kernels, "get", lambda suite, say: asked.append(suite) or SimpleNamespace(release="6.16.3+deb13-amd64"))
    assert like_kernel.choose("6.12.0", print) == "trixie"
    assert not asked
    assert like_kernel.choose("6.18.44-fc-v657", print) == "trixie-backports"
    assert asked == ["trixie-backports"]


def test_the_lab_has_them_all():
    assert {*like_kernel.STABLE, like_kernel.NEWEST} <= {*KERNELS}
