"""Pages' data for search engines and other sites, with and without the address of the site; and the printed book."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tools import site
from tools.building import build

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "book")]

import pdf  # noqa: E402


def metas(page: str) -> dict[str, str]:
    """The <meta> elements of a page, by name or property."""
    return dict(re.findall(r'<meta (?:name|property)="([^"]+)" content="([^"]*)"', page))


def test_every_page_has_a_description_of_its_own_and_no_address(book: Path) -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in site.pages(book)}
    told = {name: metas(page)["description"] for name, page in pages.items()}
    assert len(set(told.values())) == len(told) and all(20 < len(text) < 260 for text in told.values())
    assert [name for name, page in pages.items() if "og:image" in page or 'rel="canonical"' in page] == []
    assert not (book / "sitemap.xml").exists()
    assert all(page.count('name="viewport"') == 1 and 'rel="apple-touch-icon"' in page for page in pages.values())


@pytest.mark.parametrize(("name", "size"), [("social.png", (1200, 630)), ("icon-48.png", (48, 48)),
                                            ("icon-180.png", (180, 180))])  # fmt: skip
def test_pictures_of_the_site_have_their_sizes(name: str, size: tuple[int, int]) -> None:
    start = (ROOT / "book" / "_static" / name).read_bytes()[:24]
    assert struct.unpack(">II", start[16:]) == size


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book of two pages with the address of its site."""
    root, into = tmp_path_factory.mktemp("small"), tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT / "book" / "_static", root / "book" / "_static")
    shutil.copy(ROOT / "book" / "references.bib", root / "book")
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    config = config.replace("book/_extensions", str(ROOT / "book/_extensions"))
    assert 'baseurl: ""' in config
    config = config.replace('baseurl: ""', "baseurl: https://example.org/climb")
    (root / "_config.yml").write_text(config, encoding="utf-8")
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/a\nchapters:\n- file: book/b\n", encoding="utf-8")
    text = "# The first page\n\nIt says what the first page is about. [There](b.md#more) is more to read."
    (root / "book" / "a.md").write_text(text, encoding="utf-8")
    more = "# The second page\n\nIt has a formula, $a^2$, and a section.\n\n(more)=\n## More\n\nText.\n"
    (root / "book" / "b.md").write_text(more, encoding="utf-8")
    done = build(root, into)
    assert done.returncode == 0, done.stdout + done.stderr
    return into / "_build" / "html"


@pytest.mark.thorough
def test_pages_of_a_published_site_name_their_address(published: Path) -> None:
    page = (published / "book" / "a.html").read_text(encoding="utf-8")
    told = metas(page)
    assert told["og:url"] == "https://example.org/climb/book/a.html"
    assert told["og:image"] == "https://example.org/climb/_static/social.png"
    assert told["description"].startswith("It says what the first page is about.")
    assert re.findall(r'<link rel="canonical" href="([^"]+)"', page) == ["https://example.org/climb/book/a.html"]
    places = re.findall(r"<loc>(.*?)</loc>", (published / "sitemap.xml").read_text(encoding="utf-8"))
    assert places == [f"https://example.org/climb/book/{name}.html" for name in "ab"]


@pytest.mark.thorough
def test_page_for_404_works_from_any_folder(published: Path) -> None:
    page = (published / "404.html").read_text(encoding="utf-8")
    links = [link for link in re.findall(r'\b(?:href|src)="([^"]*)"', page) if not link.startswith(("#", "data:"))]
    assert len(links) > 5 and all(link.startswith(("/climb/", "https://example.org/climb")) for link in links)


@pytest.mark.thorough
def test_whole_book_has_contents_and_links_within_itself(published: Path) -> None:
    whole = pdf.joined(published)
    ids = re.findall(r'\bid="([^"]*)"', whole)
    assert len(ids) == len(set(ids))
    assert [link for link in re.findall(r'href="#([^"]*)"', whole) if link not in ids] == []
    assert re.findall(r'<li><a href="#[^"]*">(.*?)</a></li>', whole) == ["The first page", "The second page"]


@pytest.mark.thorough
def test_book_is_printed(published: Path, tmp_path: Path) -> None:
    command = pdf.browser()
    if command is None:
        pytest.skip("needs a browser: `apt-get install chromium` installs one")
    assert pdf.print_book(published, tmp_path / "book.pdf", command) == 3
    assert (tmp_path / "book.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.thorough
def test_missing_browser_is_said(published: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(ROOT / "book" / "pdf.py"), str(published), str(tmp_path / "a.pdf")],
                          env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)  # fmt: skip
    assert pdf.MACOS.exists() or (done.returncode == 1 and "sudo apt install chromium" in done.stderr)
