"""The icons of the theme's buttons as small inline drawings, instead of a script of 1.5 MB that draws any of 2,000."""

from __future__ import annotations

import re

#: Each icon is drawn with lines on a field of 24 by 24; names are those of Font Awesome, which the theme writes.
ICONS = {
    "angle-left": "M15 5l-7 7 7 7",
    "angle-right": "M9 5l7 7-7 7",
    "angle-down": "M5 9l7 7 7-7",
    "arrow-up": "M12 20V4M5 11l7-7 7 7",
    "bars": "M3 6h18M3 12h18M3 18h18",
    "circle-half-stroke": "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 3v18M12 7l4.5 2M12 12h8M12 17l4.5-2",
    "download": "M12 3v12M7 10l5 5 5-5M4 20h16",
    "expand": "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
    "file": "M6 3h8l5 5v13H6zM14 3v5h5",
    "file-code": "M6 3h8l5 5v13H6zM14 3v5h5M10.5 12L8.5 14.5l2 2.5M14 12l2 2.5-2 2.5",
    "file-pdf": "M6 3h8l5 5v13H6zM14 3v5h5M9 13h7M9 17h7",
    "code": "M8 6l-6 6 6 6M16 6l6 6-6 6",
    "github": "M9 20c-5 1.5-5-2.5-7-3m14 5v-4a3.4 3.4 0 0 0-1-2.6c3-.3 6-1.5 6-6.4a5 5 0 0 0-1.4-3.6 4.6 4.6 0 0 0"
    "-.1-3.6s-1.1-.3-3.5 1.4a12 12 0 0 0-6 0C7.6 1.5 6.5 1.8 6.5 1.8a4.6 4.6 0 0 0-.1 3.6A5 5 0 0 0 5 9c0 4.9 "
    "3 6.1 6 6.4a3.4 3.4 0 0 0-1 2.6v4",
    "lightbulb": "M9 18h6M10 21h4M12 3a6 6 0 0 0-4 10.5c.7.7 1 1.5 1 2.5h6c0-1 .3-1.8 1-2.5A6 6 0 0 0 12 3z",
    "list": "M8 6h13M8 12h13M8 18h13M3 6h.5M3 12h.5M3 18h.5",
    "magnifying-glass": "M10.5 4a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13M15.5 15.5L21 21",
    "moon": "M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5z",
    "pencil": "M4 20l1-5L16 4l4 4L9 19zM14 6l4 4",
    "play": "M7 4l13 8-13 8z",
    "rocket": "M5 15l4 4c5-1 10-6 11-15C11 5 6 10 5 15zM5 15l-2 6 6-2M14.5 9.5h.1",
    "sun": "M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8M12 2v2.5M12 19.5V22M2 12h2.5M19.5 12H22M5 5l1.7 1.7M17.3 17.3L19 19"
    "M5 19l1.7-1.7M17.3 6.7L19 5",
    "xmark": "M5 5l14 14M19 5L5 19",
}
_SAME = {"pencil-alt": "pencil", "pencil-square-o": "pencil", "search": "magnifying-glass", "times": "xmark"}
_ELEMENT = re.compile(r'<(i|span)\b([^>]*?)class="([^"]*\bfa(?:s|b|r|-solid|-brands|-regular)\b[^"]*)"([^>]*)>\s*</\1>')


def drawing(name: str) -> str:
    """Return the SVG element of an icon: its colour is the text's, its size the letters'."""
    path = ICONS[_SAME.get(name, name)]
    return (
        '<svg viewBox="0 0 24 24" width="1em" height="1em" fill="none" stroke="currentColor" stroke-width="2.2" '
        f'stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="{path}"/></svg>'
    )


def inlined(page: str) -> tuple[str, set[str]]:
    """Return a page with its icons drawn, and the names of the icons for which there is no drawing."""
    unknown: set[str] = set()

    def draw(found: re.Match[str]) -> str:
        _, before, given, after = found.groups()
        classes = [one for one in given.split() if not re.fullmatch(r"fa[srb]?|fa-.*", one)]
        names = [one[3:] for one in given.split() if one.startswith("fa-")]
        names = [one for one in names if one not in ("solid", "brands", "regular", "lg", "fw")]
        unknown.update(one for one in names if _SAME.get(one, one) not in ICONS)
        drawn = "".join(drawing(one) for one in names if _SAME.get(one, one) in ICONS)
        size = ["rl-icon-large"] if "fa-lg" in given.split() else []
        return f'<span{before}class="{" ".join(["rl-icon", *size, *classes])}"{after}>{drawn}</span>'

    return _ELEMENT.sub(draw, page), unknown
