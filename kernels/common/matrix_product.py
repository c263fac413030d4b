"""The problem C = A B of row-major matrices, which several ladders share: in float32, through TF32, of halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from climb.bench.problem import Argument, Problem, Size
from climb.bench.references import sum_of_magnitudes


def reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    """The product in float64."""
    return {"C": inputs["A"].astype(np.float64) @ inputs["B"].astype(np.float64)}


def flops(size: Size) -> int:
    """The multiplies and adds of the product."""
    return 2 * size["m"] * size["n"] * size["k"]


def product_problem(name: str, title: str, *, factors: str = "float32", **other: Any) -> Problem:
    """The product of two matrices of normal random numbers, of type ``factors``, with a result in float32.

    ``other`` has what differs between ladders: tolerance, sizes, precision, operations by pipe.
    """
    factor, result = np.dtype(factors).itemsize, np.dtype("float32").itemsize
    return Problem(
        name=name,
        title=title,
        size_keys=("m", "n", "k"),
        arguments=(
            Argument("A", factors, ("m", "k")),
            Argument("B", factors, ("k", "n")),
            Argument("C", "float32", ("m", "n"), role="output"),
        ),
        make_inputs=_normal(factors),
        reference=reference,
        reference_magnitude=sum_of_magnitudes(reference),
        flops=flops,
        bytes=lambda size: factor * (size["m"] + size["n"]) * size["k"] + result * size["m"] * size["n"],
        headline=({"m": 4096, "n": 4096, "k": 4096},),
        accepts_empty=True,
        **other,
    )


def rounding_tolerance(size: Size) -> float:
    """The error of a product in float32: k terms round k times, each by at most 2^-24 of a partial sum, and the errors
    add up like a random walk."""
    return 4 * 2.0**-24 * max(1.0, size["k"] ** 0.5)


def _normal(dtype: str) -> Callable[[Size, np.random.Generator], dict[str, np.ndarray]]:
    def inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
        shapes = {"A": (size["m"], size["k"]), "B": (size["k"], size["n"])}
        return {
            name: rng.standard_normal(shape, dtype=np.float32).astype(dtype, copy=False)
            for name, shape in shapes.items()
        }

    return inputs
