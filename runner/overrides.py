# SPDX-License-Identifier: GPL-2.0-or-later
"""Settings of an experiment that the command line can change: the options, and what each does to the experiment."""

from __future__ import annotations

import argparse
from typing import Any

from runner.experiment import Experiment, Windows
from terms import errors


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options to ``vsprof run``. Lists are separated by commas or spaces."""
    command.add_argument("--switches", help="compare these switches instead of the experiment's")
    command.add_argument("--frame-size", dest="frames", help="frame sizes in bytes, with FCS: 64 to 1518")
    command.add_argument("--num-flows", dest="flows", help="numbers of UDP flows")
    command.add_argument("--repeat", type=int, help="repetitions of each case")
    command.add_argument("--windows", type=int, help="windows of each traffic")
    command.add_argument("--duration", type=float, help="length of a window in seconds")
    command.add_argument("--collectors", help="collectors by name, or auto")


def apply(experiment: Experiment, asked: argparse.Namespace) -> None:
    """Change ``experiment`` as asked. Raises ``BadInput`` on values that are no numbers or out of range."""
    if asked.switches:
        _vary(experiment, "switch", _split(asked.switches))
    if asked.frames:
        _vary(experiment, "frame_bytes", [_whole("frame size", text) for text in _split(asked.frames)])
    if asked.flows:
        _vary(experiment, "flows", [_whole("number of flows", text) for text in _split(asked.flows)])
    if asked.collectors:
        experiment.collectors = _split(asked.collectors)
    if asked.repeat is not None:
        experiment.repetitions = _at_least("repeat", asked.repeat, 1)
    experiment.windows = Windows(
        warmup_seconds=experiment.windows.warmup_seconds,
        count=experiment.windows.count if asked.windows is None else _at_least("windows", asked.windows, 1),
        seconds=experiment.windows.seconds if asked.duration is None else _at_least("duration", asked.duration, 0.5),
    )


def _vary(experiment: Experiment, name: str, values: list[Any]) -> None:
    experiment.fixed.pop(name, None)
    experiment.vary[name] = list(dict.fromkeys(values))


def _split(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise errors.not_a_number(name, text) from None


def _at_least(name: str, value: Any, least: float) -> Any:
    if value < least:
        raise errors.too_small(name, value, least)
    return value
