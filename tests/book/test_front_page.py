"""The front page: what a reader sees first, the reading paths, and a link to every page of the book."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from tools import notebooks
from tools.browser import Browser

from climb.display.reading_time import minutes_to_read

ROOT = Path(__file__).resolve().parents[2]
INTRO = nbformat.read(ROOT / "book" / "intro.ipynb", as_version=nbformat.NO_CONVERT)
TEXT = "\n\n".join(cell.source for cell in INTRO.cells if cell.cell_type == "markdown")


def pages(text: str) -> list[str]:
    """The pages that a text links to, in order."""
    return re.findall(r"\]\(([\w-]+)\.(?:ipynb|md)(?:#[\w-]+)?\)", text)


def section(title: str) -> str:
    """The text under a heading, up to the next one."""
    found = re.search(rf"(?m)^#+ {re.escape(title)}$(.*?)(?=^#|\Z)", TEXT, re.DOTALL)
    assert found, title
    return found[1]


def test_every_page_of_the_book_is_linked() -> None:
    listed = {Path(name).name for name in notebooks.toc_files(ROOT / "_toc.yml")} - {"intro"}
    assert listed - set(pages(TEXT)) == set()


def test_reading_time_beside_a_link_is_that_of_the_linked_page() -> None:
    pairs = re.findall(r"\]\(([\w-]+)\.(?:ipynb|md)\), \{minutes\}`([\w-]+)`", TEXT)
    assert len(pairs) > 15 and [pair for pair in pairs if len(set(pair)) > 1] == []
    assert not re.search(r"\d+ minutes(?! *$)", TEXT, re.MULTILINE)  # in a heading, it is the reader's


def test_card_of_each_chapter_says_how_long_its_page_takes() -> None:
    """A card is part of an executed chapter, so it may lag behind a few new sentences."""
    said = {
        path: int(card[1])
        for path in sorted((ROOT / "book").glob("*.ipynb"))
        if (card := re.search(r"Reading time</dt><dd>(\d+) minutes?<", path.read_text(encoding="utf-8")))
    }
    off = {path.stem: (one, minutes_to_read(path)) for path, one in said.items()}
    off = {stem: pair for stem, pair in off.items() if abs(pair[0] - pair[1]) > 0.1 * pair[1] + 1}
    assert len(said) > 20 and off == {}, "the card's minutes and climb.display.reading_time.minutes_to_read"


def test_path_of_thirty_minutes_takes_thirty_minutes() -> None:
    path = pages(section("You are an engineer with 30 minutes"))
    minutes = [minutes_to_read(ROOT / "book" / f"{page}.ipynb") for page in path]
    assert len(path) >= 2 and 15 <= sum(minutes) <= 30, dict(zip(path, minutes, strict=True))


@pytest.mark.parametrize("title", ["You are new to CUDA", "You teach", "You only want the bugs"])
def test_path_exists_and_begins_with_a_sentence(title: str) -> None:
    said = section(title).strip()
    assert re.match(r"[A-Z].*\.\n", said) and ("](" in said or "{exhibits}" in said)


def test_platforms_are_the_same_on_the_front_page_and_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for text in (TEXT, readme):
        assert "any laptop" not in text
        flat = " ".join(text.split())
        assert (
            "You need Linux, or WSL on Windows; Python 3.11, 3.12 or 3.13; and `make`. You do not need a GPU." in flat
        )
        assert "NVIDIA publishes no compiler for macOS" in flat


@pytest.mark.parametrize("width", [1280, 390])
def test_first_screen_says_what_it_is_and_offers_three_buttons(address: str, browser: Browser, width: int) -> None:
    page = browser.page(width=width, height=844)
    page.open(f"{address}/book/intro.html")
    seen = page.run("""(() => {
        const inside = e => e.getBoundingClientRect().bottom <= innerHeight;
        return [[...document.querySelectorAll('.bd-article p')].filter(inside).map(p => p.textContent).join(' '),
                [...document.querySelectorAll('.rl-start a')].filter(inside).map(a => a.textContent.split(' ')[0]),
                [...document.querySelectorAll('.bd-article .cell')].filter(inside).length,
                document.documentElement.scrollWidth <= innerWidth];
    })()""")
    said, buttons, cells, fits = seen
    assert "It runs without a GPU." in said
    assert buttons == ["Start", "Run", "Find"]
    assert cells == 0 and fits
    page.close()
