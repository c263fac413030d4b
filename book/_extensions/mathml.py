"""Write formulas as MathML when the book is built: browsers draw it themselves, so no page loads a script for it."""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

_log = logging.getLogger(__name__)
#: What stays of a table whose environment the converter does not know: its column separators, as text.
_UNREAD = re.compile(r"<m[io]>&(amp;)?</m[io]>")


def mathml(tex: str, display: str) -> str:
    """Return a formula as a <math> element; `display` is "inline" or "block". The TeX stays as its annotation.

    Raises ValueError for an environment that the converter does not know, which it would show as text.
    """
    # The converter has `align*`, but not `aligned`, which looks the same in a formula of its own.
    drawn = convert(tex.strip().replace("{aligned}", "{align*}"), display=display)
    if unread := _UNREAD.search(drawn):
        raise ValueError(f"{unread[0]} is left over: is an environment of the formula unknown?")
    inner = drawn[drawn.index(">") + 1 : drawn.rindex("</math>")]
    note = f'<annotation encoding="application/x-tex">{html.escape(tex.strip(), quote=False)}</annotation>'
    shown = ' display="block"' if display == "block" else ""
    return f"<math{shown}><semantics>{inner}{note}</semantics></math>"


def _drawn(node: nodes.Element, display: str) -> str:
    """Return the formula of a node; one that cannot be read is a warning, which fails the build, and shown as TeX."""
    try:
        return mathml(node.astext(), display)
    except Exception as error:  # the converter raises a class of its own for each mistake
        _log.warning("no MathML for %r: %r", node.astext(), error, location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(f'<span class="math notranslate">{_drawn(node, "inline")}</span>')
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate"))
    if node.get("number"):
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append(_drawn(node, "block") + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer; `html_math_renderer: mathml` chooses it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
