"""Show every SVG of the book in the colours of the page: a twin for the light theme and one for the dark.

An image node whose file is an SVG drawn by matplotlib becomes two ``<img>``; the theme's style sheet hides one of them.
Both load lazily, so a browser fetches only the one that is shown. Both have the size of the picture, so that the page
does not jump. The hidden one is not read aloud. A colour without a dark counterpart gives a warning, which fails the
build.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the build may start in another folder

from climb.display.themes import UnknownColour, page_twins, size_in_pixels

THEMES = ("light", "dark")
#: What matplotlib writes into each figure; a logo, say, keeps its own colours.
_DRAWN = '<g id="figure_1">'
_log = logging.getLogger(__name__)


class themed_image(nodes.image):
    """The picture for one theme."""


class ThemedFigures(SphinxPostTransform):
    """Replace the node of an SVG by a box with its two twins, before the builder collects the images to copy."""

    formats = ("html",)
    default_priority = 250  # after the transforms that fetch and convert images (100 to 200)

    def run(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(nodes.image)):
            uri = node["uri"]
            if isinstance(node, themed_image) or not uri.endswith(".svg") or "://" in uri:
                continue
            file = Path(self.env.srcdir, uri)
            if file.is_file():  # Sphinx itself warns of a file that is missing
                self._replace(node, file)

    def _replace(self, node: nodes.image, file: Path) -> None:
        svg = file.read_text(encoding="utf-8")
        if _DRAWN not in svg:
            return
        try:
            twins = page_twins(svg, file.name)
        except UnknownColour as unknown:
            _log.warning("%s", unknown, location=node, type="themed_figures", subtype="colour")
            return
        folder = Path(self.app.doctreedir, "themed_figures")
        folder.mkdir(parents=True, exist_ok=True)
        box = nodes.inline(classes=["rl-themed"], ids=node["ids"])
        for theme, twin in zip(THEMES, twins, strict=True):
            path = folder / f"{file.stem}-{theme}.svg"
            path.write_text(twin, encoding="utf-8", newline="\n")
            self.env.images.add_file(self.env.docname, str(path))
            picture = themed_image(uri=str(path), candidates={"*": str(path)}, alt=node.get("alt", ""), theme=theme)
            picture["size"] = size_in_pixels(svg)
            picture["classes"] = [*node["classes"], f"only-{theme}"]
            if "width" in node:
                picture["style"] = f"width: {node['width']}"
            box += picture
        node.replace_self(box)


def visit_themed_image(translator: Any, node: themed_image) -> None:
    """Write the ``<img>`` of one twin."""
    file = translator.builder.images.get(node["uri"])
    values = {
        "class": " ".join(node["classes"]),
        "src": f"{translator.builder.imgpath}/{file}",
        "alt": node["alt"],
        "loading": "lazy",
        "decoding": "async",
        "style": node.get("style"),
    }
    if node["size"]:
        values["width"], values["height"] = (str(side) for side in node["size"])
    written = " ".join(f'{key}="{escape(value)}"' for key, value in values.items() if value is not None)
    translator.body.append(f"<img {written} />")


def depart_themed_image(translator: Any, node: themed_image) -> None:
    """Nothing: an ``<img>`` has no end tag."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transform and its node."""
    app.add_node(themed_image, html=(visit_themed_image, depart_themed_image))
    app.add_post_transform(ThemedFigures)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
