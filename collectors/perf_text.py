# SPDX-License-Identifier: GPL-2.0-or-later
"""What perf records of one window, brought home as text: the command that does it, and what both its readers need.

The text is ``perf script``'s, whole, behind one line of JSON that says how it was made; so a parser that proves wrong can be fixed.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from vsprof.collectors import messages
from vsprof.testbeds.base import Completed, Testbed

FOLDER = "/run/vsprof-record.XXXXXX"
SMALLEST_BUFFER, LARGEST_BUFFER = 8 << 20, 32 << 20
"""Bytes, of each CPU. perf's own choice, 512 KiB, overflows on a slow host."""
MOST_BYTES = 64 << 20
"""Kept of a window's text: some 200,000 samples with their stacks."""
ALLOWANCE_S = 240
"""How long a slow testbed may take to start perf, and to write the text, beyond the window itself."""
IDLE_TASK = 0
LOST = re.compile(r"\bPERF_RECORD_LOST(_SAMPLES)? lost (?P<count>\d+)\s*$")
# A thread's number in its name would make another thread of it in each run: vhost-1234, ksoftirqd/1, kworker/u8:2-events.
NUMBERED = re.compile(r"^(vhost|swapper|kworker|ksoftirqd|migration|rcu\w+|cpuhp)[-/].*$")


RECORD = "perf record"


def record(host: Testbed, what: str, seconds: float, fields: Sequence[str], options: str = "", buffer: int = 0, tool: str = RECORD) -> str:
    """Record ``what`` (options of perf record) on all CPUs for ``seconds``, and return it as text, cut at MOST_BYTES.

    ``fields`` are those of perf script: the first list that this perf knows. The first line is the number of bytes that the text had
    before it was cut. perf runs on the housekeeping CPU, and begins to write the text when the window is over. ``buffer``: bytes that a
    CPU may fill in the window, which spares perf to empty it meanwhile, within bounds. ``tool``: what takes the options of perf record.
    Raises ``RunFailed``.
    """
    what += f" -m {min(max(buffer, SMALLEST_BUFFER), LARGEST_BUFFER)}B"
    return host.run(_command(host.housekeeping, f"{tool} -q -N -a {what}", seconds, fields, options), timeout=seconds + ALLOWANCE_S).stdout


def tried(host: Testbed, what: str, tool: str = RECORD) -> Completed:
    """Whether perf can record ``what`` on all CPUs: a recording of no length."""
    return host.run(f"{tool} -q -N -a {what} -o /dev/null -- true", check=False)


def _command(there: str, record: str, seconds: float, fields: Sequence[str], options: str) -> str:
    scripts = [f"perf script -i data --ns --show-lost-events {options} -F {shlex.quote(one)}" for one in fields]
    tries = " || ".join(f"{there} {script} > text 2> said" for script in scripts)
    # It says that it ignores a field for some kinds of events, and at last that a file is wrong: in which way, only with -v.
    why = f"{{ grep -v 'not valid for' said; {there} {scripts[-1]} -v 2>&1 > text | grep -v 'not valid for' | tail -n 3; }} >&2"
    return f"""
export LC_ALL=C; folder=$(mktemp -d {FOLDER}) && trap 'rm -rf "$folder"' EXIT && cd "$folder" || exit 1
{there} {record} -o data -- sleep {seconds} 2> said || {{ cat said >&2; exit 1; }}
{tries} || {{ {why}; exit 1; }}
wc -c < text; head -c {MOST_BYTES} text"""


@dataclass(frozen=True)
class Recording:
    """One window's text."""

    header: Mapping[str, Any]
    text: str

    @classmethod
    def of(cls, printed: str, **header: Any) -> Self:
        """From what ``record`` returned."""
        size, _, text = printed.partition("\n")
        return cls({"bytes": int(size), **header}, text)

    def recorded(self) -> str:
        return json.dumps(self.header) + "\n" + self.text

    @classmethod
    def read(cls, recorded: str) -> Self:
        """From what was kept. Raises ``ValueError``."""
        first, _, text = recorded.partition("\n")
        header = json.loads(first)
        if not isinstance(header, dict) or not isinstance(header.get("bytes"), int):
            raise ValueError(f"not a recording of perf: {first[:80]}")
        return cls(header, text)

    def cut(self) -> str:
        """Why the text is not whole; empty if it is."""
        seen, whole = len(self.text.encode()), self.header["bytes"]
        return messages.cut_short(seen, whole) if seen < whole else ""

    def whole_lines(self) -> list[str]:
        """All lines but one that was cut."""
        lines = self.text.split("\n")
        return lines[:-1]


def nanoseconds(time: str) -> int:
    """perf's time, exactly: it has six digits behind the point, or nine."""
    whole, _, part = time.partition(".")
    return int(whole + part.ljust(9, "0")[:9])


def lost(line: str) -> int | None:
    """How many events a line says were lost; None for any other line."""
    match = LOST.search(line)
    return int(match["count"]) if match else None


def lost_in(recording: Recording) -> int:
    return sum(lost(line) or 0 for line in recording.whole_lines())


def thread_name(comm: str) -> str:
    """A thread's name without the number that differs from run to run; no word of a folded stack has a semicolon."""
    return NUMBERED.sub(r"\1", comm).replace(";", ":")
