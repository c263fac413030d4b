"""Race reports: why they call an access unordered, what hands accesses over, and which reads and bytes they keep."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import ALL_CHECKS, Race, Uninitialised, checking


def race(body: str, grid: int, block: int, *args: np.ndarray) -> Race:
    """The race that a kernel with this body has."""
    device = Device('extern "C" __global__ void k' + body)
    with pytest.raises(Race) as caught, checking(ALL_CHECKS):
        device.launch("k", grid, block, *args)
    return caught.value


def test_race_within_the_second_warp_asks_for_a_syncwarp() -> None:
    """Threads 32 to 63 exchange values; threads 0 to 31 only clear theirs, before a barrier."""
    body = """(int* o) { __shared__ int s[64]; int t = threadIdx.x; s[t] = 0; __syncthreads();
        if (t >= 32) { s[t] = t; o[t] = s[t ^ 1]; } }"""
    error = race(body, 1, 64, np.zeros(64, np.int32))
    assert error.same_warp and error.where.thread[0] >= 32
    assert "both are of one warp, whose lanes run independently, and no __syncwarp lies between" in error.what


def test_a_syncwarp_of_half_a_warp_orders_no_read_of_the_other_half() -> None:
    """Of the readers of a cell all are kept, not only the last one, which lies in the half that the barrier orders."""
    body = """(int* o) { __shared__ int s; int t = threadIdx.x, v = 0; if (t == 0) s = 1; __syncthreads();
        if (t == 20) v = s;
        if (t < 16) { if (t == 3) v = s; __syncwarp(0xffff); if (t == 0) s = 2; }
        o[t] = v; }"""
    error = race(body, 1, 32, np.zeros(32, np.int32))
    assert error.same_warp and error.where.thread[0] == 0 and "this write of byte 0 of s" in error.what
    assert error.what.endswith("no __syncwarp lies between"), "no load of this kernel is relaxed: no fence would help"


def test_a_relaxed_load_without_a_fence_is_named_although_half_a_warp_has_synchronised() -> None:
    """Warp 1 waits for the flag of warp 0, which has read the cell, and writes the cell without a fence."""
    body = """(int* o) { __shared__ int s; __shared__ volatile int flag; int t = threadIdx.x, v = 0;
        if (t == 0) s = 1, flag = 0; __syncthreads();
        if (t < 32) { v = s; if (t < 16) __syncwarp(0xffff); __syncwarp(); __threadfence(); if (t == 0) flag = 1; }
        else if (t == 32) { while (flag == 0) { } s = 2; }
        o[t] = v; }"""
    error = race(body, 1, 64, np.zeros(64, np.int32))
    assert error.where.thread[0] == 32 and "a relaxed or volatile load has waited for that, but no fence" in error.what
    mended = body.replace("{ } s = 2", "{ } __threadfence(); s = 2")
    with checking(ALL_CHECKS):
        Device('extern "C" __global__ void k' + mended).launch("k", 1, 64, np.zeros(64, np.int32))


def test_race_between_two_warps_asks_for_a_syncthreads() -> None:
    body = "(int* o) { __shared__ int s[64]; int t = threadIdx.x; s[t] = t; o[t] = s[63 - t]; }"
    error = race(body, 1, 64, np.zeros(64, np.int32))
    assert not error.same_warp
    assert error.what.endswith("; no __syncthreads lies between") and "blocks run in any order" not in error.what


def test_race_between_two_blocks_says_that_blocks_run_in_any_order() -> None:
    body = "(int* x, int* o) { if (blockIdx.x == 0) x[0] = 3; if (blockIdx.x == 1) o[0] = x[0]; }"
    error = race(body, 2, 1, np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert "blocks run in any order, and no atomic with a fence orders the two" in error.what


def test_plain_read_of_a_flag_does_not_order_two_blocks() -> None:
    """The flag itself is no race, because its writer is volatile, but the data that it announces is.

    Block 1 first waits for another flag, which block 0 sets before its fence and which therefore orders nothing.
    """
    body = """(float* data, int* flag, volatile int* go, float* o) {
        if (blockIdx.x == 0) { data[0] = 5; go[0] = 1; __threadfence(); ((volatile int*)flag)[0] = 1; }
        else { while (go[0] == 0) { } int seen = flag[0]; __threadfence(); o[0] = data[0] + seen; } }"""
    error = race(
        body, 2, 1, np.zeros(1, np.float32), np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.float32)
    )
    assert error.name == "argument 0" and error.where.block == (1, 0, 0)


def test_read_of_one_block_is_kept_although_another_block_orders_its_own() -> None:
    """Thread 40 writes what thread 0 of block 0 has read; in block 1 only thread 40 itself has read it."""
    body = """(int* o) { __shared__ int s[64]; int t = threadIdx.x; s[t] = t; __syncthreads();
        int v = s[(t + 24 * blockIdx.x) % 64];
        if (t == 40) { v += s[0]; s[0] = 9; }
        o[blockIdx.x * 64 + t] = v; }"""
    error = race(body, 2, 64, np.zeros(128, np.int32))
    assert (error.where.block, error.where.thread, error.offset) == ((0, 0, 0), (40, 0, 0), 0)


def test_store_of_16_bytes_marks_exactly_its_own_bytes_as_written() -> None:
    device = Device(
        """extern "C" __global__ void fill(double2* o) { o[1] = make_double2(1, 2); }
        extern "C" __global__ void read(const double* a, double* o, int i) { o[0] = a[i]; }"""
    )
    fresh, out = device.memory.allocate(48, "fresh", initialised=False), np.zeros(1)
    device.launch("fill", 1, 1, fresh)
    assert np.flatnonzero(fresh.written).tolist() == list(range(16, 32))
    for index, value in ((2, 1.0), (3, 2.0)):
        device.launch("read", 1, 1, fresh, out, index)
        assert out[0] == value
    for index in (1, 4):
        with pytest.raises(Uninitialised, match=f"byte {8 * index} of fresh"):
            device.launch("read", 1, 1, fresh, out, index)


@pytest.mark.parametrize("fence", ["", "__threadfence_block(); "], ids=["whole", "in_part"])
def test_a_byte_of_a_word_that_is_written_whole_races_with_the_write_of_the_word(fence: str) -> None:
    """No store of the kernel is narrower than a word, so the search keeps words; a load of any byte is a load of one.

    With a fence in it, the kernel orders some threads without the others, and readers are kept one by one.
    """
    body = f"""(int* o) {{ __shared__ int s[64]; int t = threadIdx.x; s[t] = t; {fence}__syncthreads();
        int v = ((const unsigned char*)s)[4 * (63 - t) + 1]; {fence}__syncthreads(); s[t] = v; o[t] = s[t]; }}"""
    for barrier, what in (
        ("s[t] = t; BARRIER", "this read of byte 253 of s"),
        ("+ 1]; BARRIER", "this write of byte 0"),
    ):
        planted = body.replace(
            barrier.replace("BARRIER", f"{fence}__syncthreads();"), barrier.replace("BARRIER", fence)
        )
        assert what in race(planted, 1, 64, np.zeros(64, np.int32)).what
    with checking(ALL_CHECKS):
        Device('extern "C" __global__ void k' + body).launch("k", 1, 64, np.zeros(64, np.int32))


@pytest.mark.parametrize("fence", ["", "__threadfence_block(); "], ids=["whole", "in_part"])
def test_bytes_of_a_word_that_are_written_one_by_one_are_kept_apart(fence: str) -> None:
    """Each thread changes its own byte; the words are also loaded and stored whole."""
    body = f"""(int* o) {{ __shared__ int s[64]; int t = threadIdx.x; s[t] = t; {fence}__syncthreads();
        unsigned char* mine = (unsigned char*)s + t; *mine = *mine + 1; {fence}__syncthreads(); o[t] = s[t]; }}"""
    with checking(ALL_CHECKS):
        Device('extern "C" __global__ void k' + body).launch("k", 1, 64, np.zeros(64, np.int32))
    error = race(body.replace("*mine + 1", "mine[1] + 1"), 1, 64, np.zeros(64, np.int32))
    assert "of byte" in error.what and error.same_warp


LATE_READ = """(int* o, int* p) { int t = threadIdx.x; o[t] = t; __syncthreads(); p[t] = LOAD; }"""


@pytest.mark.parametrize(("load", "writer"), [("__ldg(o + t)", 0), ("__ldg(o + 63 - t)", 63)])
def test_read_only_load_of_what_the_launch_has_stored_is_refused_though_a_barrier_lies_between(
    load: str, writer: int
) -> None:
    error = race(LATE_READ.replace("LOAD", load), 1, 64, *np.zeros((2, 64), np.int32))
    assert "this read of byte" in error.what and "an ld.global.nc promises" in error.what
    assert (error.where.thread[0], error.other.thread[0], error.offset) == (0, writer, 4 * writer)


@pytest.mark.parametrize("load", ["o[63 - t]", "__ldg(o + 64 + t)"])
def test_other_loads_of_it_and_read_only_loads_of_the_rest_are_right(load: str) -> None:
    with checking(ALL_CHECKS):
        Device('extern "C" __global__ void k' + LATE_READ.replace("LOAD", load)).launch(
            "k", 1, 64, np.zeros(128, np.int32), np.zeros(64, np.int32)
        )
