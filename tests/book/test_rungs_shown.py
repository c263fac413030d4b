"""Each chapter launches every rung of its ladders through `cp`, and plots their times."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from tools import notebooks

from climb.bench.registry import ladder_names, load_ladder

ROOT = Path(__file__).resolve().parents[2]
#: The chapter of each ladder.
CHAPTER = {name: load_ladder(name).folder.parent.name.replace("_", "-") for name in ladder_names()}
WITH_LADDER = sorted(set(CHAPTER.values()))
#: Chapters whose ladders are measured and tested, but whose text is not written yet; one that is written is removed
#: here.
UNWRITTEN: set[str] = set()
#: The worklogs, whose ladders are shown over problem size.
WORKLOGS = ("classifier", "conv-layers", "conv1d", "conv2d", "conv3d", "sgemm")
#: Ladders whose chapter does not launch all rungs with `check_table` yet; one that does is removed here.
NOT_CHECKED = {
    "tensor_bf16", "tensor_f16", "tensor_fp8", "tensor_int8", "tensor_tf32",
    "chain",
}  # fmt: skip
#: Chapters without a `ladder_figure`; one that gets it is removed here.
NO_LADDER_FIGURE: set[str] = set(UNWRITTEN)
#: Worklogs without a `sweep_figure`; one that gets it is removed here.
NO_SWEEP_FIGURE: set[str] = set()


def read(chapter: str) -> nbformat.NotebookNode:
    if chapter in UNWRITTEN:
        return new_notebook()
    return notebooks.read(ROOT / "book" / f"{chapter}.ipynb")


def checked_rungs(nb: nbformat.NotebookNode, ladder: str) -> set[str]:
    """The rungs of a ladder that the notebook's tables of checks list."""
    pages = [o.get("data", {}).get("text/html", "") for cell in nb.cells for o in cell.get("outputs", ())]
    found = re.findall(rf'data-ladder="{ladder}" data-rungs="([^"]*)"', "".join(map("".join, pages)))
    return {name for names in found for name in names.split()}


def calls(nb: nbformat.NotebookNode, function: str) -> bool:
    return any(re.search(rf"\b{function}\(", cell.source) for cell in nb.cells if cell.cell_type == "code")


def lacks_as_listed(lacks: bool, listed: bool, what: str) -> None:
    if listed:
        assert lacks, f"{what}: remove it from the list of what is missing"
    else:
        assert not lacks, f"{what} is missing"


@pytest.mark.parametrize("ladder", ladder_names())
def test_every_rung_is_launched_and_compared_in_its_chapter(ladder):
    missing = set(load_ladder(ladder).names) - checked_rungs(read(CHAPTER[ladder]), ladder)
    lacks_as_listed(bool(missing), ladder in NOT_CHECKED, f"check_table of {ladder} in {CHAPTER[ladder]}")


@pytest.mark.parametrize("chapter", WITH_LADDER)
def test_chapter_plots_times_over_the_rungs(chapter):
    lacks_as_listed(
        not calls(read(chapter), "ladder_figure"), chapter in NO_LADDER_FIGURE, f"ladder_figure in {chapter}"
    )


@pytest.mark.parametrize("chapter", WORKLOGS)
def test_worklog_plots_a_sweep_over_size(chapter):
    lacks_as_listed(not calls(read(chapter), "sweep_figure"), chapter in NO_SWEEP_FIGURE, f"sweep_figure in {chapter}")


@pytest.mark.parametrize("chapter", sorted(UNWRITTEN))
def test_chapter_without_text_is_in_no_list_of_chapters(chapter):
    assert not (ROOT / "book" / f"{chapter}.ipynb").exists()
    assert f"book/{chapter}" not in (ROOT / "_toc.yml").read_text(encoding="utf-8")


def test_rungs_are_read_from_all_tables_of_a_notebook():
    html = [f'<div data-ladder="copy" data-rungs="{rungs}"></div>' for rungs in ("scalar float4", "unrolled")]
    outputs = [new_output("display_data", {"text/html": page}) for page in html]
    nb = new_notebook(cells=[new_code_cell("check_table(copy)", outputs=outputs)])
    assert checked_rungs(nb, "copy") == {"scalar", "float4", "unrolled"} and checked_rungs(nb, "cop") == set()
    assert calls(nb, "check_table") and not calls(nb, "table")
