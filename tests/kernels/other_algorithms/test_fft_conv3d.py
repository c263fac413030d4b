"""Convolution by transforms: operations, tiles, and values that a transform spreads."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tools.thorough import thorough

from climb import counters, load_ladder, opcodes, verify
from climb.toolchain import compile_cuda
from kernels.other_algorithms.fft_conv3d import Cut, butterfly_operations

FFT = load_ladder("fft_conv3d")


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
    assert (
        len(re.findall(r"^\s*(?:add|sub|mul|fma)(?:\.rn)?(?:\.ftz)?\.f32", ptx, re.MULTILINE))
        == butterfly_operations()
        == 388
    )


def test_ptxas_fuses_products_and_sums_where_cubes_transforms_its_weights():
    """This chapter and the emulator's say so: there the last bits on a GPU are not the emulator's."""
    size = {"n": 12, "k": 9}
    compiled, kernel = FFT["cubes"].compiled(size), "fft_conv3d_cube_spectra<9>"
    assert kernel in {launch.kernel for launch in FFT["cubes"].launches(size)}
    body = re.search(rf"\.entry {compiled.lowered(kernel)}\(.*?\n}}\n", compiled.ptx, re.DOTALL)[0]

    def fewer(ptx: str, sass: str) -> int:
        """Count the instructions of a kind that the machine code has less than the PTX."""
        return len(re.findall(rf"\b(?:{ptx})(?:\.rn)?\.ftz\.f32\b", body)) - len(opcodes(compiled, kernel, sass))

    assert fewer("mul", "FMUL") == fewer("add|sub", "FADD") == -fewer("fma", "FFMA") > 0


@pytest.mark.parametrize("n, k", [(n, k) for n in (1, 4, 96, 100, 256, 512) for k in (3, 5, 7, 9, 11)])
@pytest.mark.parametrize("cut", [Cut.closest, Cut.boxed])
def test_tiles_cover_a_plane_and_blocks_a_column(cut, n: int, k: int):
    tiles = cut({"n": n, "k": k})
    across, down, deep = tiles.grid
    first = k // 2 - tiles.lead  # the first output of the first tile
    assert first <= 0 and first + across * tiles.wide >= n and down * tiles.kept >= n and deep * tiles.planes >= n
    aligned = tiles.wide % 4 == 0 and tiles.lead % 4 == 0
    assert tiles.wide <= tiles.kept and (cut is not Cut.boxed or aligned or k <= 7)


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


def test_exchanges_of_a_pair_of_planes_have_no_bank_conflicts():
    lines = [line for line in counters(FFT["planes"], {"n": 12, "k": 3}).lines if "pair[" in line.text]
    assert len(lines) == 6 and sum(line.bank_conflicts for line in lines) == 0
