"""The stencils' reference against one written out by hand, their constant weights, and the sizes that they refuse."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.thorough import choose, sparse

from climb import ArgumentError, load_ladder
from climb.bench.references import correlate
from kernels.tiling.stencil1d import weights as weights_1d
from kernels.tiling.stencil2d import weights as weights_2d

LADDERS = {name: load_ladder(name) for name in ("stencil1d", "stencil2d")}
RUNGS = [rung for ladder in LADDERS.values() for rung in ladder]
each_rung = pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: f"{rung.ladder.name}-{rung.name}")


def by_hand(source: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sum over neighbours, element by element, with a test for each edge."""
    target = np.zeros(source.shape)
    middle = [extent // 2 for extent in weights.shape]
    for at in np.ndindex(source.shape):
        for tap in np.ndindex(weights.shape):
            there = tuple(i + d - m for i, d, m in zip(at, tap, middle, strict=True))
            if all(0 <= i < extent for i, extent in zip(there, source.shape, strict=True)):
                target[at] += float(weights[tap]) * float(source[there])
    return target


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    shape=st.one_of(st.tuples(st.integers(0, 40)), st.tuples(st.integers(0, 9), st.integers(0, 12))),
    data=st.data(),
)
def test_reference_equals_the_sum_written_out(shape: tuple[int, ...], data: st.DataObject) -> None:
    reach = [data.draw(st.integers(0, 4)) for _ in shape]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    source = rng.standard_normal(shape, dtype=np.float32)
    weights = rng.standard_normal([2 * r + 1 for r in reach], dtype=np.float32)  # lopsided: a mirrored sum would differ
    assert np.allclose(correlate(source, weights), by_hand(source, weights), rtol=1e-12, atol=1e-12)


def test_reference_does_not_depend_on_its_band_size(monkeypatch) -> None:
    source = np.random.default_rng(3).random((37, 11), dtype=np.float32)
    whole = correlate(source, weights_2d(3))
    monkeypatch.setattr("climb.bench.references.BAND", 25)
    assert np.array_equal(correlate(source, weights_2d(3)), whole)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (3, 3, 3)])
def test_weights_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected as many, and odd extents"):
        correlate(np.zeros((4, 4), np.float32), np.zeros(shape, np.float32))


def test_the_weights_are_one_over_one_plus_the_distance_squared() -> None:
    assert weights_1d(2).tolist() == [np.float32(1 / 5), 0.5, 1.0, 0.5, np.float32(1 / 5)]
    assert weights_2d(1).tolist() == [[np.float32(1 / 3), 0.5, np.float32(1 / 3)], [0.5, 1.0, 0.5],
                                      [np.float32(1 / 3), 0.5, np.float32(1 / 3)]]  # fmt: skip


@pytest.mark.parametrize("rung", sparse(RUNGS), ids=lambda rung: f"{rung.ladder.name}-{rung.name}")
def test_the_weights_are_constants_at_every_radius(rung) -> None:
    """A loop that the compiler does not unroll would divide in the kernel."""
    largest = 64 if rung.ladder.name == "stencil1d" else 8
    extents = [{"n": 4096}] if rung.ladder.name == "stencil1d" else [{"rows": 64, "cols": cols} for cols in (64, 63)]
    for extent in extents:
        for radius in (largest, 1, largest // 2)[: choose(1, thorough=3)] if extent is extents[0] else (largest,):
            size = {**extent, "radius": radius}
            found = set(re.findall(r"\b(fma|div|rcp|call)[.\s]", rung.compiled(size, whole=False).ptx))
            assert found == {"fma"}, size


@each_rung
@pytest.mark.parametrize("key", ["radius", "n", "rows", "cols"])
def test_size_above_the_kernels_maximum_is_refused_by_name(rung, key: str) -> None:
    size = dict(rung.ladder.problem.headline[0])
    if key not in size:
        pytest.skip("a size key of the other stencil")
    size[key] = 1 << 31
    with pytest.raises(ArgumentError, match=f"{key} may be at most"):
        rung.launches(size)


@each_rung
def test_a_radius_must_be_given_and_be_at_least_one(rung) -> None:
    from climb import cp

    source = cp.zeros((4,) * len(rung.ladder.problem.inputs[0].shape), dtype="float32")
    with pytest.raises(ArgumentError, match="parameter 'radius' is missing"):
        rung(source)
    with pytest.raises(ArgumentError, match="parameter 'radius' is 0; expected a whole number of at least 1"):
        rung(source, radius=0)
