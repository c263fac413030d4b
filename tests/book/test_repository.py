"""The repository's address on the pages: every link where it is set, none where it is empty; and reading times."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from tools import notebooks, site
from tools.browser import Browser, serve
from tools.building import build, warnings

from climb.cli.scaffold.first_cell import read_address

ROOT = Path(__file__).resolve().parents[2]
URL = "https://github.com/someone/climb"
FILES = f"{URL}/blob/trunk/"

TEXT = """# A page

`kernels/a.cu` is a file, `kernels/` a folder; `kernels/gone.cu`, `a.cu` and `kernels/../kernels/a.cu` are neither.
It takes {minutes}`a`, the other {minutes}`b`.

```{exhibits}
```
"""
LISTINGS = """<div class="rl-source" data-file="kernels/a.cu"><span class="rl-file">a.cu</span><pre>x</pre></div>
<pre data-file="kernels/a b.cu">y</pre><p><code data-file="kernels/a.cu">a.cu</code></p>
<a data-file="kernels/a.cu" hidden>whole</a>"""
OTHER = "# Another page\n\n## Exhibit: a *bug*\n\n" + "word " * 300 + "\n\n## Exhibits\n\n## After\n"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book of two pages with the settings of this one and an address."""
    root = tmp_path_factory.mktemp("published")
    shutil.copytree(ROOT / "book" / "_static", root / "book" / "_static", ignore=shutil.ignore_patterns("mathjax"))
    shutil.copy(ROOT / "book" / "references.bib", root / "book")
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    config = config.replace("book/_extensions", str(ROOT / "book/_extensions"))
    config, changed = re.subn(r"(?m)^  url: .*\n  branch: .*$", f"  url: {URL}\n  branch: trunk", config)
    assert changed == 1
    (root / "_config.yml").write_text(config, encoding="utf-8")
    (root / "_toc.yml").write_text("format: jb-book\nroot: book/a\nchapters:\n- file: book/b\n", encoding="utf-8")
    (root / "kernels").mkdir()
    (root / "kernels" / "a.cu").touch()
    html = new_output("display_data", {"text/html": LISTINGS, "text/plain": "x"})
    metadata: dict[str, object] = {"kernelspec": dict(notebooks.KERNELSPEC)}
    cells = [new_markdown_cell(TEXT), new_code_cell("show()", outputs=[html])]
    metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    page = new_notebook(cells=cells, metadata=metadata)
    nbformat.write(page, root / "book" / "a.ipynb")
    (root / "book" / "b.md").write_text(OTHER, encoding="utf-8")
    done = build(root, root)
    assert done.returncode == 0, warnings(done.stdout + done.stderr)
    return root / "_build" / "html"


@pytest.fixture
def unpublished(book: Path) -> Path:
    """This book, as long as it has no address."""
    if read_address(ROOT / "_config.yml").url:
        pytest.skip("the book has an address")
    return book


def links(page: Path) -> set[str]:
    return {url for url in re.findall(r'<a [^>]*href="([^"]+)"', page.read_text(encoding="utf-8")) if "://" in url}


@pytest.mark.thorough
def test_page_with_an_address_links_to_source_issue_and_colab(published: Path) -> None:
    found = links(published / "book" / "a.html")
    assert {URL, f"{URL}/edit/trunk/book/a.ipynb"} <= found
    assert any(url.startswith(f"{URL}/issues/new?") for url in found)
    assert "https://colab.research.google.com/github/someone/climb/blob/trunk/book/a.ipynb" in found
    assert not any("colab" in url for url in links(published / "book" / "b.html"))  # it is no notebook


def test_book_without_an_address_has_none_of_the_links(unpublished: Path) -> None:
    forbidden = re.compile(r"colab\.research|rl-files|files\.js|source-(?:buttons|edit|issues|repository)")
    found = {path.name: forbidden.findall(path.read_text(encoding="utf-8")) for path in site.pages(unpublished)}
    assert len(found) > 15 and {name: hits for name, hits in found.items() if hits} == {}


@pytest.mark.thorough
def test_book_with_an_address_loads_nothing_from_another_host(published: Path) -> None:
    assert site.remote_loads(published) == []


@pytest.mark.thorough
def test_names_of_files_in_the_text_are_links(published: Path) -> None:
    found = links(published / "book" / "a.html")
    assert {url for url in found if url.startswith(FILES)} == {FILES + "kernels/a.cu", FILES + "kernels/"}


@pytest.mark.thorough
def test_listings_are_linked_to_their_files(published: Path, browser: Browser) -> None:
    with serve(published) as address:
        page = browser.page()
        page.open(f"{address}/book/a.html")
        script = "[...document.querySelectorAll('.cell_output a')].map(a => [a.href, a.textContent.trim(), a.hidden])"
        assert page.run(script) == [
            [FILES + "kernels/a.cu", "a.cu", False],
            [FILES + "kernels/a%20b.cu", "kernels/a b.cu", False],
            [FILES + "kernels/a.cu", "a.cu", False],
            [FILES + "kernels/a.cu", "whole", False],
        ]
        assert [said for said in page.complaints() if "files.js" in said] == []
        page.close()


def first_text(notebook: Path) -> str:
    read = nbformat.read(notebook, as_version=nbformat.NO_CONVERT)
    nbformat.validate(read)
    return read.cells[0].source


@pytest.mark.thorough
def test_downloaded_notebook_of_a_book_with_an_address_is_the_chapter_itself(published: Path) -> None:
    assert first_text(published / "_sources" / "book" / "a.ipynb").startswith("# A page")


def test_downloaded_notebook_of_a_book_without_an_address_says_what_it_needs(unpublished: Path) -> None:
    chapters = sorted((unpublished / "_sources" / "book").glob("*.ipynb"))
    assert len(chapters) > 15
    for chapter in chapters:
        assert "put it into the folder `book/` of a clone" in first_text(chapter)


@pytest.mark.thorough
def test_reading_times_and_exhibits_are_listed(published: Path) -> None:
    page = (published / "book" / "a.html").read_text(encoding="utf-8")
    assert "It takes 1 minute, the other 2 minutes." in page
    listed = re.findall(r'<li><p><a class="reference internal" href="([^"]+)">([^<]+)</a>, ([^<]+)</p>', page)
    assert listed == [
        ("b.html#exhibit-a-bug", "Another page: a bug", "2 minutes"),
        ("b.html#exhibits", "Another page", "1 minute"),
    ]
