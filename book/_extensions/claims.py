"""The page of sources: the directive ``claims`` shows `sources.toml`, each claim with a link to where it is judged.

Links are cross references like any others, so a heading that was renamed fails the build.
"""

from __future__ import annotations

import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the build may start in another folder

from climb.bench.records import RecordError
from climb.display.anchors import book_anchors
from climb.display.sources import page_text, read_sources


class Claims(SphinxDirective):
    """Every source with its claims."""

    def run(self) -> list[nodes.Node]:
        folder = Path(self.env.doc2path(self.env.docname)).parent
        data = folder / "sources.toml"
        self.env.note_dependency(str(data))
        try:
            text = page_text(read_sources(data), book_anchors(folder))
        except (RecordError, KeyError) as error:
            raise self.error(f"{data.name}: {error}") from error
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("claims", Claims)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
