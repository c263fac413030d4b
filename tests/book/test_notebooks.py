"""Every page of the book keeps the rules of form; a planted fault shows that each rule can fail."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from tools import notebooks, prose

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "book").rglob("*.ipynb"))
PAGES = [*sorted((ROOT / "book").rglob("*.md")), ROOT / "README.md"]
#: Pages without exercises.
NO_EXERCISES = {"intro", "ladders", "measuring", "your-gpu"}
Notebook = nbformat.NotebookNode


@pytest.mark.parametrize("rule", notebooks.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_keeps_the_rule(path: Path, rule: notebooks.Rule) -> None:
    assert rule(notebooks.read(path)) == []


@pytest.mark.parametrize("path", [p for p in CHAPTERS if p.stem not in NO_EXERCISES], ids=lambda path: path.stem)
def test_chapter_has_at_least_two_exercises(path: Path) -> None:
    assert len(_exercises(notebooks.read(path))) >= 2


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_has_no_measured_number_typed_by_hand(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.stem == "README":  # outputs of a command, which tests/cli/test_readme_example.py compares
        text = re.sub(r"^```text\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    before, _, rest = text.partition("<!-- report -->")
    _, _, after = rest.partition("<!-- /report -->")
    assert prose.typed_numbers(before) + prose.typed_numbers(after) == []


def test_table_of_contents_lists_every_page() -> None:
    assert CHAPTERS
    assert notebooks.toc_problems(ROOT) == []


def test_figure_names_are_unique() -> None:
    cells = (cell for path in CHAPTERS for cell in notebooks.read(path).cells)
    names = [cell.metadata.get("mystnb", {}).get("figure", {}).get("name") for cell in cells]
    names = [name for name in names if name]
    assert sorted(names) == sorted(set(names))


# The rules themselves.


def good() -> Notebook:
    """A notebook that breaks no rule."""
    svg = new_output("display_data", {"image/svg+xml": "<svg></svg>", "text/plain": "<Figure>"})
    cells = [
        new_markdown_cell("# A chapter\n\nSectors per request fall from 32 to 4, and {numref}`fig-a` shows it."),
        new_code_cell(notebooks.FIRST_CELL + "from climb import announce\n\nannounce()", execution_count=1,
                      outputs=[new_output("stream", name="stdout", text="running on the emulator\n")],
                      metadata={"tags": ["nbval-ignore-output"]}),
        new_markdown_cell("We draw it."),
        new_code_cell("draw()", execution_count=2, outputs=[svg], metadata={"mystnb": {
            "image": {"alt": "Four bars, each shorter than the one before"},
            "figure": {"name": "fig-a", "caption": "Each rung is shorter."}}}),
        new_markdown_cell("```{exercise}\n:label: ex-a\nWhy?\n```\n\n"
                          "````{solution} ex-a\n:class: dropdown\n```python\nf()\n```\n````"),
        new_markdown_cell(":::{exercise-start}\n:label: ex-b\n:::\nComplete it."),
        new_markdown_cell(":::{exercise-end}\n:::\n\n:::{solution-start} ex-b\n:class: dropdown\n:::"),
    ]  # fmt: skip
    return new_notebook(cells=cells, metadata={"kernelspec": dict(notebooks.KERNELSPEC)})


def test_good_notebook_breaks_no_rule() -> None:
    assert [problem for rule in notebooks.RULES for problem in rule(good())] == []
    assert len(_exercises(good())) == 2


def _set(path: str, value: Any) -> Callable[[Notebook], None]:
    """A fault that sets the value at a path such as `cells/3/metadata/tags` in a notebook."""

    def plant(nb: Notebook) -> None:
        *steps, last = [int(step) if step.isdigit() else step.replace("~", "/") for step in path.split("/")]
        node: Any = nb
        for step in steps:
            node = node[step]
        node[last] = value

    return plant


def _twice(nb: Notebook) -> None:
    nb.cells[3].outputs *= 2


def _older(nb: Notebook) -> None:
    nb.nbformat_minor = 4
    for cell in nb.cells:
        del cell["id"]


def _html(page: str) -> Callable[[Notebook], None]:
    return _set("cells/3/outputs", [new_output("display_data", {"text/html": page})])


def _excerpt(shown: str) -> Callable[[Notebook], None]:
    data = {"text/html": '<div class="rl-source highlight"></div>', "text/plain": shown}
    return _set("cells/1/outputs", [new_output("display_data", data)])


FAULTS: dict[str, tuple[Callable[[Notebook], None], str]] = {
    "an older format": (_older, "format 4.4, not 4.5"),
    "a notebook that is none": (_set("cells/0/cell_type", "poem"), "not a valid notebook"),
    "metadata of an editor": (_set("metadata/vscode", {}), "notebook's metadata"),
    "language_info": (_set("metadata/language_info", {"name": "python"}), "notebook's metadata"),
    "another kernel": (_set("metadata/kernelspec/name", "conda"), "notebook's metadata"),
    "timestamps": (_set("cells/3/metadata/execution", {"shell.execute_reply": "2026"}), "metadata ['execution']"),
    "an unknown key for figures": (_set("cells/3/metadata/mystnb/figure/align", "left"), "cell 3: mystnb figure"),
    "a cell not run": (_set("cells/3/execution_count", None), "executed as [1, None]"),
    "cells run out of order": (_set("cells/1/execution_count", 7), "executed as [7, 2]"),
    "an empty cell": (_set("cells/3/source", "\n"), "cell 3 is empty"),
    "a warning": (_set("cells/1/outputs", [new_output("stream", name="stderr", text="Warning")]), "stderr"),
    "a path of a machine": (
        _set("cells/1/outputs", [new_output("stream", name="stdout", text="in /home/me/x.cu")]), "of one machine"),
    "a path of a machine in a traceback": (
        _set("cells/1/outputs", [new_output("error", ename="E", evalue="", traceback=["\x1b[32m/home/me/x.py:1"])]),
        "of one machine"),
    "a picture that is no XML": (_set("cells/3/outputs/0/data/image~svg+xml", "<svg>\0</svg>"), "control character"),
    "a tag without a reason": (_set("cells/3/metadata/tags", ["nbval-skip"]), "nbval-skip has no reason"),
    "an output not compared": (_set("cells/3/metadata/tags", ["nbval-ignore-output"]), "does not name the device"),
    "an nbval comment": (_set("cells/3/source", "# NBVAL_IGNORE_OUTPUT\ndraw()"), "an nbval comment"),
    "an error not meant": (
        _set("cells/1/outputs", [new_output("error", ename="E", evalue="", traceback=[])]), "raises-exception"),
    "an error that did not come": (_set("cells/3/metadata/tags", ["raises-exception"]), "raises-exception"),
    "another first cell": (_set("cells/1/source", "from climb import announce\nannounce()"), "must begin with"),
    "a silent first cell": (_set("cells/1/source", notebooks.FIRST_CELL), "must call announce()"),
    "a long cell": (_set("cells/3/source", "\n".join(["f()"] * 15)), "cell 3 has 15 lines"),
    "a long cell beside a kernel": (
        _set("cells/3/source", 's = """__global__\n\n"""\n' + "\n".join(["f()"] * 15)), "cell 3 has 15 lines"),
    "a line of CUDA that is too wide": (
        _set("cells/3/source", 's = """__device__ int f()\n' + "x" * 89 + '"""\nf()'), "cell 3: 89 columns of CUDA"),
    "no sentence before a cell": (lambda nb: nb.cells.pop(2), "cell 2 has no sentence before it"),
    "two figures": (_twice, "cell 3 has 2 figures"),
    "no alt text": (_set("cells/3/metadata/mystnb/image", {}), "cell 3: alt text"),
    "alt text that says nothing": (_set("cells/3/metadata/mystnb/image/alt", "a plot"), "cell 3: alt text"),
    "no caption": (_set("cells/3/metadata/mystnb/figure/caption", ""), "cell 3: a caption"),
    "a figure's name": (_set("cells/3/metadata/mystnb/figure/name", "ladder"), "cell 3: a caption, and a name"),
    "a figure not spoken of": (_set("cells/0/source", "# A chapter, fig-ab"), "does not speak of fig-a"),
    "a figure without a cell": (_set("cells/3/outputs", []), "describes a figure that it does not draw"),
    "an img without alt": (_html('<img src="x.png">'), "an <img> without alt text"),
    "an svg without a label": (_html('<svg viewBox="0 0 1 1"></svg>'), "an <svg> without aria-label"),
    "a number in the text": (_set("cells/2/source", "It takes 12 us."), "cell 2: typed by hand"),
    "a value inside of code": (_set("cells/2/source", "The best is `{glue:text}`best``."), "cell 2: shown as it is"),
    "a number in a caption": (
        _set("cells/3/metadata/mystnb/figure/caption", "2.1 times faster"), "cell 3: typed by hand"),
    "a number in alt text": (
        _set("cells/3/metadata/mystnb/image/alt", "a bar that ends at 92 % of the limit"), "cell 3: typed by hand"),
    "an exercise without a solution": (_set("cells/6/source", ":::{exercise-end}\n:::"), "ex-b has no solution"),
    "a solution that is open": (_set("cells/6/source", ":::{solution-start} ex-b\n:::"), "is not folded"),
    "an exercise without a label": (_set("cells/5/source", ":::{exercise-start}\n:::"), "without a label"),
    "a number shown twice": (_set("cells/3/source", "say(a=1)\ndraw()"), "cell 3 says numbers for the text"),
    "a name in backticks for the text": (
        _set("cells/1/outputs", [
            new_output("display_data", {"text/plain": "`a`"}, metadata={"scrapbook": {"name": "x"}})]),
        "would show the backtick of x"),
    "a file that becomes a link": (_set("cells/2/source", "It is in README.md."), "README.md would become a link"),
    "half a loop": (_excerpt("4      for (;;) {\n5          f();"), "brackets do not close"),
    "a loop's end": (_excerpt("4      }\n5      {"), "did not open"),
    "a pragma of nothing": (_excerpt("4      f();\n5  #pragma unroll"), "ends with '#pragma unroll'"),
    "a solution of nothing": (_set("cells/2/source", "```{solution} ex-c\n:class: dropdown\n```"), "of no exercise"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_breaks_a_rule(fault: str) -> None:
    plant, says = FAULTS[fault]
    nb = good()
    plant(nb)
    assert says in "\n".join(problem for rule in notebooks.RULES for problem in rule(nb))


def test_difference_beside_its_whole_file_is_no_excerpt() -> None:
    nb = good()
    html = '<div class="rl-diff highlight"></div><details><div class="rl-source highlight"></div></details>'
    data = {"text/html": html, "text/plain": "  a to b: 1 line in, 0 lines out\n+ for (;;) {"}
    _set("cells/1/outputs", [new_output("display_data", data)])(nb)
    assert notebooks.excerpt_problems(nb) == []


def test_lines_of_a_kernel_in_a_string_are_not_counted() -> None:
    nb = good()
    nb.cells[3].source = "source = r'''\n__global__ void f() {\n" + "  g();\n" * 30 + "}\n'''\nrun(source)"
    assert notebooks.length_problems(nb) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "The copy takes 502 us.", "It takes 1.84 ms on a good day", "about 3 µs", "16.4μs", "in 2 s.",
        "4275 GB/s of bandwidth", "4.3 TB/s", "1,168 GB/s", "64.97 TFLOP/s", "350 GFLOP/s", "12 TFLOPS", "3.9 TiB/s",
        "reaches 92 % of the ceiling", "27% of it", "$98\\%$ of the peak", "92 percent", "98 %",
        "2.1 times faster than cuDNN", "3x faster", "3 × faster", "$4 \\times$ faster", "40-fold speedup",
        "four times faster", "twice as fast", "half the time", "a speedup of 12", "three times the bandwidth",
        "1980 MHz", "between 10 and 20 us",
    ],
)  # fmt: skip
def test_measured_number_is_found(sentence: str) -> None:
    assert prose.typed_numbers(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "A warp has 32 lanes and touches 4 sectors of 32 bytes.", "Two rows lie 128 bytes apart.",
        "an SM has 65 536 registers", "at 16384 x 16384 float32", "`threadIdx.x % 32` and (8 % n)",
        "in 2 steps, 3 slabs and 4 u-turns", "read the 2009 report", "minutes to read: 25 minutes", "sm_90 and 9.0",
        "a tile of 32 x 33", "the 2 SMs", "We expect fewer sectors, and so less time.", "4 B and 8 B loads",
    ],
)  # fmt: skip
def test_count_is_not_taken_for_a_measured_number(sentence: str) -> None:
    assert prose.typed_numbers(sentence) == []


def test_page_missing_from_the_contents_is_found(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_text(
        "root: book/a\nparts:\n- chapters:\n  - file: book/b\n    sections:\n    - file: book/c\n  - file: book/a\n"
    )
    for name in ("a.md", "b.ipynb", "d.ipynb"):
        (tmp_path / "book" / name).touch()
    assert notebooks.toc_problems(tmp_path) == [
        "book/c is in _toc.yml but not in book/", "book/d is not in _toc.yml", "book/a is in _toc.yml twice",
    ]  # fmt: skip


def _exercises(nb: Notebook) -> list[prose.Directive]:
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    return prose.directives(text, "exercise", "exercise-start")
