"""The checker of exercises on an exercise made up here, and every exercise of the book with its own files."""

from __future__ import annotations

import importlib
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from tools.thorough import first_of_each

from climb.bench.exercise import (
    Exercise,
    Finding,
    at_most,
    cell,
    check,
    drifted,
    exercises_in,
    exhibit_reader,
    no_bank_conflicts,
)
from climb.bench.problem import Argument, Launch, Problem, ceil_div
from climb.display.exercises import hints, solution

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(p.parts[-3] for p in (ROOT / "kernels").glob("*/exercises/__init__.py"))
BOOK = [e for name in MODULES for e in exercises_in(importlib.import_module(f"kernels.{name}.exercises"))]

SOLUTION = """
__global__ void turn(const float* from, float* to, int rows, int cols)
{
    __shared__ float tile[32][PITCH];
    int row = blockIdx.y * 32 + threadIdx.y;
    int col = blockIdx.x * 32 + threadIdx.x;
    if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = from[row * cols + col];
    __syncthreads();
    row = blockIdx.y * 32 + threadIdx.x;
    col = blockIdx.x * 32 + threadIdx.y;
    if (row < rows && col < cols) to[col * rows + row] = tile[threadIdx.x][threadIdx.y];
}
"""
GOOD = SOLUTION.replace("PITCH", "33")
CONFLICTED = SOLUTION.replace("PITCH", "32")
STRIDED = """
__global__ void turn(const float* from, float* to, int rows, int cols)
{
    int row = blockIdx.y * 32 + threadIdx.y;
    int col = blockIdx.x * 32 + threadIdx.x;
    if (row < rows && col < cols) to[col * rows + row] = from[row * cols + col];
}
"""
SKELETON = """
__global__ void turn(const float* from, float* to, int rows, int cols)
{
    // TODO
}
"""


@pytest.fixture
def exercise(tmp_path):
    (tmp_path / "turn.cu").write_text(SKELETON, encoding="utf-8")
    (tmp_path / "turn_solution.cu").write_text(GOOD, encoding="utf-8")
    problem = Problem(
        name="turn",
        title="Turn a matrix",
        size_keys=("rows", "cols"),
        arguments=(
            Argument("from", "float32", ("rows", "cols")),
            Argument("to", "float32", ("cols", "rows"), "output"),
        ),
        make_inputs=lambda size, rng: {"from": rng.random((size["rows"], size["cols"]), dtype=np.float32)},
        reference=lambda inputs, size: {"to": inputs["from"].T.copy()},
        tolerance=lambda size: 0.0,
        flops=lambda size: 0,
        bytes=lambda size: 8 * size["rows"] * size["cols"],
        headline=(),
        check=(),
    )

    def launches(size):
        grid = (ceil_div(size["cols"], 32), ceil_div(size["rows"], 32))
        return (Launch("turn", grid, (32, 32), ("from", "to", np.int32(size["rows"]), np.int32(size["cols"]))),)

    return Exercise(
        name="turn",
        problem=problem,
        launches=launches,
        sizes=({"rows": 1, "cols": 5}, {"rows": 33, "cols": 65}, {"rows": 64, "cols": 64}),
        folder=tmp_path,
        claims=(at_most("global store", 4), no_bank_conflicts()),
    )


def test_the_solution_passes_every_check(exercise):
    verdict = check(exercise.solution, exercise)
    assert verdict and verdict.passed
    assert repr(verdict).split("\n") == [
        "right:   rows=1, cols=5",
        "right:   rows=33, cols=65",
        "right:   rows=64, cols=64",
        "right:   global store: 4 sectors per request; asked: at most 4",
        "right:   shared memory: 256 wavefronts, the least that 256 requests need; asked: no bank conflicts",
        "turn: solved",
    ]


def test_the_skeleton_is_not_yet_done_and_raises_nothing(exercise):
    verdict = check(exercise.skeleton, exercise)
    assert not verdict
    assert repr(verdict).split("\n")[0] == "not yet: rows=1, cols=5: nothing was written to to"
    assert repr(verdict) == repr(check(exercise.skeleton, exercise))


def test_a_kernel_with_bank_conflicts_is_right_but_not_done(exercise):
    said = repr(check(CONFLICTED, exercise))
    assert "not yet: shared memory: shared load in line 11 takes 32 wavefronts per request: " in said
    assert "; asked: no bank conflicts" in said
    assert said.endswith("turn: not yet")


def test_a_kernel_that_ignores_the_exercise_is_told_what_it_costs(exercise):
    said = repr(check(STRIDED, exercise))
    assert "not yet: global store: 32 sectors per request; asked: at most 4" in said
    assert "the kernel does not use shared memory" in said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "tile[threadIdx.x][threadIdx.y];",
            "tile[threadIdx.x][threadIdx.y] + 1;",
            "2145 of 2145 elements of to are wrong",
        ),
        ("col < cols) to", "col < cols - 1) to", "33 of 2145 elements of to were never written, first to[64, 0]"),
    ],
)
def test_a_wrong_result_says_how_much_and_where(exercise, old, new, says):
    assert old in GOOD
    said = repr(check(GOOD.replace(old, new), exercise))
    assert f"not yet: rows=33, cols=65: {says}" in said
    assert "bank conflicts" not in said, "claims are looked at once the results are right"


