# SPDX-License-Identifier: GPL-2.0-or-later
"""Flame graphs as SVG, out of folded stacks: a box is a function, as wide as its share of the samples, and stands on its caller.

`draw` shows one profile, coloured by what has the function; `differ` two of them, coloured by which has more of it. A file of its own
can be zoomed by a click; in a page it is a still image, for pages here run no scripts. Hovering over a box tells its share in both.
"""

import html
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vsprof.analysis import style
from vsprof.terms import units

WIDTH, MARGIN, ROW = 1200, 10, 17
HEADER, FOOTER = 64, 8
LETTER = 6.7
"""Width of a letter of the font [px], for cutting text to its box."""
NARROWEST, NARROWEST_STILL = 0.4, 1.2
"""Boxes below this [px] are left out: nobody could see them, and there are thousands. A still image is part of a page, which must not grow
by megabytes for slivers that nobody can enlarge."""
KINDS = {kind: look["color"] for kind, look in style.FRAMES.items()}
"""What has the function, and its colour."""
MORE, LESS, SAME = (203, 60, 51), (56, 108, 176), (242, 242, 242)
"""Colours of a difference: more in the second profile, more in the first, the same."""
ALL = "all"
SCRIPT = Path(__file__).with_name("template") / "flamegraph.js"
"""Its %d are the width of all boxes and where they begin, its %f the width of a letter."""


@dataclass
class Box:
    """A function called by this very chain of callers, with its share of each profile's samples, or of the mean of both [fraction]."""

    name: str
    shares: list[float]
    callees: dict[str, "Box"] = field(default_factory=dict)

    @property
    def wide(self) -> float:
        """The mean of the shares, so that nothing of any profile is hidden."""
        return sum(self.shares) / len(self.shares)

    def depth(self, least: float) -> int:
        """Of boxes with at least this share."""
        return 1 + max((box.depth(least) for box in self.callees.values() if box.wide >= least), default=0)


Look = Callable[[Box], tuple[str, str]]
"""A box's colour, and what hovering over it tells."""


def draw(stacks: Mapping[str, float], title: str, unit: str = "samples", *, interactive: bool = True) -> str:
    """The flame graph of a profile: samples, or what else `unit` says, by folded stack."""
    whole = sum(stacks.values())

    def look(box: Box) -> tuple[str, str]:
        return _colour_of_kind(box.name), f"{_percent(box.wide)} of {whole:,.0f} {unit}"

    return _svg(_tree([stacks], [whole]), look, title, list(KINDS.items()), interactive)


def differ(
    first: Mapping[str, float], second: Mapping[str, float], title: str, names: tuple[str, str], per: str = "", *, interactive: bool = True
) -> str:
    """Two profiles in one graph. A box is as wide as the mean of both, so none of either is hidden.

    `per`: of what both are numbers, such as a packet: then they are set against each other as they are. Else each is shares of its own.
    """
    sums = [sum(first.values()), sum(second.values())]
    whole = sum(sums) / len(sums)

    def look(box: Box) -> tuple[str, str]:
        one, other = box.shares
        if per:
            values = [f"{name}: {units.significant(whole * share)}" for name, share in zip(names, box.shares, strict=True)]
            hover = f"{'; '.join(values)}; change {units.significant(whole * (other - one))} per {per}"
        else:
            hover = f"{names[0]}: {_percent(one)}; {names[1]}: {_percent(other)}; change {100 * (other - one):+.2f} points"
        return _colour_of_change((other - one) / (other + one)), hover

    legend = [(f"more in {names[0]}", _rgb(LESS)), ("the same", _rgb(SAME)), (f"more in {names[1]}", _rgb(MORE))]
    return _svg(_tree([first, second], [whole] * 2 if per else sums), look, title, legend, interactive)


def _tree(profiles: Sequence[Mapping[str, float]], wholes: Sequence[float]) -> Box:
    root = Box(ALL, [0.0] * len(profiles))
    for place, (stacks, whole) in enumerate(zip(profiles, wholes, strict=True)):
        for stack, count in stacks.items():
            box = root
            box.shares[place] += count / whole
            for frame in stack.split(";"):
                box = box.callees.setdefault(frame, Box(frame, [0.0] * len(profiles)))
                box.shares[place] += count / whole
    return root


def kind(frame: str) -> str:
    """What has the function of a frame: a word of KINDS."""
    function, _, where = frame.rpartition(" (")
    if not function:
        return "role, thread"
    where = where.removesuffix(")")
    if where.startswith("[") and where not in ("[vdso]", "[unknown]"):
        return "kernel" if where == "[kernel]" else "kernel module"
    if where.startswith("guest "):
        return "guest"
    return "library" if ".so" in where else "program"


