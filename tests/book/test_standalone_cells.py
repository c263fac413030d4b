"""Each chapter's standalone cells run outside the book, after `import cupy as cp`, and print what the chapter shows."""

from __future__ import annotations

import warnings
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from tools import notebooks
from tools.standalone_runner import run_outside

from climb.bench import events, standalone
from climb.bench.standalone import Cell, standalone_cells

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = {
    path.stem: path
    for path in sorted((ROOT / "book").glob("*.ipynb"))
    if (ROOT / "kernels" / path.stem.replace("-", "_")).is_dir()
}
#: Chapters that still have no standalone cell; a chapter that gets one is removed here.
MISSING: set[str] = set()
PRESENT = sorted(set(NOTEBOOKS) - MISSING)


@pytest.mark.parametrize("chapter", NOTEBOOKS)
def test_chapter_shows_a_whole_kernel_launched_and_timed(chapter):
    lacks = notebooks.standalone_lacks(notebooks.read(NOTEBOOKS[chapter]))
    if chapter in MISSING:
        assert lacks, f"{chapter} has its standalone cell: remove it from MISSING"
    else:
        assert lacks == []


def test_missing_names_only_chapters_with_kernels():
    assert set(NOTEBOOKS) >= MISSING


@pytest.fixture(scope="module")
def outside(tmp_path_factory) -> dict[str, tuple[str, str]]:
    cells = {name: standalone_cells(NOTEBOOKS[name]) for name in PRESENT}
    return run_outside(cells, tmp_path_factory.mktemp("outside")) if cells else {}


@pytest.mark.thorough
@pytest.mark.parametrize("chapter", PRESENT)
def test_standalone_cells_print_outside_the_book_what_the_chapter_shows(chapter, outside):
    printed, error = outside[chapter]
    assert not error, error
    assert printed == "".join(cell.printed for cell in standalone_cells(NOTEBOOKS[chapter]))


def test_recorded_times_belong_to_cells_of_the_book():
    """Lists cells without a time, and times without a cell; both wait for `make record ARGS='--only events'`."""
    for found in (*events.pending_cells(), *events.orphans()):
        warnings.warn(str(found), stacklevel=1)
    assert all(cell.median_ms for _, _, cell in events.recorded())


# The runner and the rules, on a notebook made up here.

GOOD = '''code = r"""
extern "C" __global__ void scale(const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
"""
scale = cp.RawKernel(code, "scale")
n = 1 << 10
x = cp.arange(n, dtype=cp.float32)
y = cp.empty_like(x)
grid, block = ((n + 255) // 256,), (256,)
scale(grid, block, (x, y, cp.int32(n)))
print("right:", bool((y == 2 * x).all()))
'''
TIMED = """start, stop = cp.cuda.Event(), cp.cuda.Event()
start.record()
scale(grid, block, (x, y, cp.int32(n)))
stop.record()
stop.synchronize()
print(f"{1000 * cp.cuda.get_elapsed_time(start, stop):.1f} µs")
"""


def notebook(*sources: str, tags: tuple[str, ...] = ("standalone",)) -> nbformat.NotebookNode:
    return new_notebook(cells=[new_code_cell(source, metadata={"tags": list(tags)}) for source in sources])


def cells_of(*sources: str) -> tuple[Cell, ...]:
    return tuple(Cell(n, s, "", c) for n, (s, c) in enumerate(zip(sources, standalone.chains(sources), strict=True)))


def test_script_runs_alone_and_sees_recorded_times_in_order(tmp_path, monkeypatch):
    cells = cells_of(GOOD, TIMED, TIMED)
    recorded = events.EventsCell(cells[1].chain, ((0.0031,), ()), (0.0031,))
    monkeypatch.setattr(events, "recorded", lambda: iter([("chapter", tmp_path, recorded)]))
    given = {"chapter": cells, "other": cells[:2], "broken": cells_of("import numpy\nprint(1)\nnotebook_name")}
    found = run_outside(given, tmp_path)
    assert found["chapter"] == ("right: True\n3.1 µs\n3.1 µs\n", "")
    assert found["other"] == ("right: True\nnan µs\n", "")
    assert found["broken"][0] == "1\n" and "NameError: name 'notebook_name'" in found["broken"][1]


@pytest.mark.parametrize("product", ["m @ m", "cp.matmul(m, m)", "cp.dot(m[0], m[0])", "m.astype(cp.int32) @ m[0]"])
def test_cell_that_needs_a_library_beyond_the_lock_fails(product, tmp_path):
    source = f"m = cp.ones((2, 2))\nprint(int((m.get() @ m.get())[0, 0]))\nprint({product})"
    printed, error = run_outside({"chapter": cells_of(source)}, tmp_path)["chapter"]
    assert printed == "2\n" and "ImportError" in error and "requirements.txt" in error


def test_good_standalone_cells_break_no_rule():
    assert notebooks.standalone_problems(notebook(GOOD, TIMED)) == []
    assert notebooks.standalone_lacks(notebook(GOOD, TIMED)) == []


@pytest.mark.parametrize(
    ("book", "says"),
    [
        (notebook(TIMED), "cell 0 is standalone, but needs block, grid, n, scale, x, y from elsewhere"),
        (notebook("import numpy as np\n" + GOOD), "imports nothing"),
        (notebook(GOOD, "np.ones(3)"), "cell 1 is standalone, but needs np from elsewhere"),
        (notebook(GOOD, tags=("standalone", "hide-input")), "is shown and raises nothing, but it is ['hide-input']"),
    ],
)
def test_planted_fault_in_a_standalone_cell_is_found(book, says):
    assert says in "\n".join(notebooks.standalone_problems(book))


@pytest.mark.parametrize(
    ("source", "lacks"),
    [
        (GOOD, ["a timing by cp.cuda.Event"]),
        (TIMED, ["a kernel in a string", "cp.RawKernel or cp.RawModule"]),
        (GOOD + TIMED.replace("cp.cuda.get_elapsed_time", "elapsed"), ["a timing by cp.cuda.Event"]),
        (GOOD.replace("cp.RawKernel", "kernel") + TIMED, ["cp.RawKernel or cp.RawModule"]),
    ],
)
def test_what_standalone_cells_lack_is_named(source, lacks):
    assert notebooks.standalone_lacks(notebook(source)) == [f"no standalone cell has {what}" for what in lacks]


def test_cells_without_the_tag_do_not_count():
    plain = notebook(GOOD, TIMED, tags=())
    assert notebooks.standalone_problems(plain) == [] and len(notebooks.standalone_lacks(plain)) == 3


def test_printed_text_of_a_cell_joins_its_outputs(tmp_path):
    cell = new_code_cell(GOOD, metadata={"tags": ["standalone"]})
    cell.outputs = [new_output("stream", name="stdout", text="a\n"), new_output("stream", name="stdout", text="b\n")]
    nbformat.write(new_notebook(cells=[cell]), tmp_path / "x.ipynb")
    assert standalone_cells(tmp_path / "x.ipynb")[0].printed == "a\nb\n"
