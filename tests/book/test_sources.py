"""The sources: every claim has a verdict and a place in the book that exists, and chapters agree with the data file."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from tools import notebooks, prose

from climb.bench.records import RecordError
from climb.display.anchors import anchors, book_anchors
from climb.display.sources import UNITS, Sources, claims_table, page_text, quantity, read_sources, reported

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
SOURCES = read_sources()
ANCHORS = book_anchors(BOOK)
#: A quantity in the text of a cell, such as "34 µs" or "614.3 GB/s".
MEASURED = "|".join(sorted(set(UNITS) - {"", "%", "x"}))
QUANTITY = re.compile(rf"(?<![\w.])\d+(?:\.\d+)? (?:{MEASURED})(?![\w/])")


def problems(sources: Sources) -> list[str]:
    """The faults of the sources: claims that are untested, lost, shown nowhere, or that type a measurement."""
    found = []
    for source in sources.source:
        counts = Counter(claim.place for claim in source.claim)
        for place in {*source.places, *counts}:
            if source.places.get(place) != counts[place]:
                found.append(f"{source.key}, {place}: {counts[place]} claims, {source.places.get(place)} announced")
        names = Counter(name for claim in source.claim for name in claim.numbers)
        found += [f"{source.key}: two numbers '{name}'" for name, count in names.items() if count > 1]
        for claim in source.claim:
            at = f"{source.key}: {claim.claim}"
            if claim.verdict == "untested":
                found.append(f"{at} untested")
            found += [f"{at} shown at {target}, which does not exist" for target in claim.shown if not _exists(target)]
            found += [f"{at} a measurement is typed: {hit}" for hit in typed(claim.why, claim.claim)]
            found += [f"{at} no quantity: {number}" for number in claim.numbers.values() if not _is_quantity(number)]
            if not (claim.claim.endswith((".", "`.")) and claim.why.endswith(".")):
                found.append(f"{at} no full stop")
    return found


def typed(why: str, said: str) -> list[str]:
    """Measured numbers in a reason that the claim itself does not report."""
    quoted = {hit.replace(" ", "") for hit in QUANTITY.findall(said)}
    return [hit for hit in prose.typed_numbers(why) if not any(q in hit.replace(" ", "") for q in quoted)]


def _exists(target: str) -> bool:
    if target.startswith("tests/"):
        file, _, test = target.partition("::")
        path = ROOT / file
        return path.is_file() and f"\ndef {test}(" in path.read_text(encoding="utf-8")
    return target in ANCHORS


def _is_quantity(text: str) -> bool:
    try:
        return quantity(text) >= 0
    except ValueError:
        return False


def test_every_claim_is_judged_and_shown_and_none_is_lost() -> None:
    assert problems(SOURCES) == []


def test_every_source_is_cited_as_the_bibliography_has_it() -> None:
    known = set(re.findall(r"@\w+\{(\w+),", (BOOK / "references.bib").read_text(encoding="utf-8")))
    assert {source.cite for source in SOURCES.source} - {""} <= known
    assert len(SOURCES.source) == len({source.key for source in SOURCES.source}) == 5


GOOD = """
[[source]]
key = "a2020"
name = "A's post"
author = "A"
title = "A kernel"
url = "https://example.org"
date = "2020"
gpu = "a GPU"
cite = ""
[source.places]
"Start" = 1
[[source.claim]]
place = "Start"
claim = "It takes 34 µs."
verdict = "right"
why = "We counted 34 µs too."
shown = ["conv1d#in-order"]
numbers = {"time" = "34 µs"}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "sources.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('verdict = "right"', 'verdict = "untested"', "untested"),
        ("conv1d#in-order", "conv1d#in-odrer", "shown at conv1d#in-odrer, which does not exist"),
        ("conv1d#in-order", "tests/book/test_sources.py::test_gone", "test_gone, which does not exist"),
        ('"Start" = 1', '"Start" = 2', "1 claims, 2 announced"),
        ('"Start" = 1', '"Start" = 1\n"End" = 1', "End: 0 claims, 1 announced"),
        ("We counted 34 µs too.", "We measured 12 µs.", "typed: We measured 12 µs"),
        ('"34 µs"}', '"34 parsecs"}', "no quantity: 34 parsecs"),
        ("34 µs too.", "34 µs too", "no full stop"),
    ],
)  # fmt: skip
def test_fault_in_the_data_is_found(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert problems(read_sources(written(tmp_path, GOOD))) == []
    assert GOOD.replace(old, new) != GOOD
    (found,) = problems(read_sources(written(tmp_path, GOOD.replace(old, new))))
    assert says in found


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('verdict = "right"', 'verdict = "maybe"', "verdict"),
        ('why = "We counted 34 µs too."', "", "why"),
        ('shown = ["conv1d#in-order"]', "shown = []", "shown"),
        ('gpu = "a GPU"', 'gpu = "a GPU"\ncolour = "red"', "colour"),
    ],
)
def test_data_that_break_the_schema_are_refused(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        read_sources(written(tmp_path, GOOD.replace(old, new)))


def test_reported_number_is_in_si_units_and_an_unknown_one_is_named() -> None:
    assert reported("desai2024conv1d", "his kernel") == 34e-6
    assert quantity("614.3 GB/s") == 614.3e9 and quantity("24.22x") == 24.22
    with pytest.raises(KeyError, match="has no number 'her kernel'"):
        reported("desai2024conv1d", "her kernel")
    with pytest.raises(KeyError, match="no source 'nobody'"):
        reported("nobody", "time")


def test_page_lists_every_claim_with_its_verdict_and_a_link() -> None:
    text = page_text(SOURCES, ANCHORS)
    assert text.startswith(
        f"Our verdicts on the {sum(len(source.claim) for source in SOURCES.source)} claims of 5 texts: "
    )
    for source in SOURCES.source:
        assert f"## {source.name}\n" in text
        for claim in source.claim:
            assert f"* - **{claim.verdict}**\n  - *{claim.place}:* {claim.claim}\n\n    {claim.why} Shown in " in text
    assert (
        "[conv1d, One index too far](conv1d.ipynb#one-index-too-far)" in text
        and "{numref}`fig-conv1d-channels`" in text
    )


def test_table_of_claims_has_those_of_a_chapter_and_refuses_to_be_empty() -> None:
    shown = claims_table("cuda_optimizations", "coarsening").text
    assert "counterintuitive" in shown and "SMs" not in shown
    with pytest.raises(ValueError, match="no claim of cuda_optimizations for chapter 'classifier'"):
        claims_table("cuda_optimizations", "classifier")


def test_anchors_are_those_of_headings_and_figures(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    titles = ["# A `b_c`: d, *e*", "```\n# no heading\n```", "## {term}`x` Same", "## Same", "## Same", "#### Deep"]
    page.write_text("\n\n".join(titles), encoding="utf-8")
    assert anchors(page) == {"a-b_c-d-e": "A b_c: d, e", "-same": " Same", "same": "Same", "same-1": "Same"}


# What a chapter's section "Where this began" says a source reported is what the data file says.

CHAPTERS = sorted(path.stem for path in BOOK.glob("*.ipynb") if f"{path.stem}#where-this-began" in ANCHORS)
#: How a chapter may name each source.
NAMES = {s.key: (s.title, s.name, *([s.author.split()[-1]] if s.cite else [])) for s in SOURCES.source}


def began(chapter: str) -> list[nbformat.NotebookNode]:
    """The cells of the section "Where this began"."""
    cells = notebooks.read(BOOK / f"{chapter}.ipynb").cells
    first = next(n for n, cell in enumerate(cells) if re.search("(?m)^## Where this began", cell.source))
    last = next(n for n, cell in enumerate(cells) if n > first and re.search("(?m)^## ", cell.source))
    return cells[first:last]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_quantity_in_where_this_began_is_one_that_a_source_reports(chapter: str) -> None:
    known = set(QUANTITY.findall(" ".join(claim.claim for source in SOURCES.source for claim in source.claim)))
    for cell in began(chapter):
        if cell.cell_type == "code":
            for node in ast.walk(ast.parse(cell.source)):
                said = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
                assert set(QUANTITY.findall(said)) <= known


def test_chapter_shows_claims_of_each_source_that_it_began_with() -> None:
    for chapter in CHAPTERS:
        said = "\n".join(cell.source for cell in began(chapter))
        for source in SOURCES.source:
            if any(name in said for name in NAMES[source.key]):
                assert [t for c in source.claim for t in c.shown if t.startswith(f"{chapter}#")], (chapter, source.key)


@pytest.mark.parametrize("key", NAMES)
def test_source_is_named_in_a_chapter_that_shows_its_claims(key: str) -> None:
    shown = {target.split("#")[0] for claim in SOURCES[key].claim for target in claim.shown} & set(CHAPTERS)
    text = {chapter: (BOOK / f"{chapter}.ipynb").read_text(encoding="utf-8") for chapter in shown}
    assert [chapter for chapter, said in text.items() if any(name in said for name in NAMES[key])], sorted(shown)
