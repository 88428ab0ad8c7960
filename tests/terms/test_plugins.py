# SPDX-License-Identifier: GPL-2.0-or-later
"""A plug-in exists because its file exists."""

import sys

import pytest

from vsprof.terms import places, plugins
from vsprof.terms.errors import BadInput


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A package with one plug-in, one module that is none, and one whose marker is unset."""
    folder = tmp_path / "sample_room"
    folder.mkdir()
    files = {"__init__": "", "two_words": "PLUGIN = 'it'", "base": "", "draft": "PLUGIN = None"}
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "sample_room"]:
        monkeypatch.delitem(sys.modules, name)
    return "sample_room"


def test_only_what_sets_the_marker_is_found(room):
    assert plugins.find(room, "PLUGIN") == {"two_words": "it"}


def test_a_package_is_a_plug_in_as_a_file_is(room, tmp_path):
    for name, text in {"whole_folder": "PLUGIN = 'all of it'", "no_plugin": ""}.items():
        (tmp_path / room / name).mkdir()
        (tmp_path / room / name / "__init__.py").write_text(text)
        (tmp_path / room / name / "inside.py").write_text("PLUGIN = 'not to be found'")
    assert plugins.find(room, "PLUGIN") == {"two_words": "it", "whole_folder": "all of it"}


def test_names_that_readers_know_with_hyphens_have_them(room):
    assert list(plugins.find(room, "PLUGIN", hyphens=True)) == ["two-words"]


@pytest.mark.parametrize(
    ("package", "marker", "some"),
    [
        ("vsprof.switches", "SWITCH", {"kernel_ovs", "ovs_dpdk"}),
        ("vsprof.collectors", "COLLECTOR", {"softirqs", "ovs_pmd"}),
        ("testbeds", "TESTBED", {"lab"}),
        ("vsprof.workloads.topologies", "TOPOLOGY", {"vm2vm", "vm2host"}),
        ("vsprof.workloads.traffic", "TRAFFIC", {"udp_flood", "tcp_stream", "ping_paced"}),
    ],
)
def test_the_projects_rooms(package, marker, some):
    found = plugins.find(package, marker)
    assert some <= found.keys()
    assert list(found) == sorted(found)
    assert "base" not in found


@pytest.mark.parametrize("file", ["mine.py", "mine/__init__.py"])
@pytest.mark.parametrize(
    ("text", "why"),
    [("1 / 0", "ZeroDivisionError: division by zero"), ("def", "SyntaxError: "), ("import no_such", "ModuleNotFoundError: ")],
)
def test_a_broken_plug_in_of_the_user_s_is_named_by_its_file(room, tmp_path, monkeypatch, file, text, why):
    own = tmp_path / "own"
    path = own / room / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    monkeypatch.setenv(places.PLUGINS, str(own))
    with pytest.raises(BadInput) as refused:
        plugins.find(room, "PLUGIN")
    assert str(refused.value).startswith(f"your plug-in {path} can't be imported: {why}")


def test_a_broken_plug_in_of_the_project_is_an_error_of_its_own(room, tmp_path):
    (tmp_path / room / "broken.py").write_text("1 / 0")
    with pytest.raises(ZeroDivisionError):
        plugins.find(room, "PLUGIN")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(BadInput, match=r"unknown switch 'ovs': use one of a, b"):
        plugins.one("switch", "ovs", {"a": 1, "b": 2})
    assert plugins.one("switch", "a", {"a": 1}) == 1
