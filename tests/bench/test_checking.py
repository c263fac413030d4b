"""Every way in which an output can be wrong is planted here, and the check reports it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tiny_ladder import scale

from climb.bench import checking
from climb.bench.arguments import ArgumentError
from climb.bench.checking import WrongResult, compare, component_error, poisoned, verify
from climb.bench.references import sum_of_magnitudes

SIZE = {"n": 1000}
INF, NAN = np.inf, np.nan


def f32(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


@pytest.mark.parametrize("size", [{"n": 1}, {"n": 64}, {"n": 1000}])
@pytest.mark.parametrize("name", scale.ladder.names)
def test_right_rungs_verify(name, size):
    if scale.ladder[name].rung.requires(size) is None:
        found = verify(scale.ladder[name], size)
        assert found.name == name and found.size == size
        assert 0 <= found.max_rel_error <= found.tolerance == 1e-6


def test_a_rung_of_less_precision_is_held_to_its_own_tolerance():
    strict = dataclasses.replace(scale.problem, tolerance=lambda size: 1e-12)
    with pytest.raises(WrongResult):
        verify(dataclasses.replace(scale.ladder, problem=strict)["plain"], SIZE)
    lax = dataclasses.replace(scale.plain, tolerance=lambda size: 1e-6 * size["n"])
    found = verify(dataclasses.replace(scale.ladder, problem=strict, rungs=(lax,))["plain"], SIZE)
    assert found.tolerance == 1e-3 and 1e-12 < found.max_rel_error < 1e-6


def test_componentwise_error_is_relative_to_the_terms_of_each_element():
    # 1e-3 off where terms of 1 make the element is worse than 1e-1 off where terms of 1000 do.
    reference, magnitude = np.array([0.0, 500.0, -2.0]), np.array([1.0, 1000.0, 4.0])
    assert component_error(reference + np.array([1e-3, 0, 0]), reference, magnitude) == pytest.approx(1e-3)
    assert component_error(reference + np.array([1e-3, 0.1, 0.02]), reference, magnitude) == pytest.approx(5e-3)
    assert component_error(reference, reference, magnitude) == 0.0
    assert component_error(reference + np.array([1e-30, 0, 0]), reference, np.array([0.0, 1, 1])) == INF
    # Values that are not finite are the normwise check's business.
    assert component_error(np.array([NAN, INF, 1.0]), np.array([NAN, 1.0, 1.0]), np.ones(3)) == 0.0
    long = np.zeros(2 * checking.CHUNK + 1)
    long[-1] = 3.0
    assert component_error(long, np.zeros_like(long), np.full_like(long, 2.0)) == 1.5


def test_a_problem_with_magnitudes_is_verified_componentwise_on_demand(monkeypatch):
    asked = []

    def magnitude(inputs, size):
        asked.append(size)
        return {"y": 2.0 * np.abs(inputs["x"].astype(np.float64)) + 1.0}

    problem = dataclasses.replace(scale.problem, reference_magnitude=magnitude)
    ladder = dataclasses.replace(scale.ladder, problem=problem)
    case = checking.Case.make(ladder, SIZE)
    arrays = case.arrays()
    launch = ladder["plain"].prepare(arrays, SIZE)
    assert checking.run_and_check(case, ladder["plain"], arrays, launch).max_component_error is None and not asked
    found = checking.run_and_check(case, ladder["plain"], arrays, launch, componentwise=True)
    assert 0 < found.max_component_error < 2**-23
    checking.run_and_check(case, ladder["plain"], arrays, launch, componentwise=True)
    assert len(asked) == 1, "the magnitudes of a case are computed once"


def test_magnitudes_of_sums_of_products_are_the_reference_of_absolute_values():
    def product(inputs, size):
        return {"C": inputs["A"] @ inputs["B"]}

    given = {"A": np.array([[1.0, -2.0]]), "B": np.array([[-3.0], [4.0]])}
    assert sum_of_magnitudes(product)(given, {})["C"] == 11.0


def test_an_unsupported_size_is_refused():
    with pytest.raises(ArgumentError, match="n = 1001 is no multiple of 4"):
        verify(scale.ladder["vector"], {"n": 1001})


def test_element_that_was_never_written_is_named():
    with pytest.raises(WrongResult) as caught:
        verify(scale.faulty["last_missing"], SIZE)
    message = str(caught.value)
    assert "scale 'last_missing' at n=1000: output 'y' is wrong in 1 of 1000 elements" in message
    assert "first at y[999]: got nan" in message
    assert "1 of them were never written, first y[999]" in message


def test_wrong_element_is_named_with_both_values():
    with pytest.raises(WrongResult) as caught:
        verify(scale.faulty["one_wrong"], SIZE)
    expected = 2.0 * float(scale.ladder.inputs(SIZE)["x"][5]) + 1.0
    assert "is wrong in 1 of 1000 elements (error" in str(caught.value)
    assert f"first at y[5]: got 1000.0, expected {expected!s}" in str(caught.value)
    assert "never written" not in str(caught.value)


def test_nan_inputs_must_give_nan_outputs():
    x = scale.ladder.inputs(SIZE)["x"]
    x[[0, 7, 999]] = NAN
    assert verify(scale.ladder["plain"], SIZE, inputs={"x": x}).max_rel_error <= 1e-6
    with pytest.raises(WrongResult, match=r"wrong in 3 of 1000 elements .* first at y\[0\]: got 1.0, expected nan"):
        verify(scale.faulty["swallows_nan"], SIZE, inputs={"x": x})


def test_large_inputs_overflow_to_infinity_and_agree():
    x = scale.ladder.inputs(SIZE)["x"]
    x[:3] = 3e38, -3e38, INF
    assert verify(scale.ladder["plain"], SIZE, inputs={"x": x}).max_rel_error <= 1e-6


def test_peers_are_checked_with_their_ladder():
    assert verify(scale.library, SIZE, ladder=scale.ladder).name == "library"
    with pytest.raises(TypeError, match="ladder="):
        verify(scale.library, SIZE)


@pytest.mark.parametrize(
    ("out", "reference", "wrong"),
    [
        (f32(1, 2, NAN), np.array([1.0, 2.0, 3.0]), 1),
        (f32(1, 2, 3), np.array([1.0, 2.0, NAN]), 1),
        (f32(1, NAN, 3), np.array([1.0, 2.0, NAN]), 2),
        (f32(NAN, 2), np.array([NAN, 2.0]), 0),
        (f32(INF, 2), np.array([1e39, 2.0]), 0),
        (f32(-INF, 2), np.array([1e39, 2.0]), 1),
        (f32(INF, 2), np.array([1.0, 2.0]), 1),
        (f32(1, 2), np.array([INF, 2.0]), 1),
        (f32(INF, 2), np.array([INF, 2.0]), 0),
        (f32(INF, 2), np.array([-INF, 2.0]), 1),
        (f32(0, 0), np.array([0.0, 0.0]), 0),
        (f32(1e-30, 0), np.array([0.0, 0.0]), 1),
        (f32(-0.0, 1), np.array([0.0, 1.0]), 0),
    ],
)
def test_nan_infinity_and_zero_are_compared_exactly(out, reference, wrong):
    assert compare(out, reference, 1e-3).wrong == wrong


def test_the_error_is_relative_to_the_largest_reference_value():
    found = compare(f32(100, 1.5), np.array([-100.0, 1.0]) * [-1, 1], 1e-2)
    assert found.error == pytest.approx(0.005) and found.wrong == 0
    assert compare(f32(100, 1.5), np.array([100.0, 1.0]), 4e-3).wrong == 1


def test_an_infinite_reference_hides_no_error():
    found = compare(f32(INF, 1.5), np.array([INF, 1.0]), 1e-3)
    assert found.wrong == 1 and found.first_wrong == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_integers_are_compared_exactly(dtype):
    limits = np.iinfo(dtype)
    reference = np.array([limits.min, limits.max, 3], dtype=dtype)
    assert compare(reference.copy(), reference, 0.0).wrong == 0
    off = reference.copy()
    off[1] -= 1
    found = compare(off, reference, 0.0)
    assert found.wrong == 1 and found.first_wrong == 1 and found.error > 0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8", "int64"])
def test_poison_left_in_an_output_is_wrong_and_unwritten(dtype):
    out = poisoned((3, 5), dtype)
    assert out.dtype == dtype
    if out.dtype.kind == "f":
        assert np.isnan(out).all()
    reference = np.ones((3, 5), dtype=dtype)
    found = compare(out, reference, 0.5)
    assert found.wrong == found.unwritten == 15 and found.first_unwritten == 0


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("float16", 0x7E5A), ("float32", 0x7FE5A5A5), ("float64", 0x7FFCA5A5A5A5A5A5), ("int32", 0xA5A5A5A5)],
)
def test_poison_has_bits_that_can_be_told_in_a_dump(dtype, bits):
    out = poisoned((2,), dtype)
    assert [int(word) for word in out.view(f"u{out.itemsize}")] == [bits, bits]


def test_computed_nan_is_not_reported_as_unwritten():
    found = compare(f32(1, NAN), np.array([1.0, 2.0]), 1e-3)
    assert found.wrong == 1 and found.unwritten == 0


def test_counts_of_all_chunks_are_added(monkeypatch):
    monkeypatch.setattr(checking, "CHUNK", 8)
    rng = np.random.default_rng(1)
    reference = rng.standard_normal((10, 10))
    out = reference.astype(np.float32)
    out[3, 4], out[9, 9] = 50.0, poisoned((1,), "float32")[0]
    found = compare(out, reference, 1e-6)
    assert (found.wrong, found.first_wrong, found.unwritten, found.first_unwritten) == (2, 34, 1, 99)


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of eight elements, and a result of four chunks that equals its reference: 1 to 32 as float32."""
    monkeypatch.setattr(checking, "CHUNK", 8)
    reference = np.arange(1.0, 33.0)
    return reference.astype(np.float32), reference


