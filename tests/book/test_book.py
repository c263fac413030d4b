"""The book builds without a warning, loads nothing from another host, and every image has alt text."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tools import notebooks, site
from tools.building import build, warnings

ROOT = Path(__file__).resolve().parents[2]


def test_book_has_a_page_for_every_entry_of_the_contents(book: Path) -> None:
    listed = sorted(f"{name}.html" for name in notebooks.toc_files(ROOT / "_toc.yml"))
    assert [path.relative_to(book).as_posix() for path in site.pages(book)] == listed
    assert (book / "index.html").exists()


def test_book_loads_nothing_from_another_host(book: Path) -> None:
    assert site.remote_loads(book) == []


def test_formulas_are_mathml_and_no_page_loads_a_script_for_them(book: Path) -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in site.pages(book)}
    formulas = sum(page.count("<math") for page in pages.values())
    assert formulas == sum(page.count('class="math notranslate') for page in pages.values()) > 300
    loads = re.compile(r"mathjax[^\s]*\.js", re.IGNORECASE)
    assert [name for name, page in pages.items() if loads.search(page)] == []


def test_every_image_has_alt_text(book: Path) -> None:
    assert site.silent_images(book) == []


def test_every_svg_is_well_formed(book: Path) -> None:
    assert site.broken_pictures(book) == []


def test_book_has_no_dead_internal_link(book: Path) -> None:
    assert site.dead_links(book) == []


# A small book with faults: the checks above must be able to fail.


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """A book of one page with a fault of every kind, and MathJax from its default remote address."""
    root, into = tmp_path_factory.mktemp("small"), tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT / "book" / "_static", root / "book" / "_static")
    shutil.copy(ROOT / "book" / "references.bib", root / "book")
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    assert "html_math_renderer: mathml" in config
    config = config.replace("html_math_renderer: mathml", "html_math_renderer: mathjax")
    config = config.replace("book/_extensions", str(ROOT / "book/_extensions"))
    (root / "_config.yml").write_text(config, encoding="utf-8")
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/a\n", encoding="utf-8")
    (root / "book" / "a.md").write_text(PAGE, encoding="utf-8")
    return build(root, into), into / "_build" / "html"


PAGE = """# A page

{term}`no such term`, {ref}`no-such-label`, {cite}`nobody1900`, {doc}`nowhere`, [a page](missing.md), [there](#nowhere).

![](_static/logo.svg)

![a picture](_static/gone.svg)

![a remote picture](https://example.org/x.png)

```{no-such-directive}
```

$x$
"""


@pytest.mark.parametrize(
    "warning",
    ["no such term", "no-such-label", "nobody1900", "unknown document: 'nowhere'", "missing.md", "'nowhere'",
     "gone.svg", "no-such-directive"],
)  # fmt: skip
def test_fault_in_a_page_is_a_warning_that_fails_the_build(
    broken: tuple[subprocess.CompletedProcess[str], Path], warning: str
) -> None:
    done, _ = broken
    assert done.returncode != 0
    assert warning in warnings(done.stdout + done.stderr)


def test_remote_script_and_remote_image_in_a_built_book_are_found(
    broken: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    loads = "\n".join(site.remote_loads(broken[1]))
    assert "book/a.html loads https://cdn.jsdelivr.net/npm/mathjax" in loads
    assert "book/a.html loads https://example.org/x.png" in loads


def test_image_without_alt_text_is_found(broken: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    assert any("logo.svg" in image for image in site.silent_images(broken[1]))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.html", '<script src="//cdn.example.org/x.js"></script>', "a.html loads //cdn"),
        ("a.html", '<link rel="stylesheet" href="https://example.org/x.css">', "a.html loads https"),
        ("a.html", '<link rel="preconnect" href="https://fonts.example.org">', "a.html loads https"),
        ("a.html", '<style>@import "https://example.org/x.css";</style>', "a.html loads https"),
        ("a.html", '<p style="background: url(http://example.org/x.png)">', "a.html loads http"),
        ("a.html", "<script>fetch('https://example.org/x')</script>", "a.html loads https"),
        ("a.html", '<img alt="a b" srcset="a.png 1x, https://example.org/b.png 2x">', "a.html loads https"),
        ("_static/a.css", "@font-face { src: url('https://example.org/x.woff') }", "a.css loads https"),
        ("_static/a.js", 'import x from "https://esm.example.org/x"', "a.js loads https"),
        ("_static/a.js", 's.src = "https://example.org/x.js"', "a.js loads https"),
        ("_images/a.svg", '<svg><image href="https://example.org/x.png"/></svg>', "a.svg loads https"),
    ],
)  # fmt: skip
def test_remote_load_is_found(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert any(says in load for load in site.remote_loads(tmp_path))


@pytest.mark.parametrize(
    "text",
    ['<a href="https://example.org">there</a>', '<link rel="canonical" href="https://example.org">',
     '<script src="_static/x.js"></script>', '<img alt="a b" src="data:image/png;base64,AA=="/>',
     '<svg xmlns="http://www.w3.org/2000/svg"></svg>'],
)  # fmt: skip
def test_link_is_not_reported_as_a_load(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.html").write_text(text, encoding="utf-8")
    assert site.remote_loads(tmp_path) == []


def test_malformed_svg_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text("<svg>\0<g/></svg>")
    (tmp_path / "b.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><g/></svg>')
    assert [problem.split(":")[0] for problem in site.broken_pictures(tmp_path)] == ["a.svg"]


def test_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="x"><a href="#x">1</a><a href="#y">2</a><a href="b.html">3</a>'
                                     '<a href="c.html#z">4</a><img src="d.png">')  # fmt: skip
    (tmp_path / "c.html").write_text("<p>")
    assert len(site.dead_links(tmp_path)) == 4


@pytest.mark.parametrize("alt", ["", ' alt=""', ' alt="../_images/0a1b.svg"', ' alt="picture"',
                                 ' alt="0123456789abcdef0123"'])  # fmt: skip
def test_empty_or_generated_alt_text_is_found(tmp_path: Path, alt: str) -> None:
    (tmp_path / "a.html").write_text(f'<img src="x.svg"{alt}>')
    assert len(site.silent_images(tmp_path)) == 1
