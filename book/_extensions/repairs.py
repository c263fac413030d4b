"""Mend what keeps the theme's pages from being usable by everyone; each repair says what was wrong."""

from __future__ import annotations

import re


def repaired(page: str) -> str:
    """Return a page of the theme with its repairs."""
    for wrong, right in _REPAIRS:
        page = wrong.sub(right, page)
    return page


_REPAIRS: list[tuple[re.Pattern[str], str]] = [
    # The theme, Sphinx and docutils each say how wide a phone is; the first is enough.
    (re.compile(r'(?<=/>)\s*<meta name="viewport" content="width=device-width, initial-scale=1"\s*/>'), ""),
    (re.compile(r'\n\s*<meta name="viewport" content="width=device-width, initial-scale=1"\s*/>'), ""),
    # Metadata of another site's search, and room for advertisements.
    (re.compile(r'\s*<meta name="docsearch:[^>]*>'), ""),
    (re.compile(r'\s*<div class="sidebar-primary-item">\s*<div id="ethical-ad-placement"[^>]*>\s*</div>\s*</div>'), ""),
    # The logo and the search button lay outside of all landmarks.
    (re.compile(r'(<div id="pst-primary-sidebar") '), r'\1 role="region" aria-label="The book" '),
    # Every exercise of a page has the same id.
    (re.compile(r'<section id="((?:exercise|solution)-content)">'), r'<section class="\1">'),
    # Roles that are deprecated, and a list whose children are not its items.
    (re.compile(r' role="doc-biblioentry"'), ""),
    (re.compile(r'role="list" (?=class="citation-list")'), ""),
    # The theme knows its colours only when its script has run: a dark page flashed up white.
    (
        re.compile(r'(<script data-cfasync="false">).*?(</script>)', re.DOTALL),
        r"""\1
    (() => {
      const set = document.documentElement.dataset;
      set.mode = localStorage.getItem("mode") || "auto";
      const dark = set.mode === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : set.mode === "dark";
      set.theme = dark ? "dark" : "light";
    })();
  \2""",
    ),
]
