# SPDX-License-Identifier: GPL-2.0-or-later
"""What the README shows is what the reference run says, and what it names exists."""

import io
import re
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from vsprof.analysis import explain, figures, load, show

FIGURE = "decomposition"
ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def test_the_first_screen_shows_the_reference_run() -> None:
    shown = show.text(load.load(ROOT / "results" / "reference"))
    assert " ".join(shown.split()) in " ".join(README.split())


def test_the_first_screen_answers_and_shows_why() -> None:
    reference = load.load(ROOT / "results" / "reference")
    screen = README.partition("<details>")[0]
    told = " ".join(screen.replace("\n>", "\n").split())
    for paragraph in explain.answer(reference).split("\n\n"):
        assert " ".join(paragraph.split()) in told
    [path] = re.findall(r"!\[[^]]+\]\(([^)]+)\)", screen)
    kept, drawn = (plt.imread(image) for image in (ROOT / path, io.BytesIO(figures.png(figures.show(reference, FIGURE).figure))))
    assert kept.shape == drawn.shape
    # Else: python -m vsprof.analysis.figures decomposition results/reference results/reference/why.png
    assert np.abs(kept - drawn).mean() < 0.01, f"{path} is no longer the figure {FIGURE}"


def test_every_link_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_every_make_target_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    experiments = {path.stem for path in (ROOT / "experiments").glob("*.yaml")}
    for page in (README, (ROOT / "docs" / "commands.md").read_text()):
        for target in set(re.findall(r"`make ([a-z][a-z0-9-]+)", page)):
            known = target.removeprefix("profile-") in experiments or re.search(rf"^{target}:", makefile, re.MULTILINE)
            assert known, target


def test_help_lists_each_experiment_with_its_question() -> None:
    said = subprocess.run(["make", "--no-print-directory", "help"], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout
    for path in (ROOT / "experiments").glob("*.yaml"):
        assert re.search(rf"^  {path.stem} +[A-Z].*\?$", said, re.MULTILINE), path.stem
    assert re.search(r"^  doctor +Say what", said, re.MULTILINE)
