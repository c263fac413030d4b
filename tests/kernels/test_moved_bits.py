"""Ladders that only move data keep every bit of it."""

from __future__ import annotations

import numpy as np
import pytest

from climb import cp, load_ladder, verify


@pytest.mark.parametrize("name", ["copy", "strided", "transpose", "occupancy"])
def test_moved_data_keeps_every_bit(name: str) -> None:
    """Infinities, the largest and the smallest floats and both zeros pass through; a tolerance of 0 is asserted."""
    special = np.array([np.inf, -np.inf, 3.4e38, 1.2e-38, 1e-45, -0.0, 0.0, 1.0], dtype=np.float32)
    ladder = load_ladder(name)
    size = ladder.problem.check[-1]
    assert ladder.problem.tolerance(size) == 0.0
    for rung in ladder:
        inputs = ladder.inputs(size)
        inputs["source"].reshape(-1)[:] = np.resize(special, inputs["source"].size)
        verify(rung, size, inputs=inputs)
        out = cp.asnumpy(rung(cp.asarray(inputs["source"]), **{k: size[k] for k in ladder.problem.parameters}))
        expected = ladder.problem.reference(inputs, size)["target"]
        assert np.array_equal(out.view(np.uint32), np.ascontiguousarray(expected).view(np.uint32))
