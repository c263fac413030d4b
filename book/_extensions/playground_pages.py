"""Load the playgrounds' script and style on the pages that have a playground, and on no other.

The script is one file: the data of ``climb.display.playground_data``, then the scripts of ``book/_static/play/``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

BOOK = Path(__file__).resolve().parents[1]
#: In the order in which they build on each other.
SCRIPTS = ("expression.js", "rules.js", "frame.js", "memory.js", "budgets.js")
BUNDLE = "playgrounds.js"


def bundle() -> str:
    """Data and scripts as one script, without the comments and indentation of the scripts."""
    if str(BOOK.parent) not in sys.path:
        sys.path.insert(0, str(BOOK.parent))  # the package beside the book, where it is not installed
    from climb.display.playground_data import script

    parts = [script()]
    for name in SCRIPTS:
        text = (BOOK / "_static" / "play" / name).read_text(encoding="utf-8")
        parts.append(re.sub(r"^\s*(/\*.*?\*/)?\s*", "", text, flags=re.MULTILINE | re.DOTALL))
    return "".join(parts)


def add_scripts(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Write the script when the first page with a playground comes, and make such pages load it."""
    if "data-play=" not in context.get("body", ""):
        return
    static = Path(app.outdir) / "_static"
    if not getattr(app, "_playgrounds_written", False):
        static.mkdir(parents=True, exist_ok=True)
        (static / BUNDLE).write_text(bundle(), encoding="utf-8")
        app._playgrounds_written = True
    app.add_js_file(BUNDLE, loading_method="defer")
    app.add_css_file("play/play.css")


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
