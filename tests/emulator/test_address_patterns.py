"""Counts and values are the same whether addresses are known from earlier accesses, and whether blocks use shared
memory alike."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from harness import Device

from climb.emulator.counters import access_cost, address_patterns, cost_model
from climb.emulator.runtime import shared_memory
from climb.emulator.simt.lanes import Lanes, rectangle

MEASURES = (cost_model.sectors, cost_model.wavefronts, cost_model.load_wavefronts, cost_model.atomic_sectors)
MOVES = (4, -4, 1 << 12, -(1 << 12) - 12, 1 << 63, 3)


def addresses(rng: np.random.Generator, lanes: Lanes) -> np.ndarray:
    """Rows of a matrix, other strides, a few rows apart, or any addresses."""
    thread, block = lanes.thread, lanes.block
    kinds = (
        4 * thread + 512 * block,
        132 * thread + 4 * block,
        4 * (thread % 16) + 96 * (thread // 16) + 0 * block,
        rng.integers(0, 64, lanes.shape) * 4,
    )
    return kinds[int(rng.integers(4))]


@pytest.mark.parametrize("ragged", [False, True])
def test_cost_of_moved_addresses_is_that_of_the_same_addresses_computed_anew(ragged: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(12):
        lanes = rectangle(6, 96)
        if ragged:
            lanes = Lanes.listed(np.flatnonzero(rng.random(600) < 0.8), 96)
        address = addresses(rng, lanes) + (1 << 40)
        for step in rng.choice(len(MOVES), 4):
            move = np.array([[MOVES[step]]], np.uint64 if MOVES[step] >> 63 == 1 else np.int64).view(np.int64)
            moved = address_patterns.moved_by(*((address, move) if step % 2 else (move, address)))
            assert (moved == address + move).all()
            for measure in MEASURES:
                for width in (4, 8):
                    found = access_cost.access_cost(lanes, moved, 8, width, measure)
                    run = access_cost.runs(lanes, moved, width)
                    fresh = moved.copy()
                    assert found == access_cost.access_cost(lanes, fresh, 8, width, measure)
                    again = access_cost.runs(lanes, fresh, width)
                    assert (run is None) == (again is None) and (run is None or (run == again).all())
            address = moved


@pytest.mark.parametrize("kind", [np.int32, np.uint32])
def test_cost_of_moved_indices_is_that_of_the_same_addresses_computed_anew(kind: type) -> None:
    rng, lanes = np.random.default_rng(5), rectangle(6, 96)
    known = 0
    for start in (0, 1000, 1 << 31, (1 << 32) - 700):  # the last ones wrap, or are negative
        index = (np.arange(576).reshape(6, 96) * int(rng.integers(1, 4)) + start).astype(np.uint32).view(kind)
        for move in (300, 300, 300, -(1 << 20), 1 << 31, 1 << 30, 1 << 31):
            factor = np.array([[rng.choice([4, 4, 8])]], kind)
            offset = address_patterns.scaled(index, factor)
            assert (offset == index.astype(offset.dtype) * factor.astype(offset.dtype)).all()
            address = address_patterns.moved_by(offset.view(np.int64), np.array([[1 << 45]]))
            known += address_patterns._entry(address)[1].pattern is not None
            found = access_cost.access_cost(lanes, address, 0, 4, cost_model.sectors)
            assert found == access_cost.access_cost(lanes, address.copy(), 0, 4, cost_model.sectors)
            index = address_patterns.moved_by(index, np.array([[move % (1 << 32)]], np.uint32).view(kind))
    assert known > 8


def test_an_array_at_the_place_of_one_that_is_gone_is_looked_at_anew() -> None:
    lanes = rectangle(1, 32)
    for stride in (4, 8, 16, 32, 64, 128) * 20:  # NumPy gives the next array the memory of the last one
        address = np.arange(32).reshape(1, 32) * stride
        assert access_cost.access_cost(lanes, address, 0, 4, cost_model.sectors).achieved == min(stride, 32)
    gc.collect()
    assert len(address_patterns._arrays) <= address_patterns._MOST


SOURCE = r"""
template <typename T> __device__ void turn(const T* in, T* out, int row, int step) {
    extern __shared__ char memory[];
    T* s = (T*)memory;
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t / 32 * row + t % 32] = in[i];      // consecutive for each warp
    __syncthreads();
    T v = s[(t * step) % blockDim.x / 32 * row + (t * step) % 32];
    __syncthreads();
    s[t % 32 * 4 + t / 32] = v;            // apart
    __syncthreads();
    out[i] = s[t % 32 * 4 + t / 32];
    __syncthreads();
    s[t] = v;
    __syncthreads();
    if (t < 8) s[0 * t] = in[0];           // to one place, the same value
    __syncthreads();
    if (t == 0) out[i] = s[0];
}
extern "C" __global__ void turn1(const char* a, char* b, int r, int s) { turn(a, b, r, s); }
extern "C" __global__ void turn4(const float* a, float* b, int r, int s) { turn(a, b, r, s); }
extern "C" __global__ void turn8(const double* a, double* b, int r, int s) { turn(a, b, r, s); }
"""


@pytest.fixture(scope="module")
def device() -> Device:
    return Device(SOURCE)


@pytest.mark.parametrize(("kernel", "dtype"), [("turn1", np.int8), ("turn4", np.float32), ("turn8", np.float64)])
def test_blocks_that_use_shared_memory_alike_get_the_values_of_the_general_way(
    device: Device, monkeypatch: pytest.MonkeyPatch, kernel: str, dtype: type
) -> None:
    given = np.random.default_rng(3).integers(0, 100, 20 * 128).astype(dtype)
    for row, step in ((32, 1), (33, 5), (40, 32)):
        found = []
        for fewest in (shared_memory.FEWEST_BLOCKS, 1000):
            monkeypatch.setattr(shared_memory, "FEWEST_BLOCKS", fewest)
            out = np.zeros_like(given)
            counters = device.launch(kernel, 20, 128, given, out, row, step, shared=2048)
            found.append((out, counters))
        monkeypatch.undo()
        assert np.array_equal(found[0][0], found[1][0]) and found[0][1] == found[1][1]
        source = np.arange(128) * step % 128
        expected = given.reshape(20, 128)[:, source // 32 * 32 + np.arange(128) * step % 32].copy()
        expected[:, 0] = given[0]
        assert np.array_equal(found[0][0].reshape(20, 128), expected)


@pytest.mark.parametrize("measure", [*MEASURES, *cost_model.SHARED_MEASURES.values(), cost_model.local_sectors])
def test_cost_of_a_single_lane_is_that_of_its_pattern(monkeypatch, measure: cost_model.Measure) -> None:
    """Wherever in a cache line it accesses memory, and wherever in its warp it is."""
    monkeypatch.setattr(access_cost, "_single", {})  # so that the first of several addresses answers for the others
    for width in (1, 2, 4, 8, 16):
        for thread, start in ((thread, start) for thread in (0, 37) for start in range(64)):
            lanes, address = Lanes(np.array([[1]]), np.array([[thread]]), 96, True), np.array([[start + 4096]])
            found = access_cost.access_cost(lanes, address, -4, width, measure)
            assert found == access_cost._of_lanes(lanes, address, -4, width, measure)
