# SPDX-License-Identifier: GPL-2.0-or-later
"""What is shown while runs are done, where there is no terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from vsprof.runner.progress import Progress


@pytest.fixture
def out():
    return io.StringIO()


def shown(out, *, verbose=False, quiet=False, terminal=False):
    with Progress(Console(file=out, width=100, force_terminal=terminal), verbose=verbose, quiet=quiet) as progress:
        progress.say("building the lab's image")
        progress.begin(2)
        for case in ("case-a[bold]", "case-b"):
            progress.start_run(case)
            progress.say("booting the endpoints")
            progress.look("CPU 0  guest  [99 %] busy")
            progress.end_run()
        progress.warn("r002 failed: [no] answer")
    return out.getvalue()


def test_each_run_has_a_line_when_it_starts_and_one_when_it_ends(out):
    text = shown(out)
    assert text.count("run 1 of 2: case-a[bold]") == 2
    assert "run 2 of 2: case-b (about" in text
    assert "left)" in text


def test_steps_are_shown_of_the_set_up_alone(out):
    text = shown(out)
    assert "building the lab's image" in text
    assert "booting" not in text


def test_verbose_shows_every_step(out):
    assert shown(out, verbose=True).count("booting the endpoints") == 2


def test_words_in_brackets_are_no_markup(out):
    assert "warning: r002 failed: [no] answer" in shown(out)


def test_no_control_sequences_reach_a_file(out):
    assert "\x1b" not in shown(out)


def test_quiet_leaves_warnings_alone(out):
    assert shown(out, quiet=True) == "warning: r002 failed: [no] answer\n"


def test_what_cpus_do_is_shown_below_the_step_and_in_a_verbose_log_now_and_then(out):
    assert "busy" not in shown(io.StringIO())
    assert shown(out, verbose=True).count("CPU 0  guest  [99 %] busy") == 1
    screen = shown(io.StringIO(), terminal=True)
    assert "booting the endpoints" in screen
    assert "[99 %] busy" in screen
