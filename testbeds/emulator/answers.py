# SPDX-License-Identifier: GPL-2.0-or-later
"""What a lab answered once, and every lab of the same image would answer again: kept beside the image, and removed with it."""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path

from vsprof.terms import files

FOLDER = "answers"


def get(image: Path, question: str, ask: Callable[[], str]) -> str:
    """The answer to ``question``, which names all that it depends on beside the ``image`` (a folder); by ``ask`` where it is not kept.

    Raises what ``ask`` raises. An answer that is damaged, or can't be kept, is asked for again.
    """
    path = image / FOLDER / _checksum(question)
    if (kept := _kept(path)) is not None:
        return kept
    answer = ask()
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        files.replace(path, lambda partial: partial.write_text(f"{_checksum(answer)}\n{answer}"))
    return answer


def _kept(path: Path) -> str | None:
    with contextlib.suppress(OSError, ValueError):
        checksum, _, answer = path.read_text().partition("\n")
        if checksum == _checksum(answer):
            return answer
    return None


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
