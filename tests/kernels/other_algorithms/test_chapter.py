"""The chapter ``book/other-algorithms.ipynb``: what its text says of its kernels."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tools.thorough import thorough

from climb import check, cp, load_ladder, verify
from climb.toolchain import compile_cuda
from kernels.other_algorithms.exercises import exhibit, judge, untangle
from kernels.other_algorithms.fft_conv3d import EDGE, Cut, butterfly_operations

FFT = load_ladder("fft_conv3d")


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


def test_a_transform_in_registers_takes_388_operations():
    kernel = """
        extern "C" __global__ void one(float2* from)
        {
            float2 v[32];
            for (int i = 0; i < 32; ++i) v[i] = from[i];
            fft32<-1>(v);
            for (int i = 0; i < 32; ++i) from[i] = v[i];
        }"""
    text = (FFT.folder.parent / "fft32.cuh").read_text(encoding="utf-8").replace("#pragma once", "") + kernel
    ptx = compile_cuda(text, filename="one.cu", options=("-std=c++17",), whole=False).ptx
    assert len(re.findall(r"^\s*(?:add|sub|mul|fma)(?:\.rn)?(?:\.ftz)?\.f32", ptx, re.MULTILINE)) == butterfly_operations() == 388


@pytest.mark.parametrize("n, k", [(n, k) for n in (1, 4, 96, 100, 256, 512) for k in (3, 5, 7, 9, 11)])
@pytest.mark.parametrize("cut", [Cut.closest, Cut.aligned])
def test_tiles_cover_a_plane_and_blocks_a_column(cut, n: int, k: int):
    tiles = cut({"n": n, "k": k})
    across, down, deep = tiles.grid
    first = k // 2 - tiles.lead  # the first output of the first tile
    assert first <= 0 and first + across * tiles.wide >= n and down * tiles.kept >= n and deep * tiles.planes >= n
    assert tiles.wide <= tiles.kept and (cut is not Cut.aligned or (tiles.wide % 4 == 0 and tiles.lead % 4 == 0))


@pytest.mark.parametrize("value", [np.inf, thorough(np.nan)])
def test_a_value_that_is_not_finite_spreads_no_further_than_in_the_sum(value: float):
    size = {"n": 12, "k": 3}
    inputs = FFT.inputs(size)
    inputs["source"][5, 2, 3] = value
    verify(FFT["planes"], size, inputs=inputs)


def test_a_transform_that_overflows_is_mended():
    size = {"n": 12, "k": 3}
    inputs = {"source": np.full((12,) * 3, 3e38, np.float32), "weights": np.zeros((3,) * 3, np.float32)}
    inputs["weights"][1, 1, 1] = 1.0  # the sum is the input, but the sum of all inputs overflows
    verify(FFT["planes"], size, inputs=inputs)
