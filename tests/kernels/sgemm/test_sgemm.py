"""sgemm: leading dimensions, alpha and beta; how work is shared out; what the search found; the exercises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.thorough import choose as choose_examples
from tools.thorough import thorough

from climb import ArgumentError, count_kernel, counters, cp, emulator, load_ladder
from climb.bench.exercise import check, drifted
from kernels.sgemm.exercises import BETA, beta, fewest_parts, full, judge, lanes, rounds
from kernels.sgemm.sgemm import rungs
from kernels.sgemm.sgemm.blas import sgemm
from kernels.sgemm.sgemm.product import Product
from kernels.sgemm.sgemm.rungs import BEST, SHORTEST, SKINNY, SMS, SQUARER, choose, share
from kernels.sgemm.sgemm.search import CANDIDATES, SIZES, searched

CHAPTER = Path(__file__).resolve().parents[3] / "book" / "sgemm.ipynb"
LADDER = load_ladder("sgemm")
RNG = np.random.default_rng(5)


def view(values: np.ndarray, pitch: int, offset: int):
    """A copy on the device whose rows are ``pitch`` floats apart, the first ``offset`` floats after the allocation."""
    rows, cols = values.shape
    whole = cp.asarray(np.full(offset + rows * pitch + cols, np.nan, np.float32))
    part = whole[offset : offset + rows * pitch].reshape(rows, pitch)[:, :cols]
    part[...] = cp.asarray(values)
    return part, whole


def product_of_views(rung: str, m: int, n: int, k: int, gaps, offset: int, alpha: float, beta: float) -> None:
    a, b, c = (RNG.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
    (A, _), (B, _) = (view(x, x.shape[1] + gap, offset) for x, gap in zip((a, b), gaps, strict=False))
    C, whole = view(c if beta else np.full_like(c, np.nan), n + gaps[2], offset)
    before = cp.asnumpy(whole)
    with emulator.checking(emulator.ALL_CHECKS):
        sgemm(A, B, C, alpha=alpha, beta=beta, rung=rung)
    expected = alpha * (a.astype(np.float64) @ b) + (beta * c.astype(np.float64) if beta else 0)
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    assert not (np.abs(cp.asnumpy(C) - expected) > 4e-6 * scale).any()
    assert not np.isnan(cp.asnumpy(C)).any()
    after = cp.asnumpy(whole)
    inside = np.zeros(after.size, np.bool_)
    for row in range(m):
        start = offset + row * (n + gaps[2])
        inside[start : start + n] = True
    assert np.array_equal(after[~inside], before[~inside], equal_nan=True)  # nothing between the rows is touched


EDGE = st.one_of(st.integers(1, 40), st.sampled_from((64, 127, 128, 129)))


@settings(
    max_examples=choose_examples(1, thorough=12),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    m=EDGE, n=EDGE, k=st.one_of(EDGE, st.just(300)), gaps=st.tuples(*[st.integers(0, 9)] * 3),
    offset=st.sampled_from((0, 1, 4)), alpha=st.sampled_from((1.0, -0.5, 0.0)), beta=st.sampled_from((0.0, 1.0, 0.25)),
)  # fmt: skip
def test_products_with_any_leading_dimensions_alpha_and_beta_are_right(m, n, k, gaps, offset, alpha, beta) -> None:
    product_of_views("stream_k", m, n, k, gaps, offset, alpha, beta)


@pytest.mark.parametrize("rung", [*(thorough(name) for name in LADDER.names[:-1]), LADDER.names[-1]])
@pytest.mark.parametrize("gaps", [thorough((4, 8, 12)), (1, 2, 3)])
def test_every_rung_takes_leading_dimensions_alpha_and_beta(rung: str, gaps) -> None:
    product_of_views(rung, 36, 44, 20, gaps, 4, 2.0, 0.5)


@pytest.mark.thorough
def test_rows_that_start_at_16_bytes_are_read_by_quads() -> None:
    """The leading dimension decides, not the width: 20 floats of a row of 24 are quads, of a row of 23 are not."""
    assert Product.of({"m": 8, "n": 20, "k": 20}).width == 4
    product_of_views("tuned", 24, 20, 16, (4, 4, 4), 0, 1.0, 0.0)
    product_of_views("tuned", 24, 20, 16, (3, 4, 4), 0, 1.0, 0.0)


def test_k_of_zero_scales_c_and_an_empty_c_is_left_alone() -> None:
    product_of_views("stream_k", 5, 7, 0, (0, 0, 0), 0, 3.0, 0.5)
    sgemm(cp.empty((0, 4), np.float32), cp.empty((4, 3), np.float32), cp.empty((0, 3), np.float32))


def arrays(m=4, n=6, k=5):
    return [cp.asarray(np.ones(shape, np.float32)) for shape in ((m, k), (k, n), (m, n))]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda a, b, c: (cp.asnumpy(a), b, c), "'A' is a numpy.ndarray"),
        (lambda a, b, c: (a.astype(np.float64), b, c), "'A' is float64"),
        (lambda a, b, c: (a.reshape(-1), b, c), "'A' has 1 dimension"),
        (lambda a, b, c: (a, b[:4], c), r"'B' has shape \(4, 6\); expected \(5, 6\)"),
        (lambda a, b, c: (a, b, c[:, :5]), r"'C' has shape \(4, 5\)"),
        (lambda a, b, c: (cp.asarray(np.ones((5, 4), np.float32)).T, b, c), "'A' has strides .* adjoining"),
        (lambda a, b, c: (a, b, b[:4]), "'C' overlaps argument 'B'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(spoil, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        sgemm(*spoil(*arrays()))


@pytest.mark.parametrize("tile", CANDIDATES[::13], ids=str)
@pytest.mark.parametrize("size", LADDER.problem.recorded, ids=str)
def test_every_slice_is_worked_on_once_and_no_portion_is_longer_than_a_tile(tile, size) -> None:
    product = Product.of(size)
    slices, shares = -(-product.k // tile.depth), share(product, tile)
    assert shares.whole + shares.rest == tile.count(product)
    if shares.rest:
        assert shares.whole % (SMS * tile.blocks) == 0 and SHORTEST <= shares.portion < slices
        assert 0 < shares.workers <= SMS * tile.blocks
        covered = sum(min(shares.portion, shares.rest * slices - w * shares.portion) for w in range(shares.workers))
        assert covered == shares.rest * slices


def test_only_products_that_leave_a_partial_wave_are_cut() -> None:
    tile = choose(Product.of({"m": 4096, "n": 4096, "k": 4096}))
    assert share(Product.of({"m": 2048, "n": 2048, "k": 2048}), tile).rest == 0
    assert share(Product.of({"m": 1024, "n": 1024, "k": 1024}), tile).whole == 0
    assert share(Product.of({"m": 4096, "n": 4096, "k": 4096}), tile).rest == 512 - 3 * SMS


@pytest.mark.thorough
def test_product_of_whole_tiles_and_portions_is_right(monkeypatch) -> None:
    """On a GPU of two SMs three tiles are two whole ones and one that is cut in two."""
    monkeypatch.setattr(rungs, "SMS", 2)
    m, n, k = 132, 260, 272
    product = Product.of({"m": m, "n": n, "k": k})
    shares = share(product, choose(product))
    assert (shares.whole, shares.rest, shares.workers) == (2, 1, 2)
    product_of_views("stream_k", m, n, k, (4, 4, 4), 4, 2.0, 0.5)


@pytest.mark.parametrize(
    ("m", "n", "tile"), [(4096, 4096, BEST), (16384, 768, SQUARER), (512, 11008, SQUARER), (32, 4096, SKINNY)]
)
def test_chosen_tile_covers_c_with_the_fewest_blocks(m: int, n: int, tile) -> None:
    product = Product.of({"m": m, "n": n, "k": 64})
    assert choose(product) == tile
    if tile != SKINNY:
        assert tile.count(product) == min(BEST.count(product), SQUARER.count(product))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_tile_that_is_chosen_is_near_the_best_that_was_found(size) -> None:
    found = searched().at(dict(size))
    chosen = next(t for t in found if t["tile"] == str(choose(Product.of(size))))
    assert chosen["seconds"] < 1.05 * found[0]["seconds"]
    assert len(found) > 20 and all(trial["error"] <= LADDER.problem.tolerance(size) for trial in found)


@pytest.mark.parametrize("exercise", [lanes, rounds], ids=lambda one: one.name)
def test_the_solution_passes_and_the_skeleton_does_not(exercise) -> None:
    assert check(exercise.solution, exercise).passed
    assert not check(exercise.skeleton, exercise).passed


@pytest.mark.parametrize("exercise", [lanes, rounds], ids=lambda one: one.name)
def test_the_cell_of_an_exercise_is_its_skeleton(exercise) -> None:
    assert not drifted(CHAPTER, exercise)


def test_two_tiles_without_a_barrier_race() -> None:
    source = rounds.solution.replace("__syncthreads();", "")
    assert source != rounds.solution and "race" in repr(check(source, rounds))


def test_right_and_wrong_paper_answers_are_told_apart() -> None:
    assert judge(fewest_parts).passed and not judge(lambda *case: 1).passed
    assert full(1024, 1024, 128, 256, 4) == pytest.approx(128 / 132)


def test_exhibit_reads_c_although_beta_is_zero() -> None:
    a, c = np.ones((2, 2), np.float32), np.full((2, 2), np.nan, np.float32)
    two, one, zero = np.int32(2), np.float32(1), np.float32(0)
    count_kernel(BETA, "sgemm", (1, 1), (2, 2), [two, two, two, one, a, a, zero, c])
    assert np.isnan(c).all()
    with pytest.raises(emulator.Uninitialised, match="of C in global memory"):
        counters(beta, {"m": 8, "n": 8, "k": 8})