def test_each_chunk_reports_its_first_wrong_element_by_its_place_in_the_whole(small_chunks):
    out, reference = small_chunks
    for first in (0, 7, 8, 15, 23, 31):
        broken = out.copy()
        broken[first] = broken[-1] = 1000.0
        found = compare(broken, reference, 1e-6)
        assert (found.wrong, found.first_wrong) == (1 if first == 31 else 2, first)
        assert (found.unwritten, found.first_unwritten) == (0, None)


def test_an_error_of_exactly_the_tolerance_is_right_and_the_next_float_is_wrong(small_chunks):
    out, reference = small_chunks
    # The largest reference value is 32; 20.5 instead of 20 is off by 1/64 of it, exactly.
    out[19] = 20.5
    found = compare(out, reference, 1 / 64)
    assert (found.error, found.wrong, found.first_wrong) == (1 / 64, 0, None)
    found = compare(out, reference, np.nextafter(1 / 64, 0))
    assert (found.error, found.wrong, found.first_wrong) == (1 / 64, 1, 19)


def test_the_largest_error_of_any_chunk_counts(small_chunks):
    out, reference = small_chunks
    out[3], out[12], out[30] = 5.0, 17.0, 32.0  # off by 1, 4 and 1 of 32
    found = compare(out, reference, 1e-6)
    assert (found.error, found.wrong, found.first_wrong) == (4 / 32, 3, 3)


