# SPDX-License-Identifier: GPL-2.0-or-later
"""One summary of test groups that ran beside each other. Called by `make test`.

    test_summary.py FOLDER GROUP…   FOLDER has of each group GROUP.xml (pytest's --junitxml), GROUP.log and GROUP.status

The last line has pytest's form. Exit status 0 only if every group's is 0 and every group left its results.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

SLOWEST = 10
MOST_REASON = 400
"""Characters of why a test failed: its log may not be at hand."""
LINE = re.compile(r"^=+ (.* in [0-9.]+s.*?) =+$", re.MULTILINE)
"""The last line of a pytest run."""
OUTCOMES = ("failed", "passed", "skipped", "xfailed", "error")
BY_ELEMENT = {"failure": "failed", "error": "error", "skipped": "skipped"}


@dataclass
class Group:
    """What one pytest run left. ``status``: None where it left none."""

    name: str
    line: str
    status: int | None
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    """By test, fixtures included."""
    broken: list[str] = field(default_factory=list)


def read(folder: Path, name: str) -> Group:
    log, status, results = (folder / f"{name}.{what}" for what in ("log", "status", "xml"))
    lines = LINE.findall(log.read_text(errors="replace")) if log.exists() else []
    ended = status.read_text().strip() if status.exists() else ""
    group = Group(name, lines[-1] if lines else "no summary: it was ended", int(ended) if ended.isdecimal() else None)
    if not results.exists():
        return group
    for case in ElementTree.parse(results).iter("testcase"):
        test = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        parts = [part for part in case if part.tag in BY_ELEMENT]
        found = [_outcome(part) for part in parts]
        # A test may pass, and its fixture fail when it is taken down.
        group.outcomes.update(found or ["passed"])
        group.seconds[test] = group.seconds.get(test, 0.0) + float(case.get("time", 0))
        broken = [(what, part) for what, part in zip(found, parts, strict=True) if what in ("failed", "error")]
        group.broken += [f"{what.upper()} {test} - {_reason(part)}" for what, part in broken]
    return group


def _reason(part: ElementTree.Element) -> str:
    return " ".join(part.get("message", "").split())[:MOST_REASON]


def _outcome(part: ElementTree.Element) -> str:
    return "xfailed" if part.get("type") == "pytest.xfail" else BY_ELEMENT[part.tag]


def summary(groups: list[Group]) -> Iterator[str]:
    seconds = sorted(((took, test) for group in groups for test, took in group.seconds.items()), reverse=True)
    yield f"the {SLOWEST} slowest, with their fixtures:"
    yield from (f"{took:8.1f} s  {test}" for took, test in seconds[:SLOWEST])
    yield from (line for group in groups for line in group.broken)
    yield from (f"{group.name}: {group.line}" for group in groups)
    yield from (f"{group.name}: exit status {group.status}" for group in groups if group.status != 0)


def last_line(groups: list[Group], seconds: float) -> str:
    total: Counter[str] = sum((group.outcomes for group in groups), Counter())
    total["error"] += sum(group.status is None or (group.status != 0 and not group.broken) for group in groups)
    counts = ", ".join(f"{total[name]} {name}" for name in OUTCOMES if total[name])
    minutes, rest = divmod(round(seconds), 60)
    return f" {counts or 'no tests ran'} in {seconds:.2f}s ({minutes // 60}:{minutes % 60:02d}:{rest:02d}) ".center(80, "=")


def main(words: list[str]) -> int:
    folder, names = Path(words[0]), words[1:]
    groups = [read(folder, name) for name in names]
    begun = folder / "begun"
    ended = max((path.stat().st_mtime for path in folder.glob("*.log")), default=begun.stat().st_mtime)
    print()
    print(*summary(groups), sep="\n")
    print(last_line(groups, ended - begun.stat().st_mtime), flush=True)
    return int(any(group.status != 0 for group in groups))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
