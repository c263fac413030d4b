"""Tiles of more than a warp: cooperative groups synchronise them through the system's part of shared memory."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device
from tools.thorough import thorough

from climb.emulator import ALL_CHECKS, Race, checking

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

template <int kSize, bool kSynchronise>
__global__ void tiles(const int* x, int* out) {
    __shared__ int values[256];
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<kSize>(block);
    int t = block.thread_rank(), first = tile.meta_group_rank() * kSize;
    values[t] = x[t];
    if (kSynchronise) tile.sync();
    int mirrored = values[first + kSize - 1 - tile.thread_rank()];
    int total = cg::reduce(tile, mirrored, cg::plus<int>());
    out[t] = 2 * total + tile.any(mirrored == 5);
    tile.sync();
    values[t] = mirrored + tile.shfl(mirrored, 3);
    tile.sync();
    out[256 + t] = values[first + (tile.thread_rank() + 40) % kSize];
}
"""


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(SOURCE, ("tiles<64, true>", "tiles<128, true>", "tiles<64, false>"))


@pytest.mark.parametrize("size", [thorough(64), 128])
def test_large_tiles_synchronise_reduce_vote_and_shuffle(device: Device, size: int) -> None:
    x, out = np.random.default_rng(size).integers(0, 100, 256).astype(np.int32), np.zeros(512, np.int32)
    with checking(ALL_CHECKS):
        device.launch(f"tiles<{size}, true>", 1, 256, x, out)
    mirrored = x.reshape(-1, size)[:, ::-1]
    sums, found = mirrored.sum(axis=1, keepdims=True), (mirrored == 5).any(axis=1, keepdims=True)
    assert (out[:256].reshape(-1, size) == 2 * sums + found).all()
    values = mirrored + mirrored[:, 3:4]
    assert (out[256:].reshape(-1, size) == np.roll(values, -40, axis=1)).all()


def test_a_missing_sync_of_a_large_tile_is_a_race(device: Device) -> None:
    with pytest.raises(Race, match="race in shared memory") as caught:
        device.launch("tiles<64, false>", 1, 256, np.zeros(256, np.int32), np.zeros(512, np.int32))
    assert "values[first + kSize - 1" in caught.value.where.text
