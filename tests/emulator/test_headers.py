"""The header libraries of CUDA: cooperative groups, nvcuda::wmma, CUB's block primitives, libcu++'s pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import ALL_CHECKS, Uninitialised, WarpMismatch, checking


def launch(source: str, grid, block, *args, kernel: str = "k"):
    with checking(ALL_CHECKS):
        return Device(source).launch(kernel, grid, block, *args)


SIZES = (1, 2, 4, 8, 16, 32)
#: Kernels with cooperative groups, the first for each tile size. They are compiled together because the headers take
#: longer to compile than the kernels.
GROUPS = """#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
template <int size> __device__ void body(const int* a, int* o, int n) {
    auto tile = cg::tiled_partition<size>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = a[i];
    o[i] = cg::reduce(tile, v, cg::plus<int>());
    o[n + i] = cg::reduce(tile, v, cg::greater<int>());
    o[2 * n + i] = cg::inclusive_scan(tile, v);
    o[3 * n + i] = cg::exclusive_scan(tile, v);
    o[4 * n + i] = tile.shfl(v, tile.num_threads() - 1);
    o[5 * n + i] = tile.any(v > 95) + 2 * tile.all(v > 3);
    o[6 * n + i] = tile.thread_rank() + 100 * tile.meta_group_rank() + 10000 * tile.meta_group_size();
    tile.sync();
}
extern "C" __global__ void coalesced(const int* a, int* count, int* o) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (a[i] % 3 == 0) {
        auto active = cg::coalesced_threads();
        int first = 0;
        if (active.thread_rank() == 0) first = atomicAdd(count, active.num_threads());
        o[active.shfl(first, 0) + active.thread_rank()] = a[i];
    }
}
extern "C" __global__ void partitions(const int* a, int* o) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int t = threadIdx.x, v = a[t];
    auto same = cg::labeled_partition(warp, v % 3);
    o[t] = cg::reduce(same, v, cg::plus<int>());
    auto half = cg::binary_partition(warp, v > 50);
    o[64 + t] = half.num_threads();
}
extern "C" __global__ void block_group(const int* a, int* o) {
    __shared__ int s[96];
    auto block = cg::this_thread_block();
    s[block.thread_rank()] = a[block.group_index().x * 96 + block.thread_rank()];
    block.sync();
    int next = s[(block.thread_rank() + 1) % block.num_threads()];
    auto token = block.barrier_arrive();
    block.barrier_wait(static_cast<decltype(token)&&>(token));
    s[block.thread_rank()] = next;
    block.sync();
    auto grid = cg::this_grid();
    o[grid.thread_rank()] = s[95 - block.thread_rank()] + 1000 * grid.num_threads();
}
extern "C" __global__ void missed(int* o) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    if (threadIdx.x < 24) o[threadIdx.x] = cg::reduce(tile, 1, cg::plus<int>());
}
extern "C" __global__ void copies(const int* a, int* o) {
    __shared__ alignas(16) int s[128];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, s, a + 128 * blockIdx.x, sizeof(int) * 128);
    cg::wait(block);
    o[128 * blockIdx.x + threadIdx.x] = s[127 - threadIdx.x];
    o[128 * blockIdx.x + 64 + threadIdx.x] = s[63 - threadIdx.x];
}
""" + "".join(
    f'extern "C" __global__ void tiles_{size}(const int* a, int* o, int n) {{ body<{size}>(a, o, n); }}\n'
    for size in SIZES
)


@pytest.mark.thorough
@pytest.mark.parametrize("size", SIZES)
def test_tiles_shuffle_vote_and_reduce(size):
    """Sums, maxima, scans, shuffles, votes and ranks in tiles of a warp."""
    n = 192
    data, out = np.random.default_rng(0).integers(0, 100, n, np.int32), np.zeros(7 * n, np.int32)
    with checking(ALL_CHECKS):
        Device(GROUPS).launch(f"tiles_{size}", 2, 96, data, out, n)
    tiles = data.reshape(-1, size)
    found = out.reshape(7, -1, size)
    assert (found[0] == tiles.sum(axis=1, keepdims=True)).all()
    assert (found[1] == tiles.max(axis=1, keepdims=True)).all()
    assert (found[2] == tiles.cumsum(axis=1)).all() and (found[3] == tiles.cumsum(axis=1) - tiles).all()
    assert (found[4] == tiles[:, -1:]).all()
    assert (found[5] == (tiles > 95).any(axis=1, keepdims=True) + 2 * (tiles > 3).all(axis=1, keepdims=True)).all()
    number = np.arange(n).reshape(-1, size)
    assert (found[6] == number % size + 100 * (number % 96 // size) + 10000 * (96 // size)).all()


@pytest.mark.thorough
def test_coalesced_groups_number_their_threads():
    """One atomic serves all lanes of a warp that take the branch, as in the programming guide."""
    data = np.random.default_rng(1).permutation(300).astype(np.int32)[:256]
    count, out = np.zeros(1, np.int32), np.full(256, -1, np.int32)
    counters = launch(GROUPS, 4, 64, data, count, out, kernel="coalesced")
    want = data[data % 3 == 0]
    assert count[0] == want.size and sorted(out[: want.size].tolist()) == sorted(want.tolist())
    assert counters.total("global atomic").lanes <= 8


def test_labelled_and_binary_partitions_split_a_tile():
    data, out = np.random.default_rng(2).integers(0, 100, 64, np.int32), np.zeros(128, np.int32)
    launch(GROUPS, 1, 64, data, out, kernel="partitions")
    for w, lanes in enumerate(data.reshape(2, 32)):
        sums = [int(lanes[lanes % 3 == v % 3].sum()) for v in lanes]
        sizes = [int(((lanes > 50) == (v > 50)).sum()) for v in lanes]
        assert out[32 * w : 32 * w + 32].tolist() == sums
        assert out[64 + 32 * w : 96 + 32 * w].tolist() == sizes


def test_a_thread_block_is_a_group():
    data, out = np.arange(192, dtype=np.int32), np.zeros(192, np.int32)
    launch(GROUPS, 2, 96, data, out, kernel="block_group")
    want = np.roll(data.reshape(2, 96), -1, axis=1)[:, ::-1] + 192000
    assert (out.reshape(2, 96) == want).all()


def test_a_tile_operation_that_some_threads_miss_is_found():
    with pytest.raises(WarpMismatch):
        launch(GROUPS, 1, 32, np.zeros(32, np.int32), kernel="missed")


def test_memcpy_async_of_a_group_copies():
    data, out = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    launch(GROUPS, 2, 64, data, out, kernel="copies")
    assert (out.reshape(2, 128) == data.reshape(2, 128)[:, ::-1]).all()


WMMA = """#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const TYPE* a, const TYPE* b, float* c, int n, int depth) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, TYPE, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, TYPE, wmma::LAYOUT> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
    for (int k = 0; k < depth; k += 16) {
        wmma::load_matrix_sync(left, a + row * depth + k, depth);
        wmma::load_matrix_sync(right, STEP);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 0.5f;
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}"""


@pytest.mark.parametrize("layout", ["row_major", "col_major"])
@pytest.mark.parametrize("kind", ["half", "__nv_bfloat16"])
def test_wmma_products_match_numpy(kind, layout):
    """The elements are small integers, which both formats hold and whose sums are exact."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(-8, 9, (32, 64)), rng.integers(-8, 9, (64, 48))

    def kept(values: np.ndarray) -> np.ndarray:
        if kind == "half":
            return values.astype(np.float16)
        return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)

    step = "b + k * n + column, n" if layout == "row_major" else "b + column * depth + k, depth"
    source = WMMA.replace("LAYOUT", layout).replace("STEP", step).replace("TYPE", kind)
    source = ("#include <cuda_bf16.h>\n" if kind != "half" else "") + source
    out = np.zeros((32, 48), np.float32)
    launch(source, (3, 2), 32, kept(a), kept(b if layout == "row_major" else b.T.copy()), out, 48, 64)
    assert (out == 0.5 * (a @ b)).all()


