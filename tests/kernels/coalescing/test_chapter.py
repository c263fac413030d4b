"""The chapter on coalescing: its exercises tell right from wrong, and its exhibits fail in the way that it says."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

from climb import check, count_kernel, counters, hardware_counters, load_ladder, pick, trace, verify
from climb.bench import profiling
from climb.bench.problem import size_label
from climb.toolchain import CompileError
from kernels.coalescing.exercises import HERE, exhibit, fields, rows, shifted

CHAPTER = Path(__file__).resolve().parents[3] / "book" / "coalescing.ipynb"


def test_the_old_layout_is_wrong_and_not_merely_slow() -> None:
    assert "elements of squared are wrong" in repr(check(fields.skeleton, fields))


def test_the_row_sums_are_right_and_merely_slow() -> None:
    verdict = check(rows.skeleton, rows)
    assert [c.wrong is None for c in verdict.checks] == [True] * len(rows.sizes) + [False]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("points[n + i]", "points[n + i + 1]"), "squared"),
        (("i < n", "i < n - 1"), "never written"),
        (("points[2 * n + i]", "points[3 * n + i]"), "out of bounds"),
        (("squared[i] = x * x", "squared[i ^ 1] = x * x"), "out of bounds"),
    ],
)
def test_planted_mistake_in_the_fields_is_found(change: tuple[str, str], says: str) -> None:
    assert change[0] in fields.solution
    assert says in repr(check(fields.solution.replace(*change), fields))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("32 * j + lane", "32 * j + lane + 1"), "sums are wrong"),
        (("32 * j + lane", "32 * lane + j"), "sums are wrong"),
    ],
)
def test_planted_mistake_in_the_rows_is_found(change: tuple[str, str], says: str) -> None:
    assert change[0] in rows.solution
    assert says in repr(check(rows.solution.replace(*change), rows))


@pytest.mark.parametrize("size", shifted.problem.check, ids=size_label)
def test_the_shifted_copy_is_right(size: dict[str, int]) -> None:
    verify(shifted["shifted"], size)


@pytest.mark.parametrize("offset", range(10))
def test_offset_of_one_float_costs_one_sector_a_request(offset: int) -> None:
    loads = counters(shifted["shifted"], {"n": 1024, "offset": offset}).total("global load")
    assert loads.sectors_per_request == (4 if offset % 8 == 0 else 5)


def test_the_shifted_copy_is_what_the_hardware_counted() -> None:
    known = hardware_counters(shifted)
    for rung, size in profiling.cases(shifted):
        counted = counters(rung, {**size, "n": 1024}).total("global load")
        hardware = known.at(rung.name, size)
        assert hardware["load_sectors"] * counted.requests == counted.sectors * hardware["load_requests"]


def test_compile_error_names_the_undeclared_variables() -> None:
    with pytest.raises(CompileError) as caught:
        count_kernel(exhibit("undeclared"), "first_product", (1,), (256,), [])
    assert {m[1] for m in re.finditer(r'identifier "(\w+)" is undefined', str(caught.value))} == {"Tile", "K"}
    mended = exhibit("undeclared").replace("Tile[", "tile[").replace("row * K", "row")
    arrays = [np.ones(64, np.float32) for _ in range(3)]
    count_kernel(mended, "first_product", (1,), (8,), [np.int32(8), np.int32(8), *arrays])


def _swapped(m: int, n: int, k: int, grid: tuple[int, int]) -> np.ndarray:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 9, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    count_kernel(exhibit("swapped"), "product", grid, (32, 32), [a, b, c, *map(np.int32, (m, n, k))])
    return c - a @ b


def test_swapping_the_grid_is_right_for_squares_only() -> None:
    assert not _swapped(96, 96, 8, (3, 3)).any()
    assert not _swapped(96, 64, 8, (2, 3)).any()
    with pytest.raises(Exception, match=r"out of bounds: read of 4 bytes.*argument 1"):
        _swapped(96, 64, 8, (3, 2))


@pytest.mark.parametrize("stride", [2, 4])
def test_halved_exhibit_writes_only_part_of_its_output(stride: int) -> None:
    n = 1 << 12
    out = np.full(n, np.nan, np.float32)
    arguments = [np.ones(n, np.float32), out, np.int32(n), np.int32(stride)]
    counted = count_kernel(exhibit("halved"), "increment_strided", (n // 256,), (256,), arguments)
    assert np.isfinite(out).sum() == n // stride
    assert counted.total("global load").requests == n // stride // 32


def test_the_answers_on_paper_are_what_the_emulator_counts() -> None:
    """The solution's list, read from the chapter, against the chapter's own probe."""
    cells = {c.id: c.source for c in nbformat.read(CHAPTER, as_version=4).cells}
    answers = dict(re.findall(r"^- `(.+?)`: \*\*(\d+)\*\*", cells["ex-paper-end"], re.MULTILINE))
    asked = re.findall(r'^    "(.+?)": None', cells["ex-paper-code"], re.MULTILINE)
    assert list(answers) == asked
    probe = re.search(r'probe = r"""(.*?)"""', cells["probe"], re.DOTALL)[1]
    for index, said in answers.items():
        arrays = [np.zeros(1 << 16, np.float32), np.zeros(32, np.float32)]
        counted = count_kernel(probe, "probe", (1,), (32,), arrays, options=(f"-DINDEX={index}",))
        assert counted.total("global load").sectors == int(said), index


@pytest.mark.parametrize("k", [64, 65, 72, 80])
def test_naive_load_of_rows_of_k_floats_conflicts_in_gcd_of_k_and_32_ways(k: int) -> None:
    """Rows of k floats: the 32 words of A lie in 32 / gcd(k, 32) banks, as the chapter's table predicts."""
    load = pick(trace(load_ladder("matmul")["naive"], {"m": 32, "n": 32, "k": k}), "global load", of="A")
    words = [int(address) // 4 for address in load.addresses]
    assert max(sum(word % 32 == bank for word in words) for bank in range(32)) == np.gcd(k, 32)


def test_every_file_of_the_chapter_is_used() -> None:
    used = {f"{e.name}{end}" for e in (fields, rows) for end in (".cu", "_solution.cu")}
    assert {path.name for path in HERE.glob("*.cu")} == used
    shown = {"shifted.cu", *(f"{name}.cu" for name in ("undeclared", "halved", "swapped"))}
    assert {path.name for path in (HERE.parent / "exhibits").glob("*.cu")} == shown
