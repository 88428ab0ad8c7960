# SPDX-License-Identifier: GPL-2.0-or-later
"""Answers of a lab that are kept beside its image."""

import pytest

from vsprof.terms import errors
from vsprof.testbeds.emulator import answers


@pytest.fixture
def asked():
    """Questions to a lab that answers each time with another number; and the image."""
    return iter(["first\nof two lines\n", "second\n", "third\n"])


def test_a_question_is_asked_once_for_an_image(tmp_path, asked):
    assert [answers.get(tmp_path, "layout, command", lambda: next(asked)) for _ in range(2)] == ["first\nof two lines\n"] * 2
    assert answers.get(tmp_path, "another layout, command", lambda: next(asked)) == "second\n"


def test_a_damaged_answer_is_asked_for_again(tmp_path, asked):
    answers.get(tmp_path, "x", lambda: next(asked))
    (file,) = (tmp_path / answers.FOLDER).iterdir()
    for damage in (b"", b"\xff\n", file.read_bytes()[:-3]):
        file.write_bytes(damage)
        assert answers.get(tmp_path, "x", lambda: "again\n") == "again\n"
        assert answers.get(tmp_path, "x", lambda: next(asked)) == "again\n"


def test_an_answer_that_can_not_be_kept_is_still_one(tmp_path, asked):
    (tmp_path / answers.FOLDER).write_text("no folder")
    assert [answers.get(tmp_path, "x", lambda: next(asked)) for _ in range(2)] == ["first\nof two lines\n", "second\n"]


def test_a_question_that_fails_keeps_nothing(tmp_path, asked):
    def fails() -> str:
        raise errors.RunFailed("no answer")

    with pytest.raises(errors.RunFailed):
        answers.get(tmp_path, "x", fails)
    assert answers.get(tmp_path, "x", lambda: next(asked)).startswith("first")
