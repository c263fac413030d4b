"""Reading times in the text, counted when the book is built, and the list of all exhibits.

``{minutes}`coalescing``` is "25 minutes"; a page of the same folder is meant. The directive ``exhibits`` lists, in the
order of the table of contents, each section whose heading begins with "Exhibit", with its own reading time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the build may start in another folder

from climb.display.reading_time import minutes_text, minutes_to_read, sections

_log = logging.getLogger(__name__)


class Minutes(SphinxRole):
    """The reading time of a page."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        folder = Path(self.env.doc2path(self.env.docname)).parent
        page = next((p for ending in (".ipynb", ".md") if (p := folder / (self.text + ending)).is_file()), None)
        if page is None:
            _log.warning("no page %s whose reading time could be counted", self.text, location=self.get_location())
            return [nodes.Text(self.text)], []
        self.env.note_dependency(str(page))
        return [nodes.Text(minutes_text(minutes_to_read(page)))], []


class exhibit_list(nodes.General, nodes.Element):
    """The place of the list of exhibits, which goes there once every page is read."""


class Exhibits(SphinxDirective):
    """The list of all exhibits."""

    def run(self) -> list[nodes.Node]:
        return [exhibit_list()]


class ListExhibits(SphinxPostTransform):
    """Put the list in its place."""

    default_priority = 5  # before references are resolved

    def run(self, **kwargs: Any) -> None:
        for place in list(self.document.findall(exhibit_list)):
            place.replace_self(nodes.bullet_list("", *self._items()))

    def _items(self) -> Iterator[nodes.list_item]:
        for page in self._pages(self.config.root_doc):
            path = Path(self.env.doc2path(page))
            for title, minutes in sections(path, "Exhibit"):
                anchor = next((a for a in self._anchors(page) if _letters(a.astext()) == _letters(title)), None)
                if anchor is None:
                    _log.warning("%s has no section %s in its table of contents", page, title)
                    continue
                said = self.env.titles[page].astext()
                said += anchor.astext().removeprefix("Exhibits").removeprefix("Exhibit")
                link = nodes.reference("", said, internal=True, refuri=self._address(page, anchor["anchorname"]))
                yield nodes.list_item("", nodes.paragraph("", "", link, nodes.Text(f", {minutes_text(minutes)}")))

    def _address(self, page: str, anchor: str) -> str:
        return self.app.builder.get_relative_uri(self.env.docname, page) + anchor

    def _anchors(self, page: str) -> Iterator[nodes.reference]:
        yield from self.env.tocs[page].findall(nodes.reference)

    def _pages(self, page: str) -> Iterator[str]:
        """The pages in the order of the table of contents."""
        yield page
        for child in self.env.toctree_includes.get(page, ()):
            yield from self._pages(child)


def _letters(title: str) -> str:
    """A title without its markup."""
    return re.sub(r"[\W_]", "", title)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("minutes", Minutes())
    app.add_directive("exhibits", Exhibits)
    app.add_node(exhibit_list)
    app.add_post_transform(ListExhibits)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
