"""Operands that all lanes share are arrays of one element: results are those of whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest

from climb.emulator.isa import rounding

LANES = (2, 32)
#: Functions of the emulator that round, by their operands: how many, and of which type.
ROUNDING: dict[tuple[int, str], tuple[Callable[..., np.ndarray], ...]] = {
    (2, "f4"): (rounding.add_directed, rounding.mul_directed, rounding.div_directed),
    (2, "f8"): (rounding.add_directed, rounding.mul64_directed, rounding.div64_directed),
    (3, "f4"): (rounding.fma_directed,),
    (3, "f8"): (rounding.fma64_directed,),
}
NEAREST = {(3, "f4"): (rounding.fma32, partial(rounding.fma32, ftz=True)), (3, "f8"): (rounding.fma64,)}
CASES = [
    *((number, kind, partial(one, mode=mode)) for (number, kind), some in ROUNDING.items() for one in some
      for mode in ("rz", "rm", "rp")),
    *((number, kind, one) for (number, kind), some in NEAREST.items() for one in some),
]  # fmt: skip


def _name(case: tuple[int, str, partial[np.ndarray]]) -> str:
    _, kind, one = case
    words = [getattr(one, "func", one).__name__, kind, *map(str, getattr(one, "keywords", {}).values())]
    return " ".join(words)


@pytest.mark.parametrize("number, kind, function", CASES, ids=map(_name, CASES))
def test_operands_that_lanes_share_change_no_bit(number: int, kind: str, function: Callable[..., np.ndarray]) -> None:
    rng = np.random.default_rng(5)
    whole = [rng.standard_normal(LANES).astype(kind) for _ in range(number)]
    for shared in product((False, True), repeat=number):
        given = [each[:1, :1] if one else each for each, one in zip(whole, shared, strict=True)]
        full = [np.broadcast_to(each, LANES).copy() for each in given]
        found, expected = function(*given), function(*full)
        assert found.shape == np.broadcast_shapes(*(each.shape for each in given))
        assert np.array_equal(np.broadcast_to(found, LANES), expected)
