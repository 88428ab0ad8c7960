# SPDX-License-Identifier: GPL-2.0-or-later
"""`vsprof names KIND`: the names that a shell completes. It answers while somebody waits at a keyboard, so it looks at files alone:
what would import them takes seconds. Tests hold it against what the imported code knows."""

import json
import os
import re
import shlex
import sys
from argparse import Action
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from vsprof.terms import places

LATEST, MANIFEST = "latest", "manifest.json"
EVENTS, COMMON, SOFTWARE = "collectors/events", "common", "software"


def experiments() -> Iterator[str]:
    return _stems(places.folders("experiments"), "*.yaml")


def results() -> Iterator[str]:
    return (path.parent.name for path in places.RESULTS.glob(f"*/{MANIFEST}"))


def cases() -> Iterator[str]:
    """What `compare` takes as a side: results, and the cases, switches and accesses of the newest complete one."""
    yield from results()
    for case in _manifest(places.RESULTS / LATEST / MANIFEST).get("cases", []):
        yield case["case_id"]
        yield from (case["values"][name] for name in ("switch", "access") if case["values"].get(name))


def collectors() -> Iterator[str]:
    yield "auto"
    yield from _plugins("collectors", "COLLECTOR")


def switches() -> Iterator[str]:
    return (name.replace("_", "-") for name in _plugins("switches", "SWITCH"))


def traffics() -> Iterator[str]:
    return _plugins("workloads/traffic", "TRAFFIC")


def testbeds() -> Iterator[str]:
    yield "auto"
    yield from _plugins("testbeds", "TESTBED")


def profiles() -> Iterator[str]:
    return _stems([*places.own("profiles"), places.ROOT / "collectors/uarch_model/profiles"], "*.yaml")


def events() -> Iterator[str]:
    """The events of all processors that are known, and the schema's words for them. What is made of several, by packet or by
    instruction, is none that a profile has."""
    folders = [places.ROOT / EVENTS, places.own_events(), *places.own("events")]
    for path in (path for folder in folders for path in folder.glob("*/*.json") if path.parent.name != COMMON):
        yield from (entry[key] for entry in _read(path) for key in ("EventName", "MetricName") if key in entry)


def processors() -> Iterator[str]:
    """Whose events the catalogue has."""
    folders = [path.parent.name for path in (places.ROOT / EVENTS).glob("*/*.json")]
    return (name for name in folders if name not in (COMMON, SOFTWARE))


KINDS: dict[str, Callable[[], Iterable[str]]] = {
    one.__name__: one for one in (experiments, results, cases, collectors, switches, traffics, testbeds, profiles, events, processors)
}
PATHS = {"experiments": "f", "results": "d", "cases": "d", "profiles": "f"}
"""In whose place a path can stand: of a file, or of a folder."""


def of(kind: str) -> list[str]:
    """In alphabetical order, each once."""
    return sorted(set(KINDS[kind]()))


def complete(action: Action, kind: str, *, several: bool = False) -> Action:
    """Have shells complete an argument by names; ``several``: a list with commas between."""
    asked, own = f"{_program()} names {kind} 2>/dev/null", f"_vsprof_{kind}{'_list' if several else ''}"
    action.complete = {  # type: ignore[attr-defined]
        "bash": own,
        "zsh": own,
        # Between slashes: a path has no place there.
        "tcsh": f"`vsprof names {kind}`",
        "preamble": {"bash": _bash(own, asked, kind, several), "zsh": _zsh(own, asked, kind, several)},
    }
    return action


def _bash(own: str, asked: str, kind: str, several: bool) -> str:
    lines = [f'compgen -W "$({asked})" -- "$1"']
    if several:
        lines = ['local head=""', '[[ $1 == *,* ]] && head="${1%,*},"', f'compgen -P "$head" -W "$({asked})" -- "${{1##*,}}"']
    if kind in PATHS:
        lines.append(f'compgen -{PATHS[kind]} -- "$1"')
    return _function(own, lines)


def _zsh(own: str, asked: str, kind: str, several: bool) -> str:
    lines = ["compset -P '*,'"] if several else []
    lines.append(f'compadd -- ${{(f)"$({asked})"}}')
    if kind in PATHS:
        lines.append("_files" if PATHS[kind] == "f" else "_files -/")
    return _function(own, lines)


def _function(name: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{name}() {{", *(f"  {line}" for line in lines), "}"])


def _program() -> str:
    """The one that prints the completion, wherever the shell's path leads to."""
    beside = Path(sys.executable).with_name("vsprof")
    return shlex.quote(str(beside)) if os.access(beside, os.X_OK) else "vsprof"


def _plugins(package: str, marker: str) -> Iterator[str]:
    """As terms/plugins.py finds them, but by their text."""
    marked = re.compile(rf"^{marker}\b[^=\n]*=\s*(?!None\b)", re.MULTILINE)
    for folder in places.folders(package):
        for path in (*folder.glob("*.py"), *folder.glob("*/__init__.py")):
            if marked.search(path.read_text(encoding="utf-8", errors="replace")):
                yield path.parent.name if path.name == "__init__.py" else path.stem


def _stems(folders: Iterable[Path], pattern: str) -> Iterator[str]:
    return (path.stem for folder in folders for path in folder.glob(pattern))


def _read(path: Path) -> list[dict[str, Any]]:
    """Of a file that is none, nothing: whoever uses it is told what is wrong."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _manifest(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
