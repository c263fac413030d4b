"""Kernels that are launched from a file: the stand-in for CuPy compiles the file, whatever text CuPy would be given."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_ladder import scale

from climb import fake_cupy as cp
from climb.bench.ladder import make_module
from climb.emulator import EmulatorError
from climb.toolchain import CompileError

pytestmark = pytest.mark.emulated

SIZE = {"n": 65}


def test_a_launch_and_the_bench_share_one_compilation():
    rung = scale.ladder["plain"]
    (function,) = rung._functions(rung.launches(SIZE))
    assert function._compiled is rung.compiled(SIZE, whole=False)


def test_a_fault_in_an_included_file_is_shown_with_that_file_and_its_line(tmp_path: Path):
    (tmp_path / "store.cuh").write_text("#pragma once\n\n__device__ void store(int* a, int i) { a[i] = i; }\n")
    path = tmp_path / "01_stores.cu"
    path.write_text('#include "store.cuh"\nextern "C" __global__ void k(int* a) {\n    store(a, threadIdx.x);\n}\n')
    kernel = make_module(path, (), ("k",)).get_function("k")
    with pytest.raises(EmulatorError, match=r"store\.cuh:3: .*a\[i\] = i"):
        kernel((1,), (8,), (cp.zeros(7, dtype=cp.int32),))


def test_a_file_that_changes_is_compiled_again(tmp_path: Path):
    path = tmp_path / "01_stores.cu"
    for value in (5, 6):
        path.write_text(f'extern "C" __global__ void k(int* a) {{ a[0] = {value}; }}\n')
        a = cp.zeros(1, dtype=cp.int32)
        make_module(path, (), ("k",)).get_function("k")((1,), (1,), (a,))
        assert a.tolist() == [value]


def test_a_mistake_is_shown_with_the_file_and_its_line(tmp_path: Path):
    path = tmp_path / "01_wrong.cu"
    path.write_text('extern "C" __global__ void k(int* a) {\n    a[0] = b;\n}\n')
    with pytest.raises(CompileError, match=r"/01_wrong\.cu:2: error: .*\"b\""):
        make_module(path, (), ("k",)).get_function("k")
