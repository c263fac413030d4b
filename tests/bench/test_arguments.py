"""A refused launch says what was wrong with which argument, and nothing is launched or compiled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tiny_ladder import product

from climb.bench.arguments import ArgumentError, check_no_overlap, solve_size
from climb.bench.cuda import cp
from climb.bench.ladder import Ladder


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch):
    """A launch that gets through would compile ``absent.cu``; each test here must stop before that."""
    product.asked.clear()
    compiled = []
    monkeypatch.setattr(cp, "RawModule", lambda *args, **kwargs: compiled.append(args))
    yield
    assert product.asked == [] and compiled == []


def zeros(*shape: int, dtype: str = "float32"):
    return cp.asarray(np.zeros(shape, dtype=dtype))


def refuse(message: str, *inputs, rung: str = "wide", ladder: Ladder = product.ladder, **keywords) -> None:
    with pytest.raises(ArgumentError) as caught:
        ladder[rung](*inputs, **keywords)
    assert message in str(caught.value), str(caught.value)


def test_array_of_another_dtype_is_refused():
    refuse("argument 'b' is float64; expected float32", zeros(4, 4), zeros(4, 4, dtype="float64"), repeat=1)


def test_array_with_wrong_number_of_dimensions_is_refused():
    refuse("argument 'b' has shape (4,); expected 2 dimension(s), (k, n)", zeros(4, 4), zeros(4), repeat=1)


def test_inputs_of_inconsistent_sizes_are_refused():
    refuse("argument 'b' has shape (5, 4), so k = 5, but argument 'a' says k = 4", zeros(4, 4), zeros(5, 4), repeat=1)


def test_output_of_wrong_shape_is_refused():
    refuse(
        "argument 'c' has shape (4, 5); expected (4, 4), (m, n)",
        zeros(4, 4),
        zeros(4, 4),
        out=zeros(4, 5),
        repeat=1,
    )


def test_wrong_number_of_inputs_is_refused():
    refuse("product takes 2 input(s) (a, b), got 1", zeros(4, 4), repeat=1)


def test_wrong_number_of_outputs_is_refused():
    refuse("product has 1 output(s), got 2 in out", zeros(4, 4), zeros(4, 4), out=(zeros(4, 4), zeros(4, 4)), repeat=1)


def test_strided_array_is_refused():
    refuse("argument 'a' is not C-contiguous (strides", zeros(4, 8)[:, ::2], zeros(4, 4), repeat=1)


def test_transposed_view_is_refused():
    refuse("argument 'a' is not C-contiguous", zeros(4, 8).T, zeros(4, 4), repeat=1)


def test_unaligned_view_is_refused():
    flat = zeros(17)
    refuse(
        "argument 'a' starts 4 byte(s) past a multiple of 16; rung 'wide' needs 16-byte alignment",
        flat[1:].reshape(4, 4),
        zeros(4, 4),
        repeat=1,
    )


def test_host_array_is_refused_and_asarray_suggested():
    refuse(
        "argument 'a' is a numpy.ndarray, in host memory; expected an array on the device: cp.asarray(a)",
        np.zeros((4, 4), np.float32),
        zeros(4, 4),
        repeat=1,
    )


def test_host_output_is_refused():
    refuse(
        "argument 'c' is a numpy.ndarray, in host memory",
        zeros(4, 4),
        zeros(4, 4),
        out=np.zeros((4, 4), np.float32),
        repeat=1,
    )


def test_object_that_is_no_array_is_refused():
    refuse("argument 'a' is a builtins.list, in another place", [[1.0]], zeros(4, 4), repeat=1)


def test_size_that_the_rung_does_not_take_is_refused():
    refuse(
        "rung 'small' of product does not take m=5, n=4, k=4, repeat=1: m = 5 exceeds 4",
        zeros(5, 4),
        zeros(4, 4),
        rung="small",
        repeat=1,
    )


def test_empty_input_is_refused_unless_the_problem_accepts_it():
    refuse(
        "argument 'a' is empty, shape (0, 4); product needs at least one element", zeros(0, 4), zeros(4, 4), repeat=1
    )


def test_missing_parameter_is_named():
    refuse("parameter 'repeat' is missing; pass it by keyword: repeat=...", zeros(4, 4), zeros(4, 4))


def test_unknown_parameter_is_named():
    refuse("product has no parameter 'times' (parameters: repeat)", zeros(4, 4), zeros(4, 4), repeat=1, times=2)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "2", None])
def test_parameter_that_is_no_positive_number_is_refused(value):
    refuse(
        f"parameter 'repeat' is {value!r}; expected a whole number of at least 1",
        zeros(4, 4),
        zeros(4, 4),
        repeat=value,
    )


def test_output_that_overlaps_an_input_is_refused():
    a = zeros(4, 4)
    refuse("output 'c' overlaps argument 'a' in memory", a, zeros(4, 4), out=a, repeat=1)


def test_output_that_partly_overlaps_an_input_is_refused():
    flat = zeros(24)
    refuse(
        "output 'c' overlaps argument 'a' in memory",
        flat[:16].reshape(4, 4),
        zeros(4, 4),
        out=flat[8:].reshape(4, 4),
        repeat=1,
    )


@pytest.mark.parametrize("first", ["a", "c"])
def test_an_output_that_touches_an_input_without_overlap_is_taken(first):
    flat = zeros(32)
    parts = {first: flat[:16], "c" if first == "a" else "a": flat[16:]}
    check_no_overlap(parts, product.problem.outputs)
    one_more = {first: flat[:17], "c" if first == "a" else "a": flat[16:]}
    with pytest.raises(ArgumentError, match="output 'c' overlaps argument 'a'"):
        check_no_overlap(one_more, product.problem.outputs)


def kinds_of_data() -> Ladder:
    """The product with a size key that names what its matrices hold."""
    problem = replace(
        product.ladder.problem,
        size_keys=("m", "n", "k", "repeat", "data"),
        kinds={"data": ("random", "zeros")},
    )
    return replace(product.ladder, problem=problem)


def test_first_kind_of_data_is_assumed_for_a_readers_arrays():
    arrays = {"a": zeros(3, 5), "b": zeros(5, 4)}
    size = solve_size(kinds_of_data().problem, arrays, {"repeat": 2})
    assert size == {"m": 3, "n": 4, "k": 5, "repeat": 2, "data": "random"}
    assert list(size) == ["m", "n", "k", "repeat", "data"]


def test_kind_of_data_is_not_taken_as_a_parameter():
    refuse("product has no parameter 'data' (parameters: repeat)", zeros(4, 4), zeros(4, 4), repeat=1, data="zeros",
           ladder=kinds_of_data())  # fmt: skip


@pytest.mark.parametrize("data", [{}, {"data": "noise"}, {"data": 1}])
def test_unknown_kind_of_data_is_refused(data):
    with pytest.raises(ArgumentError, match=r"product: data is .*; expected one of random, zeros"):
        kinds_of_data()["wide"].launches({"m": 4, "n": 4, "k": 4, "repeat": 1, **data})
