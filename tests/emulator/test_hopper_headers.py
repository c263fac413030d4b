"""Clusters, barriers and bulk copies of Hopper through NVIDIA's headers: cooperative groups and libcu++."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import ALL_CHECKS, OutOfBounds, checking

COOPERATIVE = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(4, 1, 1) k(int* o, int size) {
    __shared__ int s[32];
    auto cluster = cg::this_cluster();
    s[threadIdx.x] = 100 * cluster.block_rank() + threadIdx.x;
    cluster.sync();
    unsigned next = (cluster.block_rank() + 1) % size;
    int* there = cluster.map_shared_rank(s, next);
    o[blockIdx.x * 32 + threadIdx.x] = there[threadIdx.x] + 10000 * cluster.query_shared_rank(there);
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait((decltype(token)&&)token);
}"""


def test_cooperative_groups_know_their_cluster() -> None:
    out, device = np.zeros((8, 32), np.int32), Device(COOPERATIVE)
    with checking(ALL_CHECKS):
        device.launch("k", 8, 32, out, 4)
    following = (np.arange(8).reshape(-1, 1) + 1) % 4
    assert (out == 10100 * following + np.arange(32)).all()
    with pytest.raises(OutOfBounds, match="rank 4 of a cluster of 4"):
        device.launch("k", 8, 32, out, 5)


LIBCU = """#include <cuda/barrier>
namespace device = cuda::device::experimental;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void k(const int* in, int* out) {
    __shared__ alignas(128) int s[4][64];
    __shared__ Barrier bar;
    int t = threadIdx.x;
    if (t == 0) { init(&bar, blockDim.x); device::fence_proxy_async_shared_cta(); }
    __syncthreads();
    Barrier::arrival_token token;
    if (t == 0) {
        device::cp_async_bulk_global_to_shared(s[0], in, sizeof(s[0]), bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(s[0]));
    } else token = bar.arrive();
    bar.wait(std::move(token));
    out[t] = s[0][63 - t];
    cuda::memcpy_async(&s[1][t], in + 64 + t, sizeof(int), bar);
    bar.arrive_and_wait();
    out[64 + t] = s[1][63 - t];
    if (t == 0) cuda::memcpy_async(s[2], in + 128, cuda::aligned_size_t<16>(sizeof(s[2])), bar);
    bar.arrive_and_wait();
    s[3][t] = s[2][63 - t];
    device::fence_proxy_async_shared_cta();
    __syncthreads();
    if (t == 0) {
        device::cp_async_bulk_shared_to_global(out + 128, s[3], sizeof(s[3]));
        device::cp_async_bulk_commit_group();
        device::cp_async_bulk_wait_group_read<0>();
    }
}"""


@pytest.mark.thorough
def test_bulk_copies_and_memcpy_async_of_libcu_work() -> None:
    """The three ways in which cuda::barrier waits for copies, and a bulk store, as the Programming Guide has them."""
    values, out = np.arange(192, dtype=np.int32), np.zeros(192, np.int32)
    with checking(ALL_CHECKS):
        Device(LIBCU).launch("k", 1, 64, values, out)
    assert (out.reshape(3, 64) == values.reshape(3, 64)[:, ::-1]).all()
