"""Operands that all lanes share are arrays of one element: results are those of whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest

from climb.emulator.isa import rounding

LANES = (2, 32)
#: Functions that round in a given mode, by the type and number of their operands.
DIRECTED = {
    ("f4", 2): (rounding.add_directed, rounding.mul_directed, rounding.div_directed),
    ("f8", 2): (rounding.add_directed, rounding.mul64_directed, rounding.div64_directed),
    ("f4", 3): (rounding.fma_directed,),
    ("f8", 3): (rounding.fma64_directed,),
}
CASES: dict[str, tuple[str, int, Callable[..., np.ndarray]]] = {
    f"{function.__name__} {kind} {mode}": (kind, number, partial(function, mode=mode))
    for (kind, number), functions in DIRECTED.items()
    for function in functions
    for mode in ("rz", "rm", "rp")
} | {
    "fma32": ("f4", 3, rounding.fma32),
    "fma32 ftz": ("f4", 3, partial(rounding.fma32, ftz=True)),
    "fma64": ("f8", 3, rounding.fma64),
}


@pytest.mark.parametrize("name", CASES)
def test_operands_that_lanes_share_change_no_bit(name: str) -> None:
    kind, number, function = CASES[name]
    rng = np.random.default_rng(5)
    whole = [rng.standard_normal(LANES).astype(kind) for _ in range(number)]
    for shared in product((False, True), repeat=number):
        given = [each[:1, :1] if one else each for each, one in zip(whole, shared, strict=True)]
        full = [np.broadcast_to(each, LANES).copy() for each in given]
        found, expected = function(*given), function(*full)
        assert found.shape == np.broadcast_shapes(*(each.shape for each in given))
        assert np.array_equal(np.broadcast_to(found, LANES), expected)
