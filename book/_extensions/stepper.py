"""Load the steppers' script and style on the pages that have a stepper, and on no other."""

from __future__ import annotations

from typing import Any


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", _add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _add_files(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if "data-stepper=" in context.get("body", ""):
        app.add_css_file("stepper.css")
        app.add_js_file("stepper.js", loading_method="defer")
