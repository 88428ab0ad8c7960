# SPDX-License-Identifier: GPL-2.0-or-later
"""What is shown while runs are done: on a terminal, in a log, and where quiet was asked for."""

import io

import pytest
from rich.console import Console

from vsprof.collectors.base import Load
from vsprof.runner.live import Seen
from vsprof.runner.progress import Progress

CPUS = ((0, "guest", Load(0.99, 0.5)),)
HIDDEN, BACK = "\x1b[?25l", "\x1b[?25h"
"""What hides a terminal's cursor, and what shows it again."""


@pytest.fixture
def out():
    return io.StringIO()


def console(out, terminal=False):
    return Console(file=out, width=80, height=24, force_terminal=terminal, highlight=False)


def shown(out, *, verbose=False, quiet=False, terminal=False):
    with Progress(console(out, terminal), verbose=verbose, quiet=quiet) as progress:
        progress.say("building the lab's image")
        progress.begin(["case-a[bold]", "case-b"])
        for case in ("case-a[bold]", "case-b"):
            progress.start_run(case)
            progress.say("booting the endpoints")
            progress.look(Seen("idle, window 1 of 1", False, None, CPUS))
            progress.look(Seen("idle, window 1 of 1", True, 1200.0, CPUS))
            progress.end_run(failed=case == "case-b")
        progress.warn("something is odd")
        progress.fail("r002 failed: [no] answer")
        progress.say("writing the report")
    return out.getvalue()


def test_each_run_has_a_line_when_it_starts_and_one_when_it_ends(out):
    text = shown(out)
    assert text.count("run 1 of 2: case-a[bold]") == 2
    assert "run 2 of 2: case-b (nearly done)" in text
    assert "run 2 of 2: case-b: failed after" in text


def test_the_time_left_is_said_when_a_run_starts(out):
    with Progress(console(out)) as progress:
        progress.begin(["case-a"], {"case-a": [400.0]})
        progress.start_run("case-a, repetition 2")
    assert out.getvalue() == "run 1 of 1: case-a, repetition 2 (about 6 min 40 s left)\n"


def test_steps_are_shown_of_the_set_up_and_the_report_alone(out):
    text = shown(out)
    assert "building the lab's image" in text
    assert "writing the report" in text
    assert "booting" not in text


def test_each_window_has_a_line_of_a_log(out):
    assert shown(out).count("  idle, window 1 of 1: 1.20 kpps out of the switch; CPU 0 guest 99 % CPI 0.50\n") == 2


def test_a_line_of_a_log_is_not_broken(out):
    with Progress(console(out)) as progress:
        progress.warn(f"a long one: {'word ' * 60}")
    assert out.getvalue().count("\n") == 1


def test_verbose_shows_every_step_and_now_and_then_what_cpus_do(out):
    text = shown(out, verbose=True)
    assert text.count("booting the endpoints") == 2
    assert text.count("CPU 0  guest        99 % busy  CPI 0.50") == 1
    assert text.count("1.20 kpps out of the switch") == 2


def test_words_in_brackets_are_no_markup(out):
    assert "error: r002 failed: [no] answer" in shown(out)


def test_no_control_sequences_reach_a_file(out):
    assert "\x1b" not in shown(out)


@pytest.mark.parametrize("terminal", [False, True])
def test_quiet_leaves_what_failed_alone(out, terminal):
    with Progress(console(out, terminal), quiet=True) as progress:
        progress.warn("something is odd")
        progress.look(Seen("idle, window 1 of 1", True, 1200.0, CPUS))
    assert out.getvalue() == ""
    assert "r002 failed: [no] answer" in shown(out, quiet=True, terminal=terminal)
    assert len(out.getvalue().splitlines()) == 1


def test_a_terminal_has_the_run_the_times_the_step_and_the_window(out):
    screen = shown(out, terminal=True)
    for text in ("run 1 of 2", "since the start", "left: known after the first run", "booting the endpoints", "99 %", "0.50", "1.20 kpps"):
        assert text in screen


def test_the_cursor_comes_back_however_it_ends(out):
    def interrupted():
        with Progress(console(out, terminal=True)) as progress:
            progress.begin(["case"])
            progress.start_run("case")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    text = out.getvalue()
    assert text.count(HIDDEN) == 1
    assert text.rindex(BACK) > text.rindex("run 1 of 1")


def test_a_terminal_that_can_not_move_its_cursor_gets_lines(out, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    text = shown(out, terminal=True)
    assert "run 1 of 2: case-a[bold]" in text
    assert HIDDEN not in text
