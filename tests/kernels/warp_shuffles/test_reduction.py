"""The reductions on values chosen to catch them: exact sums, ties, signs, NaN and infinity, cancellation, nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from climb import ArgumentError, BoundRung, cp, load_ladder, verify

LADDERS = {name: load_ladder(name) for name in ("reduction", "reduction_max", "argmax", "accurate_sum")}
NAN, INF = math.nan, math.inf


def rungs(*names: str) -> list:
    return [pytest.param(rung, id=f"{name}-{rung.name}") for name in names for rung in LADDERS[name]]


def run(rung: BoundRung, values) -> float:
    return cp.asnumpy(rung(cp.asarray(np.asarray(values, dtype=np.float32))))[0]


@pytest.mark.parametrize("rung", rungs("reduction", "accurate_sum"))
@pytest.mark.parametrize("n", [1, 31, 257, 1000, 32768, 70001])
def test_whole_numbers_add_up_exactly_in_any_order(rung: BoundRung, n: int) -> None:
    """Every partial sum is below 2^24, so no addition rounds, and one float left out or added twice shows."""
    values = np.random.default_rng(n).integers(-90, 100, n)
    assert run(rung, values) == values.sum()


@pytest.mark.parametrize("rung", rungs("reduction", "accurate_sum"))
def test_sum_of_an_empty_array_is_zero(rung: BoundRung) -> None:
    assert run(rung, []) == 0.0


@pytest.mark.parametrize("rung", rungs("reduction_max", "argmax"))
def test_maximum_of_an_empty_array_is_refused_by_name(rung: BoundRung) -> None:
    with pytest.raises(ArgumentError, match="argument 'source' is empty"):
        run(rung, [])


@pytest.mark.parametrize("rung", rungs("reduction"))
def test_repeated_sums_have_the_same_bits(rung: BoundRung) -> None:
    """A second launch finds tickets, totals and workspace as the first one left them."""
    source = cp.asarray(LADDERS["reduction"].inputs({"n": 70001})["source"])
    first, second = (cp.asnumpy(rung(source)) for _ in range(2))
    assert np.array_equal(first.view(np.uint32), second.view(np.uint32))


@pytest.mark.parametrize("rung", rungs("reduction", "accurate_sum"))
@pytest.mark.parametrize(("special", "total"), [([INF], INF), ([-INF, 1], -INF), ([INF, -INF], NAN), ([NAN, INF], NAN)])
def test_sum_passes_infinities_and_nan_on(rung: BoundRung, special: list[float], total: float) -> None:
    values = np.ones(40000, dtype=np.float32)
    values[[77, 35000][: len(special)]] = special
    assert np.array_equal(run(rung, values), total, equal_nan=True)


#: Values whose largest, or whose first largest, is easily missed.
ORDERED = {
    "all negative": [-3.0, -2.0, -2.5],
    "all minus infinity": [-INF, -INF],
    "infinity": [1.0, INF, 3.0e38],
    "NaN above infinity": [INF, NAN, 1.0, NAN],
    "a NaN with a sign": [1.0, -NAN, 2.0],
    "subnormals": [1e-45, 3e-45, 0.0],
    "negative subnormals": [-1e-45, -3e-45],
    "the two zeros": [-1.0, -0.0, 0.0, -0.0],
    "ties": [7.0, 7.0, 7.0],
    "the last": [0.0] * 40000 + [1.0],
    "a tie across blocks": [0.0] * 33000 + [5.0] + [1.0] * 40000 + [5.0],
    "a tie within a thread": [0.0] * 4096 + [5.0, 5.0] + [5.0] * 4096,
}


@pytest.mark.parametrize("rung", rungs("reduction_max", "argmax"))
@pytest.mark.parametrize("case", ORDERED)
def test_maximum_equals_numpys(rung: BoundRung, case: str) -> None:
    values = np.array(ORDERED[case], dtype=np.float32)
    reference = {"reduction_max": np.max, "argmax": np.argmax}[rung.ladder.name]
    assert np.array_equal(run(rung, values), reference(values), equal_nan=True)
    padded = np.full(33000, -INF, dtype=np.float32)  # the same in a block that is full, and not at its start
    padded[20000 : 20000 + min(values.size, 3)] = values[:3]
    assert np.array_equal(run(rung, padded), reference(padded), equal_nan=True)


@pytest.mark.parametrize("rung", rungs("argmax"))
def test_argmax_refuses_positions_beyond_32_bits(rung: BoundRung) -> None:
    with pytest.raises(ArgumentError, match="n may be at most 4294967296"):
        rung.launches({"n": (1 << 32) + 1})


@pytest.mark.parametrize("rung", rungs("accurate_sum"))
def test_accurate_sum_keeps_what_a_float_sum_loses(rung: BoundRung) -> None:
    """A large value comes and goes; float additions would lose most of the small ones between."""
    rng = np.random.default_rng(3)
    values = rng.random(50000, dtype=np.float32)
    values[100], values[49000] = 3e9, -3e9
    exact = math.fsum(values.astype(np.float64))
    assert run(rung, values) == pytest.approx(exact, rel=1e-9)
    assert run(LADDERS["reduction"]["vectorised"], values) != pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("rung", rungs("accurate_sum"))
def test_accurate_sums_tolerance_finds_one_missing_float(rung: BoundRung) -> None:
    size = {"n": 1 << 28}
    assert LADDERS["accurate_sum"].problem.tolerance(size) < 0.5 / size["n"] / 1000
    verify(rung, {"n": 100001})
