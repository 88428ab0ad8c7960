# SPDX-License-Identifier: GPL-2.0-or-later
"""Each layer imports only from layers below it, and every source says its licence."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# From the ground up. Rooms of one floor see each other only where BESIDE says so.
FLOORS = (("terms",), ("testbeds", "analysis"), ("switches", "collectors"), ("workloads",), ("runner",), ("bench",))
ROOMS = [room for floor in FLOORS for room in floor]
SOURCES = {".py", ".c", ".h", ".sh", ".yaml", ".yml"}


def imported_rooms(source: str) -> set[str]:
    """The rooms that a module imports from, wherever in it the import stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # `from vsprof import analysis` as well as `from vsprof.analysis import load`.
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("vsprof.")} & set(ROOMS)


def test_every_library_that_is_imported_is_declared():
    """One that only comes with another is missing as soon as that one does without it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*declared["dependencies"], *declared["optional-dependencies"]["sweep"]]
    known = {re.sub(r"[-_.]+", "-", name).lower() for name in needed}
    of_module = metadata.packages_distributions()
    imported = {top for room in [*ROOMS, "notebooks"] for path in modules(room) for top in imported_libraries(path.read_text())}
    undeclared = {
        top: names
        for top in imported
        if not (names := {re.sub(r"[-_.]+", "-", name).lower() for name in of_module.get(top, [])}) & known and names
    }
    assert not undeclared


def imported_libraries(source: str) -> set[str]:
    """The first parts of the names of all modules that are neither vsprof's nor Python's own."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - {"vsprof"} - sys.stdlib_module_names


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def below(room: str) -> set[str]:
    floor = next(number for number, rooms in enumerate(FLOORS) if room in rooms)
    return {lower for rooms in FLOORS[:floor] for lower in rooms} | {room}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_floors_below_it(room):
    assert modules(room), f"{room}/ has no module"
    wrong = {
        str(path.relative_to(ROOT)): sorted(above) for path in modules(room) if (above := imported_rooms(path.read_text()) - below(room))
    }
    assert not wrong


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("collectors", {"switches", "workloads", "runner", "analysis"}),
        ("switches", {"collectors", "workloads", "runner"}),
        ("testbeds", {"analysis", "switches", "workloads", "collectors", "runner"}),
        ("analysis", {"testbeds", "switches", "workloads", "collectors", "runner"}),
        ("terms", set(ROOMS) - {"terms"}),
    ],
)
def test_a_room_knows_nothing_of(room, forbidden):
    seen = set().union(*(imported_rooms(path.read_text()) for path in modules(room)))
    assert not seen & forbidden


def test_the_check_sees_every_form_of_import():
    assert imported_rooms("import vsprof.runner.cli") == {"runner"}
    assert imported_rooms("from vsprof import analysis") == {"analysis"}
    assert imported_rooms("def f():\n    from vsprof.switches.base import Port") == {"switches"}
    assert imported_rooms("from vsprof.runner import window as w") == {"runner"}
    assert imported_rooms("import json") == set()


def test_nothing_is_imported_by_a_name_that_an_installation_does_not_have():
    rooms = "|".join(ROOMS)
    bare = re.compile(rf"^\s*(?:from|import) (?:{rooms})\b", re.MULTILINE)
    assert not [str(path) for path in sources() if path.suffix == ".py" and bare.search(path.read_text())]


def test_relative_imports_can_not_climb_out_of_a_room():
    dots = re.compile(r"^\s*from \.\.", re.MULTILINE)
    assert not [path for room in ROOMS for path in modules(room) if dots.search(path.read_text())]


def sources() -> Iterable[Path]:
    """All files of the project in git's eyes, new ones included, that are source text."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file() and not name.startswith("results/") and (path.suffix in SOURCES or _is_script(path)):
            yield path


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def test_every_source_says_its_licence_at_its_head():
    found = list(sources())
    assert len(found) > 80
    without = [str(p.relative_to(ROOT)) for p in found if "SPDX-License-Identifier: " not in _head(p)]
    assert not without


def _head(path: Path) -> str:
    # A notebook's begins behind jupytext's twelve lines.
    return "\n".join(path.read_text().splitlines()[:20])


def test_nothing_reads_what_lies_outside_the_checkout():
    # Put together, for this file is a source too.
    outside = ("..", "shared"), ("", "work", "shared")
    wanted = ["/".join(parts) for parts in outside]
    assert not [str(p) for p in sources() if any(text in p.read_text() for text in wanted)]


def plugin_files(room: str, marker: str) -> list[Path]:
    return [p for p in modules(room) if re.search(rf"^{marker} = ", p.read_text(), re.MULTILINE)]


def plugin_name(path: Path) -> str:
    """A plug-in is a file, or a folder that is a package."""
    return path.parent.name if path.stem == "__init__" else path.stem


@pytest.mark.parametrize("collector", plugin_files("collectors", "COLLECTOR"), ids=plugin_name)
def test_every_collector_has_its_page(collector):
    page = ROOT / "docs" / "collectors" / f"{plugin_name(collector)}.md"
    assert page.is_file(), f"write {page.relative_to(ROOT)}: what it measures, fields, overhead, what it can't see"
    assert page.read_text().startswith("# ")