def test_wmma_products_in_tf32_match_numpy():
    source = """#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const float* a, const float* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::load_matrix_sync(sum, c, 16, wmma::mem_row_major);
    for (int k = 0; k < 32; k += 8) {
        wmma::load_matrix_sync(left, a + k, 32);
        wmma::load_matrix_sync(right, b + k, 32);
        for (int i = 0; i < left.num_elements; ++i) left.x[i] = wmma::__float_to_tf32(left.x[i]);
        for (int i = 0; i < right.num_elements; ++i) right.x[i] = wmma::__float_to_tf32(right.x[i]);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}"""
    rng = np.random.default_rng(4)
    a, b = rng.integers(-99, 99, (16, 32)), rng.integers(-99, 99, (16, 32))
    out = np.ones((16, 16), np.float32)
    launch(source, 1, 32, a.astype(np.float32), b.astype(np.float32), out)
    assert (out == a @ b.T + 1).all()


@pytest.mark.thorough
def test_cub_block_primitives_match_numpy():
    source = """#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_radix_sort.cuh>
extern "C" __global__ void k(const int* a, int* sum, int* scan, int* sorted) {
    using Reduce = cub::BlockReduce<int, 128>;
    using Scan = cub::BlockScan<int, 128>;
    using Sort = cub::BlockRadixSort<int, 128, 2>;
    __shared__ typename Reduce::TempStorage r;
    __shared__ typename Scan::TempStorage s;
    __shared__ typename Sort::TempStorage q;
    int t = threadIdx.x, base = 256 * blockIdx.x, v[2] = {a[base + 2 * t], a[base + 2 * t + 1]}, before;
    int all = Reduce(r).Sum(v[0] + v[1]);
    if (t == 0) sum[blockIdx.x] = all;
    Scan(s).ExclusiveSum(v[0] + v[1], before);
    scan[128 * blockIdx.x + t] = before;
    Sort(q).Sort(v);
    sorted[base + 2 * t] = v[0];
    sorted[base + 2 * t + 1] = v[1];
}"""
    data = np.random.default_rng(5).integers(-(2**31), 2**31, 512, np.int32)
    total, scan, order = np.zeros(2, np.int32), np.zeros(256, np.int32), np.zeros(512, np.int32)
    launch(source, 2, 128, data, total, scan, order)
    halves = data.reshape(2, 128, 2).sum(axis=2, dtype=np.int64)
    assert (total == halves.sum(axis=1).astype(np.int32)).all()
    assert (scan.reshape(2, 128) == (halves.cumsum(axis=1) - halves).astype(np.int32)).all()
    assert (order.reshape(2, 256) == np.sort(data.reshape(2, 256), axis=1)).all()


