"""Check a built book: remote loads, images without alt text, malformed pictures and dead links."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from tools import thorough

#: Attributes that make a browser fetch, by element. An <a href> is followed by a reader, not fetched.
_FETCHED = {
    "script": ("src",), "img": ("src", "srcset"), "source": ("src", "srcset"), "iframe": ("src",),
    "video": ("src", "poster"), "audio": ("src",), "embed": ("src",), "object": ("data",), "track": ("src",),
    "image": ("href", "xlink:href"), "use": ("href", "xlink:href"), "input": ("src",), "body": ("background",),
}  # fmt: skip
#: Relations of <link> elements that a browser does not fetch or connect to.
_POINTING = {"canonical", "next", "prev", "index", "search", "author", "license", "copyright", "alternate", "top", "up"}
_REMOTE = re.compile(r"\s*(?:https?:|wss?:|ftp:)?//", re.IGNORECASE)
_CSS_URL = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")
#: Remote addresses that a script imports, fetches, or assigns to an element.
_SCRIPT_LOADS = re.compile(
    r"""(?:\bimport\s*\(?|\bfrom|\bfetch\s*\(|\bimportScripts\s*\(|\.(?:src|href)\s*=|\.open\s*\([^,]*,|\bnew\s+Worker\s*\()"""
    r"""\s*["'`]((?:https?:)?//[^"'`]+)"""
)
_IMAGE_FILE = re.compile(r"(?:\.(?:svg|png|jpe?g|gif|webp)$)|^[0-9a-f]{16,}", re.IGNORECASE)


class _Page(HTMLParser):
    """A page's fetched addresses, images (except the logo beside the book's name), ids and links."""

    def __init__(self) -> None:
        super().__init__()
        self.fetches: list[str] = []
        self.images: list[tuple[str, str | None]] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._inside = tag
        self.ids.update(filter(None, (given.get("id"), given.get("name") if tag == "a" else None)))
        for name in _FETCHED.get(tag, ()):
            urls = given.get(name, "").split(",") if name == "srcset" else [given.get(name, "")]
            self.fetches += [url for url in urls if url]
        if tag == "link" and not set(given.get("rel", "").lower().split()) & _POINTING:
            self.fetches.append(given.get("href", ""))
        if "style" in given:
            self.fetches += css_urls(given["style"])
        if tag == "img" and not (given.get("alt") == "" and "logo__image" in given.get("class", "")):
            self.images.append((given.get("src", ""), given.get("alt")))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.fetches += css_urls(data)
        elif self._inside == "script":
            self.fetches += script_urls(data)


def css_urls(text: str) -> list[str]:
    """The addresses that a style sheet loads."""
    return [first or second for first, second in _CSS_URL.findall(text)]


def script_urls(text: str) -> list[str]:
    """The remote addresses that a script loads, as far as they are literals."""
    return _SCRIPT_LOADS.findall(text)


#: Between them, these pages have every kind of content that a page has.
SAMPLE = {"intro", "first-kernel", "bank-conflicts", "tiling", "ladders", "glossary"}
FEW = SAMPLE - {"first-kernel", "tiling", "glossary"}


def sample(site: Path) -> list[Path]:
    """The pages for tests that take a browser long: those of SAMPLE, with `--thorough` all pages of the book, and in
    `make test-all`, which has turns, a quarter of the others."""
    more = thorough.has_its_turn if thorough.enabled else lambda name: False
    found = [path for path in pages(site) if path.stem in SAMPLE or more(path.stem)]
    assert len(found) >= len(SAMPLE)
    return found


def few(site: Path) -> list[Path]:
    """The pages for tests that take several seconds a page: three of `sample`, with `--thorough` all of it."""
    found = sample(site)
    return found if thorough.enabled else [path for path in found if path.stem in FEW]


def pages(site: Path) -> list[Path]:
    """The pages of a built book, without the pages that Sphinx adds."""
    own = {"genindex.html", "search.html", "index.html", "404.html"}
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts and path.name not in own)


def remote_loads(site: Path) -> list[str]:
    """Every load from another host by a page, a style sheet, a script or a picture of the site."""
    found: list[str] = []
    for path in sorted(site.rglob("*")):
        urls: Iterator[str] | list[str] = []
        if path.suffix == ".html":
            urls = _read(path).fetches
        elif path.suffix == ".css":
            urls = css_urls(path.read_text(encoding="utf-8"))
        elif path.suffix in (".js", ".mjs"):
            urls = script_urls(path.read_text(encoding="utf-8"))
        elif path.suffix == ".svg":
            urls = [url for url in _read(path).fetches + css_urls(path.read_text(encoding="utf-8")) if url]
        found += [f"{path.relative_to(site)} loads {url.strip()}" for url in urls if _REMOTE.match(url)]
    return found


def silent_images(site: Path) -> list[str]:
    """Images whose alt text is missing, a single word, or a file name."""
    return [
        f"{path.relative_to(site)}: {src} has the alt text {alt!r}"
        for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
        for src, alt in _read(path).images
        if not (alt or "").strip() or _IMAGE_FILE.search(alt or "") or len((alt or "").split()) < 2
    ]  # fmt: skip


def broken_pictures(site: Path) -> list[str]:
    """SVG files that are not well-formed XML, which a browser does not draw."""
    found: list[str] = []
    for path in sorted(site.rglob("*.svg")):
        try:
            ElementTree.parse(path)
        except ElementTree.ParseError as error:
            found.append(f"{path.relative_to(site)}: {error}")
    return found


def dead_links(site: Path) -> list[str]:
    """Links and loads within the site whose page, anchor or file does not exist."""
    read = {path: _read(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    ids = {path.resolve(): page.ids for path, page in read.items()}
    resolve = functools.cache(Path.resolve)
    found: list[str] = []
    for path, page in read.items():
        for url in [*page.links, *page.fetches]:
            parts = urlsplit(url.strip())
            if parts.scheme or parts.netloc or url.startswith("{"):
                continue
            folder = site if parts.path.startswith("/") else path.parent  # "/" is the root of the site
            target = resolve(folder / unquote(parts.path).lstrip("/") if parts.path else path)
            target = target / "index.html" if target.suffix != ".html" and target.is_dir() else target
            known = ids.get(target)
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and known is not None and anchor not in known):
                found.append(f"{path.relative_to(site)} leads to {url}, which is not there")
    return found


def _read(path: Path) -> _Page:
    return _parsed(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _parsed(path: Path, changed: int) -> _Page:
    """The page in a file, which several tests read; ``changed`` is the time of its last change."""
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page
