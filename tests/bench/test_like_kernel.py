# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab is booted with the one of Debian's kernels that is nearest to this machine's."""

import contextlib
from types import SimpleNamespace

import pytest

from vsprof.bench import like_kernel, micro_times
from vsprof.collectors.uarch_model import profiles
from vsprof.testbeds.base import KERNELS


@pytest.mark.parametrize(
    ("older", "newer", "between"),
    [
        ("6.12.118+deb13-amd64", "6.18.44-fc-v657", 6),
        ("6.18.44", "7.3.4+deb13-amd64", 5),
        ("5.19.0", "6.0-rc1", 1),
        ("4.20", "5.0.1", 1),
        ("6.16~rc7-amd64", "6.17+deb14-amd64", 1),
    ],
)
def test_releases_are_counted_over_major_numbers(older, newer, between):
    assert like_kernel.place(newer) - like_kernel.place(older) == between


def test_of_two_as_near_it_is_the_older_one():
    assert like_kernel.nearest(5, {"newer": 6, "older": 4, "oldest": 1}) == "older"


@pytest.mark.parametrize(
    ("own", "suite"), [("6.18.44-fc-v657", "trixie-backports"), ("6.15.2", "trixie"), ("6.12.0", "trixie"), ("6.5.0-test", "bookworm")]
)
def test_the_nearest_one_is_taken(monkeypatch, own, suite):
    monkeypatch.setattr(like_kernel.kernels, "get", lambda suite, say: SimpleNamespace(release="7.3.4+deb13-amd64"))
    assert like_kernel.choose(own, print) == suite


def test_the_newest_is_fetched_only_for_a_newer_machine(monkeypatch):
    asked = []
    monkeypatch.setattr(like_kernel.kernels, "get", lambda suite, say: asked.append(suite) or SimpleNamespace(release="6.16.3+deb13-amd64"))
    like_kernel.choose("6.12.0", print)
    assert not asked
    like_kernel.choose("6.13.0", print)
    assert asked == ["trixie-backports"]


def test_a_kernel_that_names_no_release_leaves_the_labs_own(capsys):
    assert like_kernel.choose("SYNTHETIC", print) == KERNELS[0]
    assert "names no release of Linux ('SYNTHETIC')" in capsys.readouterr().out


def test_the_lab_has_them_all():
    assert {*like_kernel.STABLE, like_kernel.NEWEST} <= {*KERNELS}


def test_a_clocked_lab_is_booted_with_it_before_anything_else(monkeypatch):
    done = []

    class Host:
        def __init__(self, **how): ...

        def boot(self, kernel):
            done.append(kernel)

    class Model:
        emulator_plugin = None

        def __init__(self, host, quantum_us): ...

        def setup(self):
            done.append("set up")

        def teardown(self): ...

    monkeypatch.setattr(micro_times, "Lab", lambda **how: contextlib.nullcontext(Host(**how)))
    monkeypatch.setattr(micro_times, "Model", Model)
    monkeypatch.setattr(like_kernel, "choose", lambda own, say: "bookworm")
    with micro_times.clocked(profiles.load(profiles.DEFAULT), 2.0, print):
        assert done == ["bookworm", "set up"]
