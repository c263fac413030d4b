"""Limits of a launch: what the CUDA driver refuses is refused, with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from fake_cupy.source import EXPRESSIONS, SOURCE

from climb import fake_cupy as cp
from climb.fake_cupy import limits
from climb.fake_cupy.errors import CUDADriverError
from climb.toolchain import CompileError


@pytest.fixture(scope="module")
def module() -> cp.RawModule:
    return cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)


#: A kernel of more than 64 registers, which a block of 1024 threads does not have.
HUNGRY = r"""extern "C" __global__ void hungry(float* a, int n) {
    float x[80];
    for (int i = 0; i < 80; i++) x[i] = a[i * n + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < 80; i++) a[i * n + threadIdx.x] = x[i] * x[(i * 7) % 80];
}"""


class TestLimits:
    @pytest.mark.parametrize(
        ("grid", "block", "said"),
        [
            ((1,), (1025,), "x may be at most 1024"),
            ((1,), (32, 33), "1056 threads; a block has at most 1024"),
            ((1,), (1, 1, 65), "z may be at most 64"),
            ((1,), (0,), "block is .0,.; every extent must be at least 1"),
            ((0,), (1,), "grid is .0,.; every extent"),
            ((1, -1), (1,), "every extent"),
            ((1, 65536), (1,), "y may be at most 65535"),
            ((1, 1, 65536), (1,), "z may be at most 65535"),
            ((2**31,), (1,), "x may be at most 2147483647"),
        ],
    )
    def test_grid_or_block_beyond_the_hardware_is_refused(
        self, module: cp.RawModule, grid: Any, block: Any, said: str
    ) -> None:
        with pytest.raises(CUDADriverError, match=said) as caught:
            module.get_function("small")(grid, block, (cp.zeros(1024, dtype=cp.int32),))
        assert str(caught.value).startswith("CUDA_ERROR_INVALID_VALUE")

    @pytest.mark.parametrize(
        ("grid", "block"), [(1, (1,)), ((1,), 1), ([1], (1,)), ((), (1,)), ((1.0,), (1,)), ((1, 1, 1, 1), (1,))]
    )
    def test_grid_or_block_that_is_no_tuple_of_integers_is_refused(
        self, module: cp.RawModule, grid: Any, block: Any
    ) -> None:
        with pytest.raises(TypeError, match=r"tuple|whole numbers"):
            module.get_function("small")(grid, block, (cp.zeros(1, dtype=cp.int32),))

    def test_block_beyond_the_launch_bound_is_refused(self, module: cp.RawModule) -> None:
        out = cp.zeros(65, dtype=cp.int32)
        module.get_function("small")((1,), (64,), (out,))
        with pytest.raises(CUDADriverError, match="__launch_bounds__ says at most 64"):
            module.get_function("small")((1,), (65,), (out,))

    def test_dynamic_shared_memory_beyond_48_kib_needs_opt_in(self, module: cp.RawModule) -> None:
        kernel, out = module.get_function("dynamic"), cp.zeros(32, dtype=cp.float32)
        kernel((1,), (32,), (out,), shared_mem=48 * 1024)
        with pytest.raises(CUDADriverError, match="max_dynamic_shared_size_bytes = 49153 asks for more"):
            kernel((1,), (32,), (out,), shared_mem=48 * 1024 + 1)
        kernel.max_dynamic_shared_size_bytes = 227 * 1024
        kernel((1,), (32,), (out,), shared_mem=227 * 1024)
        with pytest.raises(CUDADriverError, match="even when asked for"):
            kernel((1,), (32,), (out,), shared_mem=227 * 1024 + 1)
        with pytest.raises(CUDADriverError, match="a block has 232448 bytes"):
            kernel.max_dynamic_shared_size_bytes = 227 * 1024 + 1

    def test_declared_shared_memory_reduces_the_dynamic_limit(self, module: cp.RawModule) -> None:
        kernel, x = module.get_function("shifted<float, 128>"), cp.zeros(128, dtype=cp.float32)
        assert kernel.max_dynamic_shared_size_bytes == 48 * 1024 - 512
        with pytest.raises(CUDADriverError, match="besides the 512 that it declares"):
            kernel((1,), (128,), (x, x.copy()), shared_mem=48 * 1024 - 511)

    def test_too_much_declared_shared_memory_is_a_compile_error(self) -> None:
        code = r"""extern "C" __global__ void f(int* a) {
            __shared__ int s[20000];
            s[threadIdx.x] = *a;
            __syncthreads();
            *a = s[3];
        }"""
        with pytest.raises(CompileError, match="80000 bytes of shared memory"):
            cp.RawKernel(code, "f")((1,), (32,), (cp.zeros(1, dtype=cp.int32),))

    def test_block_with_too_many_registers_is_refused(self) -> None:
        kernel, a = cp.RawKernel(HUNGRY, "hungry"), cp.zeros(80 * 1024, dtype=cp.float32)
        assert kernel.num_regs > 64
        most = kernel.max_threads_per_block
        kernel((1,), (most,), (a, 1024))
        with pytest.raises(
            CUDADriverError, match=f"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.*{most + 32} threads of {kernel.num_regs}"
        ):
            kernel((1,), (most + 32,), (a, 1024))

    def test_block_within_the_launch_bound_fits_whatever_the_kernel_would_take(self) -> None:
        code = HUNGRY.replace("hungry", "__launch_bounds__(1024) hungry")
        kernel, a = cp.RawKernel(code, "hungry"), cp.zeros(80 * 1024, dtype=cp.float32)
        kernel((1,), (1024,), (a, 1024))
        assert "_machine_code" not in vars(kernel._compiled), "the launch asked ptxas, which takes a second compilation"
        limits.check_registers(kernel.num_regs, (1024, 1, 1))

    @pytest.mark.parametrize(("registers", "threads"), [(64, 1024), (65, 896), (128, 512), (168, 384), (255, 256)])
    def test_registers_limit_the_threads_of_a_block(self, registers: int, threads: int) -> None:
        # A warp takes 32 times the count, rounded up to 256. With 65 that is 2304, and 65536 registers hold 28 warps.
        limits.check_registers(registers, (threads, 1, 1))
        with pytest.raises(CUDADriverError):
            limits.check_registers(registers, (threads + 32, 1, 1))


GRID_SYNC = """
#include <cooperative_groups.h>
extern "C" __global__ void total(int* parts, int* out) {
    parts[blockIdx.x] = blockIdx.x;
    cooperative_groups::this_grid().sync();
    int sum = 0;
    for (int block = 0; block < gridDim.x; ++block) sum += parts[block];
    out[blockIdx.x] = sum;
}"""


@pytest.fixture(scope="module")
def total() -> cp.RawKernel:
    return cp.RawKernel(GRID_SYNC, "total", enable_cooperative_groups=True)


class TestCooperativeLaunch:
    def test_grid_sync_works_as_in_cupy(self, total: cp.RawKernel) -> None:
        out = cp.zeros(20, dtype=cp.int32)
        total((20,), (32,), (cp.zeros(20, dtype=cp.int32), out))
        assert out.get().tolist() == [190] * 20

    def test_a_module_hands_the_setting_to_its_kernels(self) -> None:
        module = cp.RawModule(code=GRID_SYNC, enable_cooperative_groups=True)
        assert module.get_function("total").enable_cooperative_groups

    def test_more_blocks_than_fit_are_refused_as_by_the_driver(self, total: cp.RawKernel) -> None:
        with pytest.raises(CUDADriverError, match=r"COOPERATIVE_LAUNCH_TOO_LARGE.*265 blocks, of which 264 fit"):
            total((265,), (1024,), (cp.zeros(265, dtype=cp.int32), cp.zeros(265, dtype=cp.int32)))