def _svg(root: Box, look: Look, title: str, legend: list[tuple[str, str]], interactive: bool) -> str:
    least = (NARROWEST if interactive else NARROWEST_STILL) / (WIDTH - 2 * MARGIN)
    height = HEADER + root.depth(least) * ROW + FOOTER
    boxes = "".join(_placed(root, look, 0.0, height - FOOTER - ROW, least, interactive))
    script = hint = ""
    if interactive:
        # Without its first line, the licence.
        text = SCRIPT.read_text(encoding="utf-8").partition("\n")[2]
        script = f"<script><![CDATA[\n{text % (WIDTH - 2 * MARGIN, MARGIN, LETTER)}]]></script>"
        hint = "click a box to zoom, the lowest to go back"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" class="flame" '
        f'role="img" aria-label="{_xml(title)}" style="max-width: 100%; height: auto" '
        'font-family="DejaVu Sans Mono, Liberation Mono, monospace" font-size="11" fill="#222222">'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
        f'<text x="{MARGIN}" y="22" font-size="15" font-weight="bold">{_xml(title)}</text>'
        f'<text x="{WIDTH - MARGIN}" y="22" text-anchor="end" fill="#666666">{hint}</text>'
        f"{_legend(legend)}{boxes}{script}</svg>\n"
    )


def _legend(entries: list[tuple[str, str]]) -> str:
    parts, x = [], float(MARGIN)
    for words, colour in entries:
        parts.append(f'<rect x="{x:.0f}" y="34" width="12" height="12" fill="{colour}" stroke="#999999" stroke-width="0.5"/>')
        parts.append(f'<text x="{x + 17:.0f}" y="44">{_xml(words)}</text>')
        x += 17 + LETTER * len(words) + 22
    return "".join(parts)


def _placed(box: Box, look: Look, left: float, y: float, least: float, interactive: bool) -> Iterator[str]:
    """The box, and all that stand on it, the widest first."""
    wide = WIDTH - 2 * MARGIN
    share = box.wide
    if share < least:
        return
    text = label(box.name)
    room = int((share * wide - 6) / LETTER)
    cut = "" if room < 3 else text if len(text) <= room else text[: room - 1] + "…"
    x = MARGIN + left * wide
    colour, hover = look(box)
    data = f' data-x="{left:.6f}" data-w="{share:.6f}" data-t="{_xml(text)}"' if interactive else ""
    shape = f'x="{x:.2f}" y="{y}" width="{share * wide:.2f}" height="{ROW - 1}"'
    yield (
        f'<g class="f"{data}>'
        f"<title>{_xml(box.name)}\n{_xml(hover)}</title>"
        f'<rect {shape} fill="{colour}" stroke="#ffffff" stroke-width="0.5"/>'
        f'<text x="{x + 3:.2f}" y="{y + 12}"{_ink(colour)}>{_xml(cut)}</text></g>'
    )
    for callee in sorted(box.callees.values(), key=lambda one: (-one.wide, one.name)):
        yield from _placed(callee, look, left, y - ROW, least, interactive)
        left += callee.wide


def _xml(text: str) -> str:
    """Names may hold what XML must not: a thread can give itself any."""
    return html.escape("".join(letter if letter.isprintable() else "?" for letter in text))


def label(frame: str) -> str:
    """What is written on a box: the function; where it has no name, what has it."""
    function, _, where = frame.rpartition(" (")
    if function == "(unknown)":
        return f"{where.removesuffix(')').strip('[]')}, unnamed"
    return function or frame


def _colour_of_kind(name: str) -> str:
    """Its kind's, a little lighter or darker by its name, so that neighbours can be told apart."""
    colour = KINDS[kind(name)]
    shade = 0.93 + 0.14 * (zlib.crc32(name.encode()) % 100) / 100
    return _rgb(tuple(min(255, int(int(colour[at : at + 2], 16) * shade)) for at in (1, 3, 5)))


def _colour_of_change(change: float) -> str:
    """From the one's colour, when it alone has the function (-1), over white to the other's (1)."""
    towards = MORE if change > 0 else LESS
    return _rgb(tuple(round(same + (end - same) * abs(change)) for same, end in zip(SAME, towards, strict=True)))


def _rgb(parts: tuple[int, ...]) -> str:
    return "#" + "".join(f"{part:02x}" for part in parts)


def _ink(colour: str) -> str:
    """White letters on a dark box; the weights are how bright each part of a colour seems (ITU-R BT.601)."""
    seems = sum(weight * int(colour[at : at + 2], 16) for at, weight in ((1, 0.299), (3, 0.587), (5, 0.114)))
    return "" if seems > 120 else ' fill="#ffffff"'


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