@pytest.mark.thorough
def test_a_libcu_pipeline_double_buffers():
    source = """#include <cuda/pipeline>
extern "C" __global__ void k(const int* a, int* o, int steps) {
    __shared__ int s[2][32];
    auto pipe = cuda::make_pipeline();
    int t = threadIdx.x;
    pipe.producer_acquire();
    cuda::memcpy_async(&s[0][t], &a[t], sizeof(int), pipe);
    pipe.producer_commit();
    for (int i = 0; i < steps; ++i) {
        if (i + 1 < steps) {
            pipe.producer_acquire();
            cuda::memcpy_async(&s[(i + 1) % 2][t], &a[32 * (i + 1) + t], sizeof(int), pipe);
            pipe.producer_commit();
            cuda::pipeline_consumer_wait_prior<1>(pipe);
        } else {
            cuda::pipeline_consumer_wait_prior<0>(pipe);
        }
        __syncthreads();
        o[32 * i + t] = s[i % 2][31 - t];
        __syncthreads();
        pipe.consumer_release();
    }
}"""
    data, out = np.arange(160, dtype=np.int32), np.zeros(160, np.int32)
    launch(source, 1, 32, data, out, 5)
    assert (out.reshape(5, 32) == data.reshape(5, 32)[:, ::-1]).all()


MERGE_SORT = """#include <cub/block/block_merge_sort.cuh>
struct Less { template <class T> __device__ bool operator()(const T& a, const T& b) const { return a < b; } };
extern "C" __global__ void k(const int* in, int* out, int* sum, int first) {
    using Sort = cub::BlockMergeSort<int, 64, 4>;
    __shared__ typename Sort::TempStorage storage;
    __shared__ int ours[64];
    int v[4];
    for (int i = 0; i < 4; i++) v[i] = in[(blockIdx.x * 64 + threadIdx.x) * 4 + i];
    Sort(storage).Sort(v, Less{});
    for (int i = 0; i < 4; i++) out[(blockIdx.x * 64 + threadIdx.x) * 4 + i] = v[i];
    if (first <= threadIdx.x) ours[threadIdx.x] = v[0];
    __syncthreads();
    if (threadIdx.x == 0) sum[blockIdx.x] = ours[0] + ours[63];
}
"""


@pytest.mark.thorough
def test_merge_sort_of_cub_which_reads_an_element_ahead_is_right_and_reported_for_nothing() -> None:
    data = np.random.default_rng(4).integers(-99, 99, 512).astype(np.int32)
    out, total = np.zeros_like(data), np.zeros(2, np.int32)
    device = Device(MERGE_SORT)
    with checking(ALL_CHECKS):
        device.launch("k", 2, 64, data, out, total, 0)
    expected = np.sort(data.reshape(2, 256), axis=1)
    assert (out.reshape(2, 256) == expected).all() and (total == expected[:, 0] + expected[:, 252]).all()
    with checking(ALL_CHECKS), pytest.raises(Uninitialised, match="byte 0 of ours"):
        device.launch("k", 2, 64, data, out, total, 1)
