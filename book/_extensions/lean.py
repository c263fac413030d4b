"""Make the built pages light: one style sheet and one script a page, of what that page uses, and pictures when needed.

Runs when Sphinx has written its pages, because only then is it known what they contain:

- the icons become inline drawings (`icons.py`), and the script that drew them goes;
- style sheets and scripts that the page has no use for go; the others become one file each, the style sheet without the
  rules that no page uses (`lean_css.py`);
- pictures get their size, so that nothing jumps, and are loaded when they come near;
- `repairs.py` mends what keeps the theme's pages from being usable by everyone.

A style sheet or script of the book that only some pages need says so in its first line, and is left out elsewhere:

    /* only where: rl-banks */          the page contains "rl-banks"
"""

from __future__ import annotations

import hashlib
import re
import struct
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

from icons import inlined
from lean_css import moved, shrink
from repairs import repaired
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)

#: Files of the theme and of Sphinx's extensions, by how their names begin, with what a page must match to need them.
#: The search page loads all that it asks for; other pages have a form that leads there.
NEEDED = {
    "bootstrap.js": r"$^",  # menus.js opens the only menu
    "fontawesome.js": r"$^",
    "sphinx-thebe": r"$^",  # runs cells on another host
    "searchtools.js": r'id="search-results"',
    "language_data.js": r'id="search-results"',
    "searchindex.js": r'id="search-results"',
    "design-tabs.js": r"sd-tab-set",
    "sphinx-design": r'class="[^"]*\bsd-',
    "togglebutton": r'class="[^"]*\b(?:toggle|dropdown)\b',
    "exercise.css": r'class="[^"]*\b(?:exercise|solution)\b',
    "mystnb": r'class="[^"]*\bcell\b',
}
#: What no page loads any more.
UNUSED = ("_static/scripts/*.map", "_static/styles/*.map", "_static/scripts/fontawesome*", "_static/vendor/fontawesome",
          "_static/scripts/bootstrap*", "_static/sphinx-thebe*", "_static/locales", "_static/webpack-macros.html",
          "_static/sbt-webpack-macros.html", "_static/*.png.map")  # fmt: skip

_SHEET = re.compile(r'[ \t]*<link\b(?=[^>]*\brel="stylesheet")[^>]*?\bhref="([^":?]+)(?:\?[^"]*)?"[^>]*>\n?')
_SCRIPT = re.compile(r'[ \t]*<script\b([^>]*?)\bsrc="([^":?]+)(?:\?[^"]*)?"([^>]*)></script>\n?')
_INLINE = re.compile(r"[ \t]*<script>([^<]*)</script>\n?")
_IMPORT = re.compile(r'@import\s+(?:url\()?"([^":]+)"\)?\s*;')
_PRELOAD = re.compile(r'[ \t]*<link rel="preload" as="script"[^>]*>\n?')
_PICTURE = re.compile(r"<img\b[^>]*>")
_ONLY_WHERE = re.compile(r"\s*/\*+\s*only where:\s*(.+?)\s*\*/")
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_MARKED = re.compile(r'\b(?:class|id)="([^"]*)"')