def test_only_wrong_elements_can_be_unwritten(small_chunks):
    """The poison of an integer is a value that a kernel may compute; where the reference has it too, it was written."""
    poison = int(poisoned((1,), "int32")[0])
    reference = np.full(32, poison, np.int32)
    out = reference.copy()
    out[9] = 7
    found = compare(out, reference, 0.0)
    assert (found.wrong, found.first_wrong, found.unwritten, found.first_unwritten) == (1, 9, 0, None)


def test_wrong_and_unwritten_elements_of_one_chunk_are_told_apart(small_chunks):
    out, reference = small_chunks
    out[17] = -1.0
    out[20:23] = poisoned((3,), "float32")
    found = compare(out, reference, 1e-6)
    assert (found.wrong, found.first_wrong, found.unwritten, found.first_unwritten) == (4, 17, 3, 20)
    assert found.error == np.inf


def test_wrong_element_is_named_by_its_index_in_the_shape():
    case = checking.Case(scale.problem, {"n": 6}, {}, {"y": np.zeros((2, 3))})
    with pytest.raises(WrongResult, match=r"first at y\[1, 1\]: got 4.0, expected 0.0"):
        case.check({"y": checking.cp.asarray(np.array([[0, 0, 0], [0, 4, 0]], np.float32))}, "x", 0.0)
