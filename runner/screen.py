# SPDX-License-Identifier: GPL-2.0-or-later
"""What is seen of a campaign, as it is written: a table for a terminal of 80 columns or more, lines for a log."""

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vsprof.collectors.base import Load
from vsprof.runner.live import Seen
from vsprof.terms.units import si

NONE = "–"


def drawn(lines: list[str], seen: Seen | None) -> RenderableType:
    """``lines``, and below them the window that was seen last."""
    parts: list[RenderableType] = [Text(line, overflow="fold") for line in lines if line]
    if seen is not None:
        parts += [Text(""), Text(headline(seen), style="bold", overflow="fold"), *([_table(seen)] if seen.cpus else [])]
    return Group(*parts)


def _table(seen: Seen) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("CPU", justify="right")
    table.add_column("role")
    table.add_column("busy", justify="right")
    table.add_column("CPI", justify="right")
    for cpu, role, load in seen.cpus:
        table.add_row(f"{cpu}", role, _busy(load), NONE if load.cpi is None else f"{load.cpi:.2f}")
    return table


def headline(seen: Seen) -> str:
    """Which window it is, and its packets: ``udp_flood-saturation, window 1 of 1: 1.20 Mpps out of the switch``."""
    if seen.packets is None:
        return f"{seen.window}{': no packets counted' if seen.over else ''}"
    where = "out of the switch" if seen.over else "received by kernels just now"
    return f"{seen.window}: {si(seen.packets, 'packets/s')} {where}"


def one_line(seen: Seen) -> str:
    """A window that is over, as a log has it."""
    return "; ".join([headline(seen), *(_short(*one) for one in seen.cpus)])


def lines(seen: Seen) -> list[str]:
    """The same as a verbose log has it: first the packets, then a line for each CPU."""
    return [headline(seen), *(f"CPU {cpu}  {role:10}  {_busy(load):>5} busy  {_cpi(load)}".rstrip() for cpu, role, load in seen.cpus)]


def _short(cpu: int, role: str, load: Load) -> str:
    return f"CPU {cpu} {role} {_busy(load)} {_cpi(load)}".rstrip()


def _busy(load: Load) -> str:
    return NONE if load.busy is None else f"{load.busy:.0%}".replace("%", " %")


def _cpi(load: Load) -> str:
    return "" if load.cpi is None else f"CPI {load.cpi:.2f}"
