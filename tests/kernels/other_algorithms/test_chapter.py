"""The chapter ``book/other-algorithms.ipynb``: what its text says of its kernels."""

from __future__ import annotations

import numpy as np
import pytest

from climb import check, cp
from kernels.other_algorithms.exercises import exhibit, judge, untangle
from kernels.other_algorithms.fft_conv3d import EDGE


def test_untangle_solution_passes_and_the_skeleton_is_wrong():
    assert check(untangle.solution, untangle).passed
    assert not check(untangle.skeleton, untangle).passed


def test_the_paper_exercise_tells_right_from_wrong():
    def kept(edge, k):
        return (edge - k + 1) ** 2

    def operations(k, transform):
        return (4 * 32 * transform + 1024 * 4 * k) / (2 * kept(32, k))

    assert judge(kept, operations)
    assert not judge(lambda edge, k: (edge - k) ** 2, operations)
    assert not judge(kept, lambda k, transform: operations(k, transform) + 1)


@pytest.mark.parametrize("step, right", [("kEdge", False), ("kEdge - k + 1", True)])
def test_tiles_side_by_side_wrap_and_overlapping_tiles_do_not(step: str, right: bool):
    n, k = 70, 5
    rng = np.random.default_rng(0)
    source, weights = rng.random(n, dtype=np.float32), rng.random(k, dtype=np.float32)
    target = cp.zeros(n, dtype=np.float32)
    text = exhibit("wrap").replace("step = kEdge;", f"step = {step};")
    wrap = cp.RawKernel(text.replace("__global__", 'extern "C" __global__'), "wrap")
    wrap((3,), (EDGE,), (cp.asarray(source), cp.asarray(weights), target, np.int32(n), np.int32(k)))
    expected = [float(weights[: n - x] @ source[x : x + k]) for x in range(n)]
    wrong = np.abs(cp.asnumpy(target) - expected) > 1e-5
    assert not wrong.any() if right else set(np.flatnonzero(wrong) % EDGE) == set(range(EDGE - k + 1, EDGE))
