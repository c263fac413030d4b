"""The book's colours, each for a light and for a dark page: the one table behind figures, dark twins and CSS variables.

A colour has one meaning throughout the book:

- blue (``BEST``): the best rung, or the rung under discussion; in pictures of lanes, work and bytes that are of use -
orange-brown (``PEER``): the vendor's library - green (``LIMIT``): the limit, and the ceilings that it is made of - grey
(``MUTED``): earlier and other rungs - pink (``YOURS``): measured on the reader's own GPU - pale orange (``WASTE``):
bytes that move, and lanes that wait, for nothing - violet, olive and dark grey (``SERIES``): lines of equal rank, such
as filter sizes, which markers tell apart too

The hues of the first five are close to Okabe and Ito's, which readers with any common colour blindness can tell apart
(https://jfly.uni-koeln.de/color/). On both grounds, text has a contrast of at least 4.5 and a mark at least 3, which
``tests/display/test_palette.py`` computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: The use of a colour, which decides the contrast that it needs: text 4.5, mark 3, area none (an outline or a label
#: carries its meaning).
Use = Literal["text", "mark", "area"]


@dataclass(frozen=True)
class Colour:
    """A colour of the book: its name in CSS (``--rl-<name>``), and its value on a light and on a dark page."""

    name: str
    light: str
    dark: str
    use: Use


def _between(low: str, high: str, share: float) -> str:
    """Return the colour at ``share`` of the way from ``low`` to ``high``."""
    ends = [[int(text[i : i + 2], 16) for i in (1, 3, 5)] for text in (low, high)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(*ends, strict=True))


def _ramp(first: str, middle: str, last: str, count: int = 32) -> tuple[str, ...]:
    """Return ``count`` colours from ``first`` through ``middle`` to ``last``, in steps of 1/255 of the way."""
    shares = [2 * min(int(256 * i / (count - 1)), 255) / 255 for i in range(count)]
    return tuple(_between(first, middle, s) if s <= 1 else _between(middle, last, s - 1) for s in shares)


# A lane's colour contrasts more with the page as its number grows: lane 0 is close to the ground, lane 31 far from it,
# also in grey.
_LANES = zip(_ramp("#9fd3f2", "#0072b2", "#0b2545"), _ramp("#2b6c9c", "#58b4ee", "#dff3ff"), strict=True)

#: All colours, by name.
PALETTE: dict[str, Colour] = {
    colour.name: colour
    for colour in (
        Colour("best", "#0072b2", "#58b4ee", "text"),
        Colour("peer", "#b34a00", "#f0985a", "text"),
        Colour("limit", "#00664b", "#4fc79f", "text"),
        Colour("yours", "#ab3f7c", "#f0a0cc", "text"),
        Colour("muted", "#8793a0", "#7c8894", "mark"),
        Colour("waste", "#f6c98f", "#8f6424", "area"),
        Colour("violet", "#6b4fa0", "#b9a0ea", "text"),
        Colour("olive", "#7a6a00", "#d3c04c", "text"),
        Colour("lilac", "#875ab9", "#dcc8fb", "text"),
        Colour("text", "#1f2933", "#e3e8ed", "text"),
        Colour("quiet", "#52606d", "#b0bac5", "text"),
        Colour("axis", "#7b8794", "#8592a0", "mark"),
        Colour("grid", "#e4e7eb", "#2c343c", "area"),
        Colour("faint", "#e9edf1", "#252c34", "area"),
        Colour("ground", "#ffffff", "#121212", "area"),
        *(Colour(f"lane-{i}", light, dark, "area") for i, (light, dark) in enumerate(_LANES)),
    )
}


def palette_css() -> str:
    """Return the style sheet that defines the colours as CSS variables for both themes."""
    parts = ["/* The colours of climb/display/palette.py. Written by `climb figures`; change them there. */"]
    light = [f"  --rl-{c.name}: {c.light};" for c in PALETTE.values()]
    dark = [f"  --rl-{c.name}: {c.dark};" for c in PALETTE.values()]
    # Without JavaScript the page has no data-theme and is light.
    for selector, lines in ((':root,\nhtml[data-theme="light"]', light), ('html[data-theme="dark"]', dark)):
        parts.append("\n".join((selector + " {", *lines, "}")))
    return "\n\n".join(parts) + "\n"


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21, as WCAG 2 defines it (https://www.w3.org/TR/WCAG22/)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
