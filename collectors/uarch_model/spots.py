# SPDX-License-Identifier: GPL-2.0-or-later
"""The hot spots of a core in columns. They are a hundred thousand in a window, and have some hundred names: each step of Python's own is
taken once for what is equal, and the rest is numpy's."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

T = TypeVar("T", bound=Hashable)
KINDS = ("samples", "l1d_misses", "l1i_misses", "l2_misses", "llc_misses", "dtlb_walks", "itlb_walks", "branch_misses")
"""The counts of a hot spot, in the plug-in's order (hot.h); behind them the number of its call stack."""
Column = NDArray[np.int64] | NDArray[np.uint64]


@dataclass(frozen=True)
class Spots:
    """Of each spot its address, thread, mode and call stack, the last two by number; and for each kind a row of all spots' counts."""

    addresses: NDArray[np.uint64]
    threads: NDArray[np.int64]
    modes: NDArray[np.int64]
    stacks: NDArray[np.int64]
    counts: NDArray[np.int64]
    callers: list[tuple[int, int]]
    """By the number of a call stack: the number of the stack that it is one more call on, and that call's return address. 0: no call."""

    @classmethod
    def of(cls, hot: Mapping[str, Any]) -> Self:
        """``hot``: of a core, as the plug-in writes it."""
        # An array of Python's objects first: a list of lists without their addresses would be as many lists once more.
        spots = np.array(hot["spots"], object).reshape(-1, len(KINDS) + 4)
        addresses = np.array([int(address, 16) for address in spots[:, 0]], np.uint64)
        threads, modes, *counts, stacks = spots[:, 1:].astype(np.int64).T
        callers = [(0, 0), *((below, int(back, 16)) for below, back in hot.get("stacks", []))]
        return cls(addresses, threads, modes, stacks, np.array(counts), callers)

    def summed(self, *columns: Column) -> tuple[list[int], list[list[int]]]:
        """The counts of all spots that are equal in ``columns``, in one row. The first such spot of each row, and the rows."""
        first, row_of = distinct(*columns)
        rows = [np.bincount(row_of, weights=kind, minlength=len(first)).astype(np.int64) for kind in self.counts]
        return first.tolist(), np.array(rows).T.tolist()


def distinct(*columns: Column) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each different row of ``columns`` is first, in the order in which they come; and which of these each row is."""
    row, count = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        number, values = _numbered(column)
        row, count = _numbered(row * values + number)
    first = np.empty(count, np.int64)
    # Backwards: of equal rows the first is written last, and stays.
    first[row[::-1]] = np.arange(len(row))[::-1]
    return first, row


def _numbered(column: Column) -> tuple[NDArray[np.int64], int]:
    """The number of each value, from 0 on in the order in which they come, and how many there are. By hashes: numpy's ``unique`` sorts."""
    encoded = pa.array(column).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def looked_up(what: Callable[..., T], *columns: Column) -> tuple[list[T], NDArray[np.int64]]:
    """All that ``what`` returns for the rows of ``columns``, each once; and for each row the place of its own among these."""
    first, number = distinct(*columns)
    places: dict[T, int] = {}
    rows = zip(*(column[first].tolist() for column in columns), strict=True)
    place = np.array([places.setdefault(what(*row), len(places)) for row in rows], np.int64)
    return list(places), place[number]
