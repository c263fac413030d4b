"""Print the built book as one PDF: `make pdf`. Its pages are joined into one, which headless Chromium prints.

python book/pdf.py _build/html _build/climb-to-the-roofline.pdf
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
MACOS = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
#: What only the whole book needs; the titles of chapters, which the theme prints from elsewhere, are shown.
STYLE = """.rl-contents { break-after: page } .rl-contents ol { line-height: 1.45 }
section.rl-chapter { break-before: page } .bd-article h1 { display: block !important }"""
#: Seconds after which a browser that does not finish is ended.
PATIENCE = 900
_ARTICLE = re.compile(r'<article class="bd-article[^>]*>(.*?)</article>', re.DOTALL)
_TITLE = re.compile(r"<h1>(.*?)(?:<a class=\"headerlink\".*?)?</h1>", re.DOTALL)
_LINK = re.compile(r'\bhref="([^"#:]*)(?:#([^"]*))?"')
_CONTENTS = re.compile(r'<li class="toctree-l1[^>]*><a class="reference internal" href="([^"#]+)"')


def browser() -> str | None:
    """Return the command of a Chromium that is installed, or None."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    return found or (str(MACOS) if MACOS.exists() else None)


def chapters(site: Path) -> list[str]:
    """Return the pages of a built book in the order of its contents, relative to the folder of its first page."""
    start = re.search(r'url=([^"]+)"', (site / "index.html").read_text(encoding="utf-8"))
    if start is None:
        raise ValueError(f"{site}/index.html does not lead to the first page")
    first = site / start.group(1)
    text = first.read_text(encoding="utf-8")
    listed = [first.name, *_CONTENTS.findall(text)]
    return [str((first.parent / name).relative_to(site)) for name in dict.fromkeys(listed) if name != "#"]


def joined(site: Path) -> str:
    """Return all pages of a built book as one, with a list of contents; links between them lead to their sections."""
    names = chapters(site)
    prefix = {name: re.sub(r"\W", "-", name.removesuffix(".html")) for name in names}
    parts, titles = [], []
    for name in names:
        page = (site / name).read_text(encoding="utf-8")
        article = _ARTICLE.search(page)
        if article is None:
            raise ValueError(f"{name} has no article")
        body = re.sub(r"<h1></h1>|<script\b.*?</script>", "", article.group(1), flags=re.DOTALL)
        body = re.sub(r'\bid="([^"]+)"', rf'id="{prefix[name]}--\1"', body)
        body = re.sub(r'\b(src)="\.\./', r'\1="', body)

        def link(found: re.Match[str], name: str = name) -> str:
            address, anchor = found.groups()
            target = name if not address else str(Path(name).parent / address)
            target = re.sub(r"[^/]+/\.\./", "", target)
            if target not in prefix:
                return f'href="{target}"'
            return f'href="#{prefix[target]}' + (f'--{anchor}"' if anchor else '"')

        title = _TITLE.search(body)
        titles.append((prefix[name], title.group(1) if title else name))
        body = body.replace('loading="lazy"', "")
        parts.append(f'<section class="rl-chapter" id="{prefix[name]}">{_LINK.sub(link, body)}</section>')
    sheets = dict.fromkeys(
        sheet.removeprefix("../")
        for name in names
        for sheet in re.findall(r'<link rel="stylesheet" href="([^"]+)"', (site / name).read_text(encoding="utf-8"))
    )
    head = "".join(f'<link rel="stylesheet" href="{sheet}">' for sheet in sheets)
    contents = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title in titles)
    book = html.escape(re.sub(r"<[^>]+>", "", titles[0][1]))
    return (
        f'<!DOCTYPE html><html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8"><title>{book}'
        f"</title>{head}<style>{STYLE}</style></head><body>"
        f'<main class="bd-main"><div class="bd-content"><div class="bd-article-container"><article class="bd-article">'
        f'<section class="rl-contents"><h1>{book}</h1><p><img src="_static/social.png" alt="" width="600"></p>'
        f"<h2>Contents</h2><ol>{contents}</ol></section>{''.join(parts)}</article></div></div></main></body></html>"
    )


def print_book(site: Path, into: Path, command: str) -> int:
    """Print a built book into a PDF file, and return how many pages it has. Raises OSError if none was written."""
    whole = site / "whole-book.html"
    whole.write_text(joined(site), encoding="utf-8")
    into.parent.mkdir(parents=True, exist_ok=True)
    into.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        done = subprocess.run(
            [command, "--headless", "--disable-gpu", "--no-sandbox", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--no-pdf-header-footer", "--generate-pdf-document-outline",
             "--allow-file-access-from-files", f"--user-data-dir={profile}", f"--print-to-pdf={into.resolve()}",
             whole.resolve().as_uri()],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    whole.unlink()
    if not into.exists():
        raise OSError(f"{command} wrote no PDF: {done.stderr.strip()[-500:]}")
    return len(re.findall(rb"/Type\s*/Page\b", into.read_bytes()))


def main() -> int:
    """Print the book named on the command line."""
    site, into = map(Path, sys.argv[1:3])
    command = browser()
    if command is None:
        print("No Chromium or Chrome was found, which prints the PDF. On Debian and Ubuntu: sudo apt install chromium",
              file=sys.stderr)  # fmt: skip
        return 1
    print(f"{into}: {print_book(site, into, command)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
