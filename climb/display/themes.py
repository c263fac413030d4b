"""Make the twins of a figure for a light and for a dark page, by exchanging the colours of the palette.

A notebook shows a figure on an opaque white ground, which reads well in any viewer. On a page, the ground is that of
the page, and the colours follow its theme. Only the book's own colours can be exchanged: any other is refused by name.
"""

from __future__ import annotations

import re
from pathlib import Path

from climb.display.palette import PALETTE

_DARK = {colour.light: colour.dark for colour in PALETTE.values()}

_PAINT = re.compile(r"""(?<![\w-])(fill|stroke|stop-color|flood-color|color)(\s*[:=]\s*["']?)([^;"'<>]+)""")
_UNPAINTED = re.compile(r"none|inherit|currentColor|url\(#[^)]*\)")
# Matplotlib's first patch: the ground of the whole figure.
_GROUND = re.compile(r'<g id="patch_1">\s*<path d="[^"]*"\s+style="fill: #ffffff[^"]*"/>\s*</g>')
_SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)(pt|px|)"[^>]*?\bheight="([\d.]+)(pt|px|)"|<svg\b([^>]*)>', re.DOTALL)
_SCALE = {"pt": 4 / 3, "px": 1.0, "": 1.0}
# Parts that a browser does not need: comments (matplotlib's have the text that is drawn), metadata, line breaks,
# hundredths.
_SUPERFLUOUS = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>|<\?xml[^>]*\?>|<!DOCTYPE[^>]*>", re.DOTALL)
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


class UnknownColour(ValueError):
    """A picture has a colour that is not in the palette, so its dark twin is not known."""


def page_twins(svg: str, name: str = "the picture") -> tuple[str, str]:
    """Return the twins of an SVG for a light and for a dark page, both with a transparent ground.

    Raises UnknownColour for a colour that is not in the palette.
    """
    light = _lighter(_GROUND.sub("", svg, count=1))
    return light, dark_twin(light, name)


def dark_twin(svg: str, name: str = "the picture") -> str:
    """Exchange each colour of an SVG by its dark counterpart. Raises UnknownColour."""
    unknown: set[str] = set()

    def exchange(match: re.Match[str]) -> str:
        attribute, between, value = match.groups()
        colour = _long_form(value.strip())
        if _UNPAINTED.fullmatch(colour):
            return match.group()
        if colour not in _DARK:
            unknown.add(value.strip())
            return match.group()
        return attribute + between + _DARK[colour]

    twin = _PAINT.sub(exchange, svg)
    if unknown:
        raise UnknownColour(
            f"{name} has {', '.join(sorted(unknown))}, which climb/display/palette.py does not know; "
            "draw with its colours, or add one there with its dark counterpart"
        )
    return twin


def size_in_pixels(svg: str) -> tuple[int, int] | None:
    """Return width and height of an SVG as shown at its own size; None if it states neither."""
    found = _SIZE.search(svg)
    if not found:
        return None
    if found[1] is None:
        box = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', found[5])
        return (round(float(box[1])), round(float(box[2]))) if box else None
    return round(float(found[1]) * _SCALE[found[2]]), round(float(found[3]) * _SCALE[found[4]])


def save_twins(svg: str, path: Path) -> list[Path]:
    """Write ``NAME.svg`` for a light page and ``NAME-dark.svg`` for a dark one. Returns both paths."""
    paths = [path, path.with_name(f"{path.stem}-dark{path.suffix}")]
    for twin, to in zip(page_twins(svg, path.name), paths, strict=True):
        to.write_text(twin, encoding="utf-8", newline="\n")
    return paths


def _long_form(colour: str) -> str:
    """Return ``#abc`` and ``white`` as six digits, anything else in lower case."""
    if colour in ("white", "#fff", "#FFF"):
        return "#ffffff"
    if re.fullmatch(r"#[0-9a-fA-F]{3}", colour):
        colour = "#" + "".join(2 * digit for digit in colour[1:])
    return colour.lower() if colour.startswith("#") else colour


def _lighter(svg: str) -> str:
    """Return the same picture in fewer bytes: without comments and metadata, with coordinates to a hundredth of a
    point."""
    svg = _SUPERFLUOUS.sub("", svg)
    svg = re.sub(r"(?<= d=\")[^\"]*", lambda path: _short_path(path.group()), svg)
    return re.sub(r"\s*\n\s*", "\n", svg).strip() + "\n"


def _short_path(path: str) -> str:
    return _LONG_NUMBER.sub(lambda n: f"{float(n.group()):.2f}".rstrip("0").rstrip("."), path)