def test_a_source_that_does_not_compile_shows_the_compilers_words(exercise):
    verdict = check(GOOD.replace("__syncthreads();", "__syncthreads()"), exercise)
    said = repr(verdict)
    assert said.startswith("not yet: the kernel compiles: ") and "expected a" in said
    assert len(verdict.checks) == 1


def test_a_renamed_kernel_is_a_verdict_and_no_traceback(exercise):
    said = repr(check(GOOD.replace("void turn(", "void transpose("), exercise))
    assert said.startswith("not yet: the kernel compiles: ") and "turn" in said


def test_an_access_out_of_bounds_is_a_verdict_with_its_line(exercise):
    said = repr(check(GOOD.replace("if (row < rows && col < cols) to", "to"), exercise))
    assert said.startswith("not yet: rows=1, cols=5: ")
    assert "to[col * rows + row]" in said


def test_a_missing_barrier_or_a_changed_signature_is_no_traceback(exercise):
    """A kernel that takes other parameters than it is launched with is refused, never run."""
    for source in (GOOD.replace(", int cols)", ")").replace("cols", "64"), GOOD.replace("int rows", "long long rows")):
        verdict = check(source, exercise)
        assert not verdict and repr(verdict).startswith("not yet: ")


@pytest.mark.parametrize("source", ["", "   \n"])
def test_no_source_is_not_yet(exercise, source):
    assert repr(check(source, exercise)).startswith("not yet: the kernel: there is no source yet")


def test_a_claim_about_an_access_that_is_not_there_does_not_hold(exercise):
    claim = at_most("shared load", 1, "wavefronts")
    from climb.bench.counting import count_kernel

    source, target = np.ones((64, 64), np.float32), np.ones((64, 64), np.float32)
    counted = count_kernel(STRIDED, "turn", (2, 2), (32, 32), [source, target, np.int32(64), np.int32(64)])
    assert claim.test(counted) == Finding(False, "the kernel makes no shared load")
    with pytest.raises(ValueError, match="expected 'sectors' or 'wavefronts'"):
        at_most("global load", 4, "bytes")


def test_the_cell_holds_the_skeleton_and_a_changed_one_is_found(exercise, tmp_path):
    namespace = {}
    exec(cell(exercise), namespace)
    assert namespace["mine"].strip() == exercise.skeleton.strip()
    path = tmp_path / "chapter.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(cell(exercise) + "\ncheck(mine, first)")]), path)
    assert not drifted(path, exercise)
    (tmp_path / "turn.cu").write_text(SKELETON.replace("TODO", "complete"), encoding="utf-8")
    assert drifted(path, exercise)


def test_the_solution_is_shown_from_its_file(exercise):
    assert "__shared__ float tile[32][33];" in repr(solution(exercise))


def test_hints_are_folded_and_keep_code_and_emphasis(exercise):
    from dataclasses import replace

    shown = hints(replace(exercise, hints=("Which `a[i] < b` does lane *l* read?", "Swap them.")))
    assert shown.html.count("<details") == 2 and "open" not in shown.html.split(">")[0]
    assert "<code>a[i] &lt; b</code> does lane <em>l</em> read?" in shown.html
    assert repr(shown).split("\n")[1] == "Hint 2: what to change. Swap them."
    with pytest.raises(ValueError, match="turn has no hints"):
        hints(exercise)
    with pytest.raises(ValueError, match=r"turn has 1 hint\(s\); expected two"):
        replace(exercise, hints=("one",))


def test_an_exercise_needs_a_size(exercise):
    from dataclasses import replace

    with pytest.raises(ValueError, match="turn has no size"):
        replace(exercise, sizes=())


def test_an_exhibit_is_read_from_the_folder_beside_the_exercises(tmp_path):
    (tmp_path / "exhibits").mkdir()
    (tmp_path / "exhibits" / "wrong.cu").write_text("// wrong\n", encoding="utf-8")
    exhibit = exhibit_reader(tmp_path / "exercises" / "__init__.py")
    assert exhibit("wrong") == "// wrong\n"
    with pytest.raises(FileNotFoundError):
        exhibit("right")


# The exercises of the book. Each chapter checks its own when it is executed; here, `make test` takes one of each.


@pytest.mark.parametrize("one", first_of_each(BOOK, lambda one: one.folder), ids=lambda one: one.name)
def test_the_published_solution_solves_the_exercise(one):
    verdict = check(one.solution, one)
    assert verdict.passed, repr(verdict)


@pytest.mark.parametrize("one", first_of_each(BOOK, lambda one: one.folder), ids=lambda one: one.name)
def test_the_published_skeleton_compiles_and_is_not_yet_done(one):
    verdict = check(one.skeleton, one)
    assert not verdict.passed
    assert verdict.checks[0].what != "the kernel compiles", repr(verdict)


@pytest.mark.parametrize("name", MODULES)
def test_the_chapter_holds_the_skeletons_as_they_are_in_their_files(name):
    notebook = ROOT / "book" / f"{name.replace('_', '-')}.ipynb"
    module = importlib.import_module(f"kernels.{name}.exercises")
    assert exercises_in(module), f"kernels/{name}/exercises has no exercise"
    assert [e.name for e in exercises_in(module) if drifted(notebook, e)] == []
