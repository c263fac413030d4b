"""Kernels that mix features (half2, clusters, cooperative groups, bulk reductions, cuda::barrier, match) against NumPy.

Each is right with all checks, and its planted faults are found: by a check, or by a wrong result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from climb.emulator import (
    ALL_CHECKS,
    AsyncMisuse,
    AsyncRace,
    EmulatorError,
    MissingProxyFence,
    OutOfBounds,
    Race,
    Uninitialised,
    WarpMismatch,
    checking,
    run,
)

HALVES = r"""
#include <cuda_fp16.h>
extern "C" __global__ void axpy(const __half2* x, __half2* y, __half2* most, int pairs)
{
    __shared__ __half2 best[4];
    __half2 mine = __half2half2(__ushort_as_half(0xfc00));
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += gridDim.x * blockDim.x) {
        const __half2 v = __hfma2_relu(x[i], __floats2half2_rn(0.3f, -1.7f), y[i]);
        y[i] = v;
        mine = __hmax2(mine, v);
    }
    for (int d = 16; d; d /= 2) mine = __hmax2(mine, __shfl_xor_sync(0xffffffff, mine, d));
    if (threadIdx.x % 32 == 0) best[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 4; ++w) mine = __hmax2(mine, best[w]);
        most[blockIdx.x] = mine;
    }
}
"""
HISTOGRAM = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
constexpr int kBins = 64;
extern "C" __global__ void __cluster_dims__(4, 1, 1) weigh(const int* keys, const float* weights, float* out, int n)
{
    __shared__ float bins[kBins / 4];
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x < kBins / 4) bins[threadIdx.x] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float* there = cluster.map_shared_rank(bins, keys[i] % 4);
        atomicAdd(there + keys[i] / 4, weights[i]);
    }
    cluster.sync();
    if (threadIdx.x < kBins / 4) atomicAdd(out + threadIdx.x * 4 + cluster.block_rank(), bins[threadIdx.x]);
}
"""
GROUPS = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void groups(const int* in, int* sums, int* scans, int* odd, int n)
{
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    const int i = block.group_index().x * block.size() + block.thread_rank();
    const int v = i < n ? in[i] : 0;
    scans[i] = cg::exclusive_scan(tile, v, cg::plus<int>());
    auto same = cg::labeled_partition(cg::tiled_partition<32>(block), v % 3);
    sums[i] = cg::reduce(same, v, cg::plus<int>());
    if (v & 1) {
        auto active = cg::coalesced_threads();
        odd[i] = active.shfl(v, active.size() - 1) * 100 + active.thread_rank();
    }
}
"""
ADDED = r"""
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void added(const float* in, float* out, int rounds)
{
    __shared__ alignas(16) float tile[2][128];
    for (int r = 0; r < rounds; ++r) {
        if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        __syncthreads();
        tile[r % 2][threadIdx.x] = in[(blockIdx.x * rounds + r) * 128 + threadIdx.x] * 2;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 512;"
                :: "l"(out), "r"(at(tile[r % 2])) : "memory");
            asm volatile("cp.async.bulk.commit_group;");
        }
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
"""
BEST = r"""
#include <cuda_fp16.h>
extern "C" __global__ void best(
    const unsigned* key, const unsigned* value, unsigned long long* most, __half2* halves, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned alive = __ballot_sync(0xffffffff, i < n);
    if (i >= n) return;
    const unsigned peers = __match_any_sync(alive, key[i]);
    const unsigned top = __reduce_max_sync(peers, value[i]);
    const unsigned count = __reduce_add_sync(peers, 1u);
    const unsigned who = __ballot_sync(peers, value[i] == top);
    if ((threadIdx.x & 31) == __ffs(who) - 1) {
        atomicMax(most + key[i], (unsigned long long)top << 32 | (unsigned)~i);
        atomicAdd(halves + key[i], __floats2half2_rn(count, 1.0f));
    }
}
"""
RING = r"""
#include <cuda/barrier>
#include <cuda/ptx>
using bar_t = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void ring(const float* in, float* out, int tiles)
{
    __shared__ alignas(16) float slot[3][64];
    __shared__ float total;
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ bar_t full[3], empty[3];
    if (threadIdx.x == 0) {
        total = 0;
        for (int s = 0; s < 3; ++s) { init(full + s, 1); init(empty + s, 64); }
        asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            for (int t = 0; t < tiles; ++t) {
                if (t >= 3) empty[t % 3].wait_parity((t / 3 - 1) & 1);
                cuda::device::memcpy_async_tx(slot[t % 3], in + t * 64, cuda::aligned_size_t<16>(256), full[t % 3]);
                auto token = cuda::device::barrier_arrive_tx(full[t % 3], 1, 256);
            }
    } else {
        float sum = 0;
        for (int t = 0; t < tiles; ++t) {
            full[t % 3].wait_parity(t / 3 & 1);
            sum += slot[t % 3][threadIdx.x - 32] * (t + 1);
            (void)empty[t % 3].arrive();
        }
        atomicAdd(&total, sum);
    }
    __syncthreads();
    if (threadIdx.x == 0) *out = total;
}
"""
RNG = np.random.default_rng(7)
KEYS, KINDS = 3000, 500
SCALES = np.array([0.3, -1.7], np.float32).astype(np.float16)


def halves(x: np.ndarray, y: np.ndarray, most: np.ndarray, pairs: int) -> tuple[np.ndarray, ...]:
    sums = (x.astype(np.float64) * np.tile(SCALES, pairs) + y).astype(np.float16)
    want = np.maximum(sums, np.float16(0))
    blocks = most.size // 2
    every = [want.reshape(-1, 128, 2)[b::blocks].reshape(-1, 2).max(axis=0) for b in range(blocks)]
    return want, np.concatenate(every)


def histogram(keys: np.ndarray, weights: np.ndarray, out: np.ndarray, n: int) -> tuple[np.ndarray, ...]:
    return (np.bincount(keys, weights, out.size).astype(np.float32),)


def groups(given: np.ndarray, sums: np.ndarray, scans: np.ndarray, odd: np.ndarray, n: int) -> tuple[np.ndarray, ...]:
    values = np.where(np.arange(given.size) < n, given, 0)
    tiles = values.reshape(-1, 16)
    sums, odd = np.zeros((2, *given.shape), np.int32)
    for warp in range(0, given.size, 32):
        mine, here = values[warp : warp + 32], slice(warp, warp + 32)
        for label in range(3):
            sums[here][mine % 3 == label] = mine[mine % 3 == label].sum()
        lanes = np.flatnonzero(mine & 1)
        odd[warp + lanes] = mine[lanes[-1:]].sum() * 100 + np.arange(lanes.size)
    return sums, (np.cumsum(tiles, axis=1) - tiles).ravel(), odd


def added(given: np.ndarray, out: np.ndarray, rounds: int) -> tuple[np.ndarray, ...]:
    return (2 * given.sum(axis=0),)


def best(key: np.ndarray, value: np.ndarray, most: np.ndarray, counts: np.ndarray, n: int) -> tuple[np.ndarray, ...]:
    want, pairs = np.zeros(most.size, np.uint64), np.zeros((most.size, 2), np.float16)
    for each in range(most.size):
        at = np.flatnonzero(key == each)
        top = value[at].max()
        first = at[value[at] == top][0]
        want[each] = np.uint64(top) << np.uint64(32) | np.uint64(~np.uint32(first))
        pairs[each] = at.size, len(set((at // 32).tolist()))
    return want, pairs.ravel()


def ring(tiles: np.ndarray, out: np.ndarray, number: int) -> tuple[np.ndarray, ...]:
    return (np.array([(tiles.sum(axis=1) * np.arange(1, number + 1)).sum()], np.float32),)


@dataclass(frozen=True)
class Kernel:
    """A kernel, its launch, and what it must leave in its last arrays, by `reference`. `faults`: text, what replaces
    it, and the error; None for a wrong result."""

    name: str
    source: str
    grid: int
    block: int
    args: tuple[object, ...]
    reference: Callable[..., tuple[np.ndarray, ...]]
    faults: tuple[tuple[str, str, type[EmulatorError] | None], ...]

    def right(self, source: str) -> bool:
        """Run it with all checks; whether its results are right."""
        args = [each.copy() if isinstance(each, np.ndarray) else each for each in self.args]
        with checking(ALL_CHECKS):
            run(source, self.name, grid=(self.grid,), block=(self.block,), args=args, arch="sm_90")
        want = self.reference(*self.args)
        arrays = [each for each in args if isinstance(each, np.ndarray)][-len(want) :]
        return all(np.array_equal(one, other) for one, other in zip(arrays, want, strict=True))


def whole(high: int, *shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.integers(0, high, shape).astype(dtype)


def zeros(n: int, dtype: type = np.float32) -> np.ndarray:
    return np.zeros(n, dtype)


def draw(n: int) -> np.ndarray:
    return RNG.normal(size=n).astype(np.float16)


KERNELS = (
    Kernel(
        "axpy", HALVES, 3, 128, (draw(2 * 1152), draw(2 * 1152), zeros(6, np.float16), 1152), halves,
        (("__syncthreads();", "", Race), ("best[threadIdx.x / 32]", "best[threadIdx.x / 32 + 1]", OutOfBounds)),
    ),
    Kernel(
        "weigh", HISTOGRAM, 8, 96, (whole(64, KEYS, dtype=np.int32), whole(50, KEYS), zeros(64), KEYS), histogram,
        (("cluster.sync();\n    for", "__syncthreads();\n    for", Race),
         ("cluster.sync();\n    if", "__syncthreads();\n    if", Race)),
    ),
    Kernel(
        "groups", GROUPS, 5, 64, (whole(9, 320, dtype=np.int32), *(zeros(320, np.int32) for _ in range(3)), 300),
        groups,
        (("i < n ? in[i] : 0", "i <= n + 40 ? in[i] : 0", None), ("tiled_partition<16>", "tiled_partition<8>", None)),
    ),
    Kernel(
        "added", ADDED, 3, 128, (whole(99, 15, 128), zeros(128), 5), added,
        (("wait_group.read 1", "wait_group.read 2", AsyncRace),
         ('asm volatile("fence.proxy.async.shared::cta;" ::: "memory");', "", MissingProxyFence),
         ('asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");', ";", AsyncMisuse),
         ("__syncthreads();\n        tile", "tile", Race)),
    ),
    Kernel(
        "best", BEST, 4, 128,
        (whole(7, KINDS, dtype=np.uint32), whole(20, KINDS, dtype=np.uint32), zeros(7, np.uint64),
         zeros(14, np.float16), KINDS), best,
        (("__match_any_sync(alive", "__match_any_sync(0xffffffff", WarpMismatch),
         ("__reduce_max_sync(peers", "__reduce_max_sync(alive", None)),
    ),
    Kernel(
        "ring", RING, 1, 96, (whole(9, 8, 64), zeros(1), 8), ring,
        (("(t / 3 - 1) & 1", "t / 3 & 1", AsyncRace), ("init(empty + s, 64)", "init(empty + s, 63)", Race),
         ("t / 3 & 1);\n            sum", "(t / 3 + 1) & 1);\n            sum", Uninitialised),
         ("    __syncthreads();\n    if (threadIdx.x == 0) *out", "    if (threadIdx.x == 0) *out", None)),
    ),
)  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_kernel_is_right_and_its_planted_faults_are_found(kernel: Kernel) -> None:
    assert kernel.right(kernel.source)
    for text, fault, error in kernel.faults:
        assert kernel.source.count(text) == 1, text
        faulty = kernel.source.replace(text, fault)
        if error is None:
            assert not kernel.right(faulty), text
        else:
            with pytest.raises(error):
                kernel.right(faulty)
