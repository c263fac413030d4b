"""A page's data about itself for search engines, other sites and browsers; the map of the site; the page for 404.

The address of the site is one setting, `html.baseurl` in `_config.yml`. While it is empty, nothing that needs it
appears: no canonical address, no sitemap, no address of a picture.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit
from xml.sax.saxutils import escape as xml_escape

from docutils import nodes
from sphinx.application import Sphinx

#: The social picture, and how large it is.
PICTURE, WIDTH, HEIGHT = "_static/social.png", 1200, 630
#: How long a description may be before search engines cut it.
LONGEST = 200
#: The ground of a page in either theme: browsers colour their frame with it.
GROUNDS = {"light": "#ffffff", "dark": "#14181e"}
_OWN = ("genindex", "search", "404")


def described(doctree: nodes.document | None, longest: int = LONGEST) -> str:
    """Return the first sentences of a page's first paragraph, at most `longest` characters."""
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        if isinstance(paragraph.parent, nodes.section) and isinstance(paragraph.parent.parent, nodes.document):
            text = re.sub(r"\s+", " ", paragraph.astext()).strip()
            if len(text.split()) < 6:
                continue
            if len(text) <= longest:
                return text
            whole = text[: longest + 1].rpartition(". ")[0]
            return f"{whole}." if whole else text[:longest].rpartition(" ")[0] + " …"
    return ""


def tags(pagename: str, title: str, description: str, site: str, base: str) -> str:
    """Return the <meta> and <link> elements of a page; `base` is the address of the site, or empty."""
    address = urljoin(base, f"{pagename}.html") if base else ""
    picture = urljoin(base, PICTURE) if base else ""
    named = {"description": description, "twitter:card": "summary_large_image" if picture else ""}
    shared = {
        "og:type": "article", "og:site_name": site, "og:title": title, "og:description": description,
        "og:url": address, "og:image": picture, "og:image:width": str(WIDTH) if picture else "",
        "og:image:height": str(HEIGHT) if picture else "",
        "og:image:alt": f"{site}: how near each kernel comes to the limit of the GPU" if picture else "",
    }  # fmt: skip
    up = "../" * pagename.count("/")
    lines = [f'<meta name="{name}" content="{escape(value)}" />' for name, value in named.items() if value]
    lines += [f'<meta property="{name}" content="{escape(value)}" />' for name, value in shared.items() if value]
    lines += [f'<meta name="theme-color" content="{colour}" media="(prefers-color-scheme: {theme})" />'
              for theme, colour in GROUNDS.items()]  # fmt: skip
    lines.append(f'<link rel="icon" type="image/png" sizes="48x48" href="{up}_static/icon-48.png" />')
    lines.append(f'<link rel="apple-touch-icon" href="{up}_static/icon-180.png" />')
    return "\n    ".join(lines)


def add_tags(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Put the elements into the head of a page."""
    del template
    if app.builder.name != "html":
        return
    title = re.sub(r"<[^>]+>", "", str(context.get("title") or app.config.project))
    site, base = app.config.project, _base(app)
    if pagename in _OWN:
        context["metatags"] = context.get("metatags", "") + '\n    <meta name="robots" content="noindex" />'
        context["pageurl"] = None
        return
    described_as = described(doctree) or f"{title}: a chapter of {site}."
    context["metatags"] = f"{context.get('metatags', '')}\n    {tags(pagename, title, described_as, site, base)}"


def add_pages(app: Sphinx) -> list[tuple[str, dict[str, Any], str]]:
    """Add the page that a server shows for an address that does not exist."""
    if app.builder.name != "html":
        return []
    links = "".join(f'<li><a href="{name}.html">{escape(app.env.titles[name].astext())}</a></li>'
                    for name in (app.config.root_doc, "book/glossary") if name in app.env.titles)  # fmt: skip
    body = (
        "<section><h1>There is no such page</h1><p>The address is wrong, or the page has another one now. "
        f'<a href="search.html">Search the book</a>, or begin here:</p><ul>{links}</ul></section>'
    )
    return [("404", {"title": "There is no such page", "body": body}, "page.html")]


def finish(app: Sphinx, failure: Exception | None) -> None:
    """Write the map of the site, and make the links of the page for 404 work from any folder of the site."""
    if failure is not None or app.builder.name != "html":
        return
    out, base = Path(app.outdir), _base(app)
    if base:
        pages = sorted(app.env.found_docs)
        rows = "".join(f"<url><loc>{xml_escape(urljoin(base, f'{page}.html'))}</loc></url>\n" for page in pages)
        text = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{_SCHEMA}">\n{rows}</urlset>\n'
        (out / "sitemap.xml").write_text(text, encoding="utf-8")
        (out / "robots.txt").write_text(f"Sitemap: {urljoin(base, 'sitemap.xml')}\n", encoding="utf-8")
    page = out / "404.html"
    if page.exists():
        # A server sends this page for /book/gone.html too, so its links must not depend on the folder.
        root = urlsplit(base).path or "/"
        text = page.read_text(encoding="utf-8")
        text = re.sub(r'\b(href|src|action)="(?!\w+:|[#/"])', rf'\1="{root}', text)
        page.write_text(text.replace('data-content_root=""', f'data-content_root="{root}"'), encoding="utf-8")


_SCHEMA = "http://www.sitemaps.org/schemas/sitemap/0.9"


def _base(app: Sphinx) -> str:
    base = str(app.config.html_baseurl or "")
    return base.rstrip("/") + "/" if base else ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Add tags before other extensions change the page, and write files after the bundles are made."""
    app.connect("html-page-context", add_tags)
    app.connect("html-collect-pages", add_pages)
    app.connect("build-finished", finish, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
