"""Collect the definitions of the glossary into one script, from which `terms.js` shows them beside a term's links.

A script, not JSON: a page opened from a folder may not fetch, but it may load a script. It is loaded when a reader
first points at a term.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from sphinx.application import Sphinx

_ENTRY = re.compile(r'((?:<dt id="term-[^"]*">(?:(?!</dt>).)*</dt>\s*)+)<dd>((?:(?!</dd>).)*)</dd>', re.DOTALL)
_NAME = re.compile(r'<dt id="(term-[^"]*)">(.*?)(?:<a class="headerlink"[^>]*>.*?</a>)?</dt>', re.DOTALL)


def definitions(page: str) -> dict[str, tuple[str, str]]:
    """Return the name and the first paragraph of each term of a page, by the term's id; links become plain text."""
    found = {}
    for names, body in _ENTRY.findall(page):
        first = re.search(r"<p>(.*?)</p>", body, re.DOTALL)
        text = re.sub(r"</?(?:a|span)\b[^>]*>", "", first.group(1) if first else body)
        for key, name in _NAME.findall(names):
            found[key] = (re.sub(r"<[^>]+>", "", name).strip(), re.sub(r"\s+", " ", text).strip())
    return found


def collect(app: Sphinx, failure: Exception | None) -> None:
    """Write the definitions of every glossary of the book into `_static/term-definitions.js`."""
    if failure is not None or app.builder.name != "html":
        return
    found = {}
    for name in app.env.found_docs:
        path = Path(app.outdir) / f"{name}.html"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if re.search(r'<dl class="[^"]*\bglossary\b', text):
            found.update(definitions(text))
    script = f"window.termDefinitions = {json.dumps(found, ensure_ascii=False, sort_keys=True)};\n"
    (Path(app.outdir) / "_static" / "term-definitions.js").write_text(script, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Collect when the pages are written, before they are made lean."""
    app.connect("build-finished", collect, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