class Site:
    """The built folder: reads its files once, and writes bundles into `_static`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._texts: dict[str, str] = {}
        self._bundles: dict[tuple[str, ...], str] = {}
        self._small: dict[str, str] = {}
        self.used: set[str] = set()

    def text(self, name: str) -> str:
        if name not in self._texts:
            self._texts[name] = (self.root / name).read_text(encoding="utf-8")
        return self._texts[name]

    def needs(self, name: str, page: str) -> bool:
        """Tell whether a page uses a style sheet or script."""
        base = name.rsplit("/", 1)[-1]
        pattern = next((needed for begin, needed in NEEDED.items() if base.startswith(begin)), None)
        if pattern is not None:
            return re.search(pattern, page) is not None
        said = _ONLY_WHERE.match(self.text(name))
        return said is None or said.group(1) in page

    def _sheet(self, name: str) -> str:
        """Return a style sheet with those that it imports, its addresses counted from `_static`."""
        folder = name.rpartition("/")[0]
        text = moved(self.text(name), folder.removeprefix("_static").strip("/"))
        return _IMPORT.sub(lambda found: self._sheet(f"_static/{found.group(1)}"), text)

    def _shrunk(self, name: str) -> str:
        """Return the part of a style sheet that pages use. Pages differ in few of their sheets."""
        if name not in self._small:
            self._small[name] = shrink(self._sheet(name), self.used)
        return self._small[name]

    def bundle(self, names: list[str], kind: str) -> str:
        """Write files as one, in their order, and return its name, which holds its digest."""
        key = (kind, *names)
        if key not in self._bundles:
            if kind == "css":
                whole = "".join(map(self._shrunk, names))
            else:  # the first semicolon: "use strict" at the head of one file must not hold for those behind it
                whole = "".join("\n;" + re.sub(r"(?m)^//# sourceMappingURL=.*$", "", self.text(name)) for name in names)
            digest = hashlib.sha256(whole.encode()).hexdigest()[:10]
            self._bundles[key] = f"_static/bundle-{digest}.{kind}"
            (self.root / self._bundles[key]).write_text(whole, encoding="utf-8")
        return self._bundles[key]


def slim(page: str, name: str, site: Site) -> str:
    """Return a page that loads one style sheet and one script, and its pictures when they come near."""
    up = "../" * name.count("/")
    sheets: list[str] = []
    scripts: list[str] = []

    def local(address: str) -> str:
        return (site.root / name).parent.joinpath(unquote(address)).resolve().relative_to(site.root).as_posix()

    def sheet(found: re.Match[str]) -> str:
        file = local(found.group(1))
        if file not in sheets and site.needs(file, body):
            sheets.append(file)
        return "" if len(sheets) != 1 or "@@sheet@@" in seen else seen.append("@@sheet@@") or "@@sheet@@"

    def script(found: re.Match[str]) -> str:
        before, address, after = found.groups()
        file = local(address)
        if not site.needs(file, body):
            return ""
        if file.endswith("documentation_options.js"):  # 300 bytes, and the next inline script needs them at once
            return f"    <script>{site.text(file)}</script>\n"
        if file.endswith(("searchtools.js", "language_data.js", "searchindex.js")):
            # By themselves, only on the search page: what comes before them asks whether there is a `Search`.
            return f'    <script defer src="{up}{file}"></script>\n'
        if "data-sd" in before + after or "module" in before + after:
            return f'    <script defer{before} src="{address}"{after}></script>\n'.replace('defer="defer"', "")
        scripts.append(file)
        return "" if len(scripts) != 1 else "@@script@@"

    seen: list[str] = []
    head, cut, body = page.partition("<body")
    # Scripts at the end of the page come after those of its head, and all of them wait for the page.
    head = _PRELOAD.sub("", _SHEET.sub(sheet, head))
    head = _INLINE.sub(lambda found: "" if "THEBE_JS_URL" in found.group(1) else found.group(0), head)
    head = _SCRIPT.sub(script, head)
    rest = _SCRIPT.sub(script, body)
    if sheets:
        head = head.replace("@@sheet@@", f'<link rel="stylesheet" href="{up}{site.bundle(sheets, "css")}" />\n', 1)
    if scripts:
        tag = f'    <script defer src="{up}{site.bundle(scripts, "js")}"></script>\n'
        head, rest = head.replace("@@script@@", tag, 1), rest.replace("@@script@@", tag, 1)
    return head + cut + _PICTURE.sub(lambda found: picture(found.group(0), (site.root / name).parent), rest)


def picture(tag: str, folder: Path) -> str:
    """Return an <img> with its size, and loaded when it comes near; the logo is on screen at once."""
    address = re.search(r'\bsrc="([^"]*)"', tag)
    added = "" if "loading=" in tag or "logo__image" in tag else ' loading="lazy" decoding="async"'
    if address and not re.search(r"\bwidth=|\bheight=", tag) and not address.group(1).startswith(("data:", "http")):
        size = picture_size(folder / unquote(address.group(1).partition("?")[0]))
        added += f' width="{size[0]}" height="{size[1]}"' if size else ""
    return tag.replace("<img", f"<img{added}", 1)


def picture_size(path: Path) -> tuple[int, int] | None:
    """Return width and height of a picture in CSS pixels, None if it does not say."""
    if not path.exists():
        return None
    if path.suffix != ".svg":
        start = path.read_bytes()[:24]  # of a PNG: width and height are its 17th to 24th byte
        return struct.unpack(">II", start[16:]) if start.startswith(b"\x89PNG") else None
    _, drawing = next(iter(ElementTree.iterparse(path, events=("start",))))
    scale = {"": 1.0, "px": 1.0, "pt": 4 / 3, "in": 96.0, "mm": 96 / 25.4, "cm": 96 / 2.54}
    sides = [re.fullmatch(r"([\d.]+)(\w*)", drawing.get(side, "")) for side in ("width", "height")]
    if all(side and side.group(2) in scale for side in sides):
        width, height = (round(float(side.group(1)) * scale[side.group(2)]) for side in sides if side)
        return width, height
    box = drawing.get("viewBox", "").replace(",", " ").split()
    return (round(float(box[2])), round(float(box[3]))) if len(box) == 4 else None


def make_lean(app: Sphinx, failure: Exception | None) -> None:
    """Rewrite every page of a finished build, and remove what none of them loads."""
    if failure is not None or app.builder.name not in ("html", "singlehtml"):
        return
    site = Site(Path(app.outdir).resolve())
    pages = {path.relative_to(site.root).as_posix(): path.read_text(encoding="utf-8")
             for path in sorted(site.root.rglob("*.html")) if "_static" not in path.parts}  # fmt: skip
    pages = {name: text for name, text in pages.items() if "<body" in text and "_static/bundle-" not in text}
    for name, text in pages.items():
        drawn, unknown = inlined(text)
        pages[name] = repaired(drawn)
        if unknown:
            _log.warning("%s: no drawing for the icon %s; add one to icons.py", name, ", ".join(sorted(unknown)))
        for marked in _MARKED.findall(pages[name]):
            site.used.update(marked.split())
    wanted = {found.group(2) for text in pages.values() for found in _SCRIPT.finditer(text)}
    for address in {re.sub(r"^(\.\./)+", "", one) for one in wanted}:
        if not re.search(r"fontawesome|bootstrap|searchindex|language_data", address):
            site.used.update(_WORD.findall(site.text(address)))
    for name, text in pages.items():
        (site.root / name).write_text(slim(text, name, site), encoding="utf-8")
    for pattern in UNUSED:
        for path in site.root.glob(pattern):
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        for inner in path.iterdir():
            _remove(inner)
        path.rmdir()
    else:
        path.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    """Run last, when other extensions have written what they add."""
    app.connect("build-finished", make_lean, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
