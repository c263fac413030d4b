"""Reading times come from a count of the words that a page shows."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from climb.display.reading_time import (
    FOLDED,
    WORDS_A_MINUTE,
    minutes_text,
    minutes_to_read,
    sections,
    words_in,
    words_of,
)


def written(folder: Path, *cells: nbformat.NotebookNode) -> Path:
    """A notebook with these cells, in a file."""
    path = folder / "a.ipynb"
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two words.", 2),
        ("# A heading\n\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |", 6),
        ("x = y + 1", 3),
        ("[the chapter](coalescing.ipynb#sectors-of-a-warp) and {term}`lanes <lane>`", 4),
        ("(sectors)=\nA <!-- not this --> word", 2),
        ("for (int i = 0; i < n; ++i)", 7),
        ("", 0),
    ],
)
def test_words_are_what_has_a_letter_or_a_digit(text: str, words: int) -> None:
    assert words_in(text) == words


def test_text_and_visible_code_are_counted(tmp_path: Path) -> None:
    assert words_of(written(tmp_path, new_markdown_cell("one two three"), new_code_cell("four = five"))) == 5


@pytest.mark.parametrize("tag", sorted(FOLDED))
def test_folded_and_removed_cells_are_not_counted(tmp_path: Path, tag: str) -> None:
    hidden = new_code_cell("a + b", metadata={"tags": [tag]})
    kept = new_code_cell("c", metadata={"tags": ["hide-output"]})
    assert words_of(written(tmp_path, new_markdown_cell("one"), hidden, kept)) == 2


def test_outputs_are_not_counted(tmp_path: Path) -> None:
    output = nbformat.v4.new_output("stream", text="many words " * 100)
    assert words_of(written(tmp_path, new_code_cell("show()", outputs=[output]))) == 1


def test_page_in_markdown_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one two three")
    assert words_of(tmp_path / "a.md") == 3


@pytest.mark.parametrize(
    ("words", "minutes"), [(0, 1), (1, 1), (WORDS_A_MINUTE, 1), (WORDS_A_MINUTE + 1, 2), (10 * WORDS_A_MINUTE, 10)]
)
def test_minutes_are_rounded_up_and_at_least_one(tmp_path: Path, words: int, minutes: int) -> None:
    assert minutes_to_read(written(tmp_path, new_markdown_cell("word " * words))) == minutes


def test_minutes_are_said_in_words() -> None:
    assert [minutes_text(n) for n in (1, 2)] == ["1 minute", "2 minutes"]


def test_section_ends_at_the_next_heading_of_its_level(tmp_path: Path) -> None:
    long = "word " * (WORDS_A_MINUTE + 1)
    page = written(
        tmp_path,
        new_markdown_cell("# A\n\n## Before\n\n" + long),
        new_markdown_cell("## Exhibit: `f` is wrong\n\nText.\n\n```python\n## Exhibit in a comment\n```"),
        new_code_cell("f()"),
        new_markdown_cell("### Inside\n\n" + long + "\n\n## After\n\n" + long + "\n\n## Exhibits"),
    )
    assert sections(page, "Exhibit") == [("Exhibit: f is wrong", 2), ("Exhibits", 1)]
    assert sections(page, "Nothing") == []


def test_section_in_a_higher_section_ends_with_it(tmp_path: Path) -> None:
    page = written(tmp_path, new_markdown_cell("### Exhibit\n\none\n\n# B\n\n" + "word " * 500))
    assert sections(page, "Exhibit") == [("Exhibit", 1)]
