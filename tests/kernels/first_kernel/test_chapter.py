"""The chapter ``book/first-kernel.ipynb``: its exercises, and what its text says of its kernel."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

from climb import check, count_kernel, poisoned
from climb.bench.exercise import drifted
from climb.emulator import OutOfBounds
from kernels.first_kernel.exercises import add_row, differences

CHAPTER = Path(__file__).resolve().parents[3] / "book" / "first-kernel.ipynb"


def kernel() -> str:
    """The kernel of the chapter, from the cell that holds it."""
    cells = nbformat.read(CHAPTER, as_version=4).cells
    cell = next(cell for cell in cells if cell.cell_type == "code" and "void saxpy(" in cell.source)
    return cell.source.split('"""')[1]


def run(source: str, blocks: int, threads: int = 256, n: int = 1000) -> np.ndarray:
    x, z = np.arange(n, dtype=np.float32), poisoned((n,), "float32")
    count_kernel(source, "saxpy", (blocks,), (threads,), [np.float32(2), x, np.ones_like(x), z, np.int32(n)])
    return z


def edited(old: str, new: str) -> str:
    assert kernel().count(old) == 1
    return kernel().replace(old, new)


@pytest.mark.parametrize("exercise", [differences, add_row], ids=lambda one: one.name)
def test_cell_of_an_exercise_is_its_skeleton(exercise):
    assert not drifted(CHAPTER, exercise)


@pytest.mark.parametrize("threads", [32, 33, 128, 256, 1000])
def test_kernel_is_right_with_any_block_size(threads):
    assert np.array_equal(run(kernel(), -(-1000 // threads), threads), 2 * np.arange(1000) + 1)


def test_four_of_the_seven_kernels_in_the_box_are_right():
    cells = nbformat.read(CHAPTER, as_version=4).cells
    shown = next(cell for cell in cells if cell["id"] == "break").outputs[0].data["text/plain"]
    assert (len(re.findall(r"(?m)^saxpy, ", shown)), len(re.findall(r"(?m)^  Right", shown))) == (7, 4)


def test_without_guard_24_threads_read_past_the_end():
    with pytest.raises(OutOfBounds, match=r"block \(3,0,0\) thread \(232,0,0\), the first of 24 threads"):
        run(edited("if (i < n) {", "{"), 4)


def test_guard_with_less_or_equal_lets_one_thread_past_the_end():
    with pytest.raises(OutOfBounds, match=r"block \(3,0,0\) thread \(232,0,0\)\n"):
        run(edited("i < n", "i <= n"), 4)


def test_without_the_block_index_only_the_first_256_elements_are_written():
    z = run(edited("blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x"), 4)
    assert np.array_equal(z[:256], 2 * np.arange(256) + 1) and np.isnan(z[256:]).all()


def test_skeleton_of_differences_is_stopped_past_the_end():
    wrong = [c.wrong for c in check(differences.skeleton, differences).checks if c.wrong]
    assert len(wrong) == 1 and "out of bounds" in wrong[0]
    assert check(differences.solution, differences).passed


def test_skeleton_of_add_row_passes_where_one_block_is_enough_and_fails_beyond():
    checks = check(add_row.skeleton, add_row).checks
    assert checks[0].wrong is None and "out of bounds" in str(checks[1].wrong)
    assert check(add_row.solution, add_row).passed


def test_add_row_without_the_guard_for_rows_does_not_pass():
    assert not check(add_row.solution.replace(" && r < rows", ""), add_row).passed
