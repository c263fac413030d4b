"""tgemm: infinities, subnormal results, leading dimensions, alpha and beta, and what promotion is for."""

from __future__ import annotations

import numpy as np
import pytest
from tools.thorough import thorough

from climb import cp, load_ladder, verify
from kernels.sgemm.sgemm.product import Product
from kernels.tensor_cores.tgemm.blas import best_rung, tgemm
from kernels.tensor_cores.tgemm.data import KINDS, factors

LADDER = load_ladder("tgemm")
#: One rung of each kernel that multiplies.
MULTIPLY = ("promoted", "held", "small_tiles", "few_rows", "wide_tiles", "shares")
EACH = [rung if rung in ("promoted", "shares") else thorough(rung) for rung in MULTIPLY]
RNG = np.random.default_rng(7)


@pytest.mark.parametrize("rung", EACH)
def test_infinities_and_nans_are_where_ieee_puts_them(rung: str) -> None:
    """An infinity times zero, and infinities of both signs, are NaN; low parts of other numbers must not decide it."""
    size = {"m": 20, "n": 24, "k": 12, "data": "normal"}
    inputs = factors(size, RNG)
    a, b = inputs["A"], inputs["B"]
    a[1, 3], a[2, 5], a[2, 6], a[7, 0] = np.inf, np.inf, -np.inf, np.nan
    b[4, 2], b[8, 9], b[3, 4], b[3, 5] = -np.inf, np.nan, 0, 1  # 1 has no low part: infinity times that is NaN
    a[9, 4], a[12] = 0, 0
    verify(LADDER[rung], size, inputs=inputs)


@pytest.mark.parametrize("rung", EACH)
def test_results_that_are_subnormal_are_rounded_once(rung: str) -> None:
    a, b = np.ldexp(RNG.random((8, 1)) + 0.5, -70), np.ldexp(RNG.random((1, 12)) + 0.5, -71)
    inputs = {"A": a.astype(np.float32), "B": b.astype(np.float32)}
    out = cp.asnumpy(LADDER[rung](*(cp.asarray(inputs[name]) for name in "AB")))
    exact = inputs["A"].astype(np.float64) @ inputs["B"].astype(np.float64)
    assert np.abs(exact).max() < 2.0**-126
    # Half of the last place, and what three products of parts leave out.
    assert np.abs(out - exact).max() < 2.0**-150 * 1.01


@pytest.mark.parametrize("rung", EACH)
@pytest.mark.parametrize("gaps", [thorough((4, 8, 12)), (1, 2, 3)])
def test_rungs_take_leading_dimensions_alpha_and_beta(rung: str, gaps: tuple[int, ...]) -> None:
    m, n, k, alpha, beta = 12, 20, 8, -2.0, 0.5
    shapes = ((m, k), (k, n), (m, n))
    whole = [
        RNG.standard_normal((rows, cols + gap)).astype(np.float32)
        for (rows, cols), gap in zip(shapes, gaps, strict=True)
    ]
    A, B, C = (cp.asarray(each) for each in whole)
    before = whole[2].copy()
    tgemm(A[:, :k], B[:, :n], C[:, :n], alpha=alpha, beta=beta, rung=rung)
    a, b = (each.astype(np.float64) for each in (whole[0][:, :k], whole[1][:, :n]))
    expected = alpha * (a @ b) + beta * before[:, :n]
    found = cp.asnumpy(C)
    tolerance = LADDER.problem.tolerance({"m": m, "n": n, "k": k, "data": "normal"})
    assert np.abs(found[:, :n] - expected).max() < tolerance * np.abs(expected).max()
    assert np.array_equal(found[:, n:], before[:, n:])


@pytest.mark.parametrize("rung", [rung if rung == "promoted" else thorough(rung) for rung in MULTIPLY])
def test_an_infinite_result_is_added_to_c_once_at_the_edges_of_tiles_too(rung: str) -> None:
    """With beta = -1, what is added to an infinity a second time makes a NaN of it."""
    A, B = np.ones((4, 8), np.float32), np.ones((8, 264), np.float32)
    B[3] = np.inf
    C = cp.asarray(np.ones((4, 264), np.float32))
    tgemm(cp.asarray(A), cp.asarray(B), C, beta=-1.0, rung=rung)
    assert (cp.asnumpy(C) == np.inf).all()


def test_beta_of_zero_does_not_read_c() -> None:
    A, B = (cp.asarray(RNG.standard_normal(shape).astype(np.float32)) for shape in ((3, 4), (4, 8)))
    C = cp.asarray(np.full((3, 8), np.nan, np.float32))
    tgemm(A, B, C)
    assert not np.isnan(cp.asnumpy(C)).any()


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_data_is_what_its_name_says(kind: str) -> None:
    size = {"m": 32, "n": 32, "k": 64, "data": kind}
    a, b = (each.astype(np.float64) for each in factors(size, RNG).values())
    magnitude, result = (np.abs(a) @ np.abs(b)).max(), np.abs(a @ b).max()
    assert (np.abs(a).max() < 2.0**-126) == (kind == "subnormal")
    assert (np.ptp(np.log2(np.abs(a).max(axis=1))) > 40) == (kind == "scaled")
    assert (result < magnitude / 500) == (kind == "cancelling")
    assert (a.min() >= 0) == (kind == "uniform")


@pytest.mark.parametrize(
    ("size", "rung"),
    [
        ((32, 4096, 4096), "shares"),
        ((64, 64, 64), "few_rows"),
        ((1024, 1024, 1024), "small_tiles"),
        ((1024, 1024, 4096), "one_launch"),
        ((4096, 4096, 4096), "one_launch"),
    ],
)
def test_the_call_of_blas_chooses_the_rung_by_size(size: tuple[int, int, int], rung: str) -> None:
    assert best_rung(Product.of(dict(zip("mnk", size, strict=True)))) == rung
