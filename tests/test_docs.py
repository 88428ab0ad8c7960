# SPDX-License-Identifier: GPL-2.0-or-later
"""The form of the pages: narrow enough to read in a terminal, and a beginning that says what the page is for."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
WIDTH = 120
SCREEN = 50
"""Lines of a screen."""
SHOWN = [
    path
    for pattern in ("*.md", "docs/**/*.md", "analysis/*.yaml", "experiments/*.yaml", "notebooks/*.py", "*/messages.py", "*/*/messages.py")
    for path in sorted(ROOT.glob(pattern))
    if path.name != "CHANGELOG.md" and "build" not in path.parts
]
"""What users read."""
ODD = re.compile(
    r"\b(mend(s|ed|ing)?|anew|by turns|in turns|for want of|t(ell|old) (apart|from)|(is|be) to be had|tells of|says? of)\b", re.IGNORECASE
)
"""Words that no colleague uses: fix, again, interleaved, because … is full, distinguish, available, report."""
LINK_ALONE = re.compile(r"[-* ]*!?\[[^]]*\]\(\S+\)\W*")
"""A line of nothing but a link or an image, which can't be broken."""


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines that a writer can break: no code, no table, no link alone, and no mark that `make pages` fills."""
    code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not (code or line.lstrip().startswith("|") or "<!--" in line or LINK_ALONE.fullmatch(line)):
            yield number, line


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_narrow(page: Path) -> None:
    wide = [f"{page.relative_to(ROOT)}:{number}: {len(line)} columns" for number, line in prose(page) if len(line) > WIDTH]
    assert not wide, f"at most {WIDTH}:\n" + "\n".join(wide)


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_starts_with_what_the_reader_can_do_after_it(page: Path) -> None:
    title, empty, begin, *_ = page.read_text(encoding="utf-8").splitlines()
    assert title.startswith("# "), page
    assert not empty, page
    assert begin.startswith(("After this page you ", "After this page your ")), f"{page.relative_to(ROOT)} begins with: {begin}"


def test_the_readme_is_two_screens() -> None:
    """As it is shown: without what is folded, with links and marks as their texts alone, and wide rows of tables in several lines."""
    shown = re.sub(r"<details>.*?</details>\n|<!--.*?-->", "", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", shown).splitlines()
    assert sum(max(1, math.ceil(len(line) / WIDTH)) for line in lines) <= 2 * SCREEN


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_words_are_those_of_a_colleague(path: Path) -> None:
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    odd = [f"{path.relative_to(ROOT)}:{number}: {found[0]}" for number, line in lines if (found := ODD.search(line))]
    assert not odd, "say it otherwise:\n" + "\n".join(odd)
