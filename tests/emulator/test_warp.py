"""Warp operations: compare with the rules of PTX, one lane at a time."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device, run_ptx

from climb.emulator import ALL_CHECKS, KernelWarning, WarpMismatch, checking
from climb.emulator.simt.lanes import Selection, rectangle

SHUFFLES = r"""
#define FULL 0xffffffffu
extern "C" {
__global__ void idx(const int* a, int* o, int s) { int t = blockIdx.x * blockDim.x + threadIdx.x; o[t] = __shfl_sync(FULL, a[t], s, W); }
__global__ void up(const int* a, int* o, int s) { int t = blockIdx.x * blockDim.x + threadIdx.x; o[t] = __shfl_up_sync(FULL, a[t], s, W); }
__global__ void down(const int* a, int* o, int s) { int t = blockIdx.x * blockDim.x + threadIdx.x; o[t] = __shfl_down_sync(FULL, a[t], s, W); }
__global__ void bfly(const int* a, int* o, int s) { int t = blockIdx.x * blockDim.x + threadIdx.x; o[t] = __shfl_xor_sync(FULL, a[t], s, W); }
}
"""  # noqa: E501


def source_lane(name: str, lane: int, step: int, width: int) -> int:
    """The lane that a shuffle reads from, by the CUDA C++ Programming Guide."""
    start = lane // width * width
    if name == "idx":
        return start + step % width
    if name == "up":
        return lane - step if lane - step >= start else lane
    if name == "down":
        return lane + step if lane + step < start + width else lane
    return lane ^ step if (lane ^ step) < start + width else lane


@pytest.mark.parametrize("width", [2, 8, 32])
@pytest.mark.parametrize("name", ["idx", "up", "down", "bfly"])
def test_shuffles_match_the_guide(name, width):
    device = Device(SHUFFLES.replace("W)", f"{width})"))
    data = np.random.default_rng(0).integers(-1000, 1000, 192).astype(np.int32)
    for step in (0, 1, 2, 5, 7, 16, 31):
        out = np.zeros_like(data)
        device.launch(name, 3, 64, data, out, step)
        want = [int(data[t // 32 * 32 + source_lane(name, t % 32, step, width)]) for t in range(192)]
        assert out.tolist() == want, step


def source_and_range(mode: str, lane: int, by: int, clamp: int, segment: int) -> tuple[int, bool]:
    """PTX ISA, section 9.7.9.6: the source lane of shfl.sync, and the predicate."""
    low = lane & segment
    limit = low | (clamp & ~segment & 31)
    source = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": low | (by & ~segment & 31)}[mode]
    inside = source >= limit if mode == "up" else source <= limit
    return (source if inside else lane), inside


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_with_any_clamp_and_segment_follow_ptx(mode: str) -> None:
    """CUDA C++ makes few of them: __shfl_up_sync always clamps at lane 0 of its segment."""
    values = list(range(100, 132))
    for segment in (0, 0b11000, 0b10000, 0b11100):
        for clamp in (0, 1, 3, 5, 17, 31):
            for by in (0, 1, 2, 6, 31):
                body = (
                    f"shfl.sync.{mode}.b32 %o0|%p0, %i0, {by}, {segment << 8 | clamp}, 0xffffffff; "
                    "selp.u32 %o1, 1, 0, %p0;"
                )
                got, inside = run_ptx(body, [("u32", values)], ["u32", "u32"])
                want = [source_and_range(mode, lane, by, clamp, segment) for lane in range(32)]
                assert got.tolist() == [100 + lane for lane, _ in want], (segment, clamp, by)
                assert inside.tolist() == [int(there) for _, there in want], (segment, clamp, by)


def test_doubles_and_lane_dependent_sources_can_be_shuffled():
    device = Device(
        'extern "C" __global__ void k(const double* a, double* o) { int t = threadIdx.x;'
        "o[t] = __shfl_sync(0xffffffffu, a[t], (t * 7 + 3) % 32) + __shfl_xor_sync(0xffffffffu, a[t], 4); }"
    )
    data = np.random.default_rng(1).random(64)
    out = np.zeros(64)
    device.launch("k", 1, 64, data, out)
    want = [data[t // 32 * 32 + (t * 7 + 3) % 32] + data[t ^ 4] for t in range(64)]
    assert out.tolist() == want


def test_a_warp_reduction_and_scan_match_numpy():
    device = Device(
        r"""extern "C" __global__ void k(const int* a, int* o, int* scan) { int t = blockIdx.x * blockDim.x + threadIdx.x, v = a[t];
        int s = v; for (int d = 16; d; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
        if (t % 32 == 0) o[t / 32] = s;
        int lane = threadIdx.x % 32; for (int d = 1; d < 32; d *= 2) { int u = __shfl_up_sync(0xffffffffu, v, d); if (lane >= d) v += u; }
        scan[t] = v; }"""  # noqa: E501
    )
    data = np.random.default_rng(2).integers(0, 100, 512).astype(np.int32)
    sums, scan = np.zeros(16, np.int32), np.zeros(512, np.int32)
    device.launch("k", 4, 128, data, sums, scan)
    assert sums.tolist() == data.reshape(16, 32).sum(1).tolist()
    assert scan.tolist() == data.reshape(16, 32).cumsum(1).ravel().tolist()


VOTES = r"""
extern "C" __global__ void k(const int* a, unsigned* o, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x; unsigned m = 0xffffffffu; unsigned* mine = o + t * 8; int pred;
    mine[0] = __ballot_sync(m, a[t] > n); mine[1] = __any_sync(m, a[t] > n); mine[2] = __all_sync(m, a[t] > n);
    mine[3] = __match_any_sync(m, a[t] % 4); mine[4] = __match_all_sync(m, a[t / 32 * 32 + (t % 32 > n)], &pred); mine[5] = pred;
    mine[6] = __reduce_add_sync(m, (unsigned)a[t]); mine[7] = __reduce_min_sync(m, a[t]);
}
"""  # noqa: E501


@pytest.mark.parametrize("n", [-1, 5, 40, 1000])
def test_votes_matches_and_reductions_match_python(n):
    device = Device(VOTES)
    data = np.random.default_rng(3).integers(0, 50, 128).astype(np.int32)
    data[64:96] = 7
    out = np.zeros((128, 8), np.uint32)
    device.launch("k", 2, 64, data, out, n)
    for t in range(128):
        warp = data[t // 32 * 32 : t // 32 * 32 + 32].tolist()
        flags = [v > n for v in warp]
        first = [warp[int(lane > n)] for lane in range(32)]
        equal = len(set(first)) == 1
        assert out[t].tolist() == [
            sum(1 << i for i in range(32) if flags[i]), any(flags), all(flags),
            sum(1 << i for i in range(32) if warp[i] % 4 == data[t] % 4),
            0xFFFFFFFF if equal else 0, equal, sum(warp), min(warp),
        ]  # fmt: skip


def test_each_half_of_a_warp_can_use_its_own_mask():
    """The halves run in one instruction and in two branches."""
    device = Device(
        r"""extern "C" __global__ void k(int* o) {
        int t = threadIdx.x; unsigned half = t < 16 ? 0x0000ffffu : 0xffff0000u;
        int s = __reduce_add_sync(half, t); unsigned b = __ballot_sync(half, t % 3 == 0);
        if (t < 16) s += __shfl_xor_sync(0x0000ffffu, t, 1); else s -= __shfl_sync(0xffff0000u, t, 16);
        o[t] = s; o[32 + t] = b; }"""
    )
    out = np.zeros(64, np.int32)
    device.launch("k", 1, 32, out)
    low, high = sum(range(16)), sum(range(16, 32))
    assert out[:32].tolist() == [low + (t ^ 1) if t < 16 else high - 16 for t in range(32)]
    third = [sum(1 << t for t in range(32) if t % 3 == 0 and (t < 16) == first) for first in (True, False)]
    assert out[32:].view(np.uint32).tolist() == [third[t >= 16] for t in range(32)]


def test_activemask_names_the_lanes_that_run_together():
    device = Device(
        'extern "C" __global__ void k(unsigned* o) { int t = threadIdx.x; unsigned m = 0;'
        "if (t % 2) m = __activemask(); o[t] = m; }"
    )
    out = np.zeros(40, np.uint32)
    device.launch("k", 1, 40, out)
    odd = sum(1 << t for t in range(1, 32, 2))
    assert out.tolist() == [(odd if t < 32 else 0b10101010) if t % 2 else 0 for t in range(40)]


def test_lanes_wait_for_the_lanes_in_their_mask():
    """Half of the warp takes a longer path; the shuffle is one instruction for all."""
    device = Device(
        r"""extern "C" __global__ void k(int* o) { int t = threadIdx.x, v = t;
        if (t < 16) { for (int i = 0; i < t; ++i) v += o[i] * i; }
        __syncwarp(); v += __shfl_xor_sync(0xffffffffu, v, 31); o[32 + t] = v; }"""
    )
    out = np.ones(64, np.int32)
    device.launch("k", 1, 32, out)
    each = [t + t * (t - 1) // 2 if t < 16 else t for t in range(32)]
    assert out[32:].tolist() == [each[t] + each[t ^ 31] for t in range(32)]


def test_block_votes_match_numpy():
    device = Device(
        r"""extern "C" __global__ void k(const int* a, int* o) {
        int b = blockIdx.x, t = threadIdx.x; int v = a[b * 50 + t];
        int c = __syncthreads_count(v > 50), d = __syncthreads_and(v > 0), e = __syncthreads_or(v > 98);
        o[b * 50 + t] = c * 100 + d * 10 + e; }"""
    )
    data = np.random.default_rng(5).integers(0, 100, (6, 50)).astype(np.int32)
    data[2] += 1
    out = np.zeros_like(data)
    found = device.launch("k", 6, 50, data, out)
    want = [[int((row > 50).sum()) * 100 + int((row > 0).all()) * 10 + int((row > 98).any())] * 50 for row in data]
    assert out.tolist() == want and found.barriers == 18


def test_lanes_that_have_left_are_not_waited_for():
    """CUDA C++ Programming Guide: all *non-exited* threads in the mask of __syncwarp must execute it."""
    source = """extern "C" __global__ void k(int* o) { __shared__ int s[32]; int t = threadIdx.x; if (t >= 20) return;
    s[t] = o[t]; __syncwarp(); o[t] = s[19 - t]; }"""
    out = np.arange(32, dtype=np.int32)
    with checking(ALL_CHECKS):
        Device(source).launch("k", 1, 32, out)
    assert out.tolist() == [*range(19, -1, -1), *range(20, 32)]


@pytest.mark.parametrize(
    "body,message",
    [
        ("if (t < 16) v = __shfl_sync(0xffffffffu, v, 20);", "left the kernel|lanes 0-15 wait here for lanes 16-31"),
        ("if (t >= 10) return; v = __shfl_down_sync(0xffffffffu, v, 1);", "names lane 10, which has left the kernel"),
        ("if (t < 8) v = __shfl_sync(0xf0u, v, 5);", "not in its own mask"),
        ("if (t < 8) v = __shfl_down_sync(0xffu, v, 4);", "reads the value of lane 8, which takes no part"),
        ("if (t < 16) __syncwarp(); else __syncthreads();", "lanes 16-31 wait at the barrier in line 3"),
    ],
)
def test_wrong_masks_are_found(body, message):
    device = Device(
        'extern "C" __global__ void k(int* o) {\n int t = threadIdx.x, v = o[t];\n'
        + body
        + "\n __syncthreads(); o[t] = v; }"
    )
    with pytest.raises(WarpMismatch, match=message) as caught:
        device.launch("k", 1, 32, np.zeros(32, np.int32))
    assert caught.value.where.line == 3


def test_a_mask_may_name_lanes_that_have_left() -> None:
    """CUDA lets the remaining lanes go on; the emulator warns, since the author of the mask counted on the others."""
    source = """extern "C" __global__ void k(unsigned* o) {
    int t = threadIdx.x;
    if (t % 32 >= 10) return;
    o[t] = __ballot_sync(0xffffffffu, t & 1) + (__shfl_sync(0xffffffffu, t, t / 2 % 8) << 16)
         + (__reduce_add_sync(0xffffffffu, 1) << 24);
    o[t] += __shfl_up_sync(0x3ffu, 0, 1);
}"""
    out = np.zeros(64, np.uint32)
    with checking(ALL_CHECKS), pytest.raises(WarpMismatch, match="names lane 10, which has left the kernel"):
        Device(source).launch("k", 1, 64, out)
    with pytest.warns(KernelWarning, match="line [45]: the mask names lane 10, which has") as caught:
        counters = Device(source).launch("k", 1, 64, out)
    for t in range(64):
        lane = t // 2 % 8 + t // 32 * 32
        assert out[t] == (0x2AA + (lane << 16) + (10 << 24) if t % 32 < 10 else 0)
    assert len(caught) == 2 and counters.notes[0].endswith("the operation goes on without it")


def test_a_lane_that_takes_part_in_another_shuffle_and_leaves_is_not_excused() -> None:
    """It was still running when others waited for it, so CUDA requires that it takes part in theirs."""
    source = """extern "C" __global__ void k(int* o) {
    int t = threadIdx.x;
    if (t < 16)
        o[t] = __shfl_xor_sync(0xffffffffu, t, 1);
    else
        o[t] = __shfl_xor_sync(0xffff0000u, t, 2);
}"""
    with pytest.raises(WarpMismatch, match="names lane 16, which has left the kernel") as caught:
        Device(source).launch("k", 1, 32, np.zeros(32, np.int32))
    assert caught.value.where.line == 4


def test_a_shuffle_that_reads_past_a_small_block_is_found():
    device = Device(
        'extern "C" __global__ void k(int* o) { o[threadIdx.x] = __shfl_xor_sync(0xffffffffu, o[threadIdx.x], 2); }'
    )
    with pytest.raises(WarpMismatch, match="reads the value of lane 2"):
        device.launch("k", 1, 2, np.zeros(2, np.int32))
    device.launch("k", 1, 4, np.zeros(4, np.int32))


def test_report_of_waiting_lanes_leaves_out_the_barriers_of_other_warps() -> None:
    source = """extern "C" __global__ void k(int* o) { int t = threadIdx.x, v = o[t];
    if (t < 16) v += __shfl_sync(0xffffffffu, v, 3);
    else if (t < 32) v += __shfl_sync(0xffffffffu, v, 5);
    else __syncthreads();
    o[t] = v; }"""
    with pytest.raises(WarpMismatch) as caught:
        Device(source).launch("k", 1, 64, np.zeros(64, np.int32))
    assert caught.value.what.endswith("; lanes 16-31 wait at the warp operation in line 3")
    assert "barrier" not in caught.value.what


@pytest.mark.parametrize("threads", [32, 48, 96, 256])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.6, 1])
def test_lanes_of_a_list_form_the_warps_that_hold_them(threads: int, share: float) -> None:
    whole = rectangle(7, threads)
    rng = np.random.default_rng(threads)
    for _ in range(3):
        flat = np.flatnonzero((rng.random((7, threads)) < share) & (rng.random((7, 1)) < 0.7))  # some blocks have none
        some = Selection(flat=flat).lanes(whole)
        if flat.size:
            some = Selection(flat=np.arange(flat.size)[flat.size // 3 :]).lanes(some)  # a part of a part
        expected = list(zip(some.block[0].tolist(), some.thread[0].tolist(), strict=True))
        assert expected == [divmod(lane, threads) for lane in flat[flat.size // 3 :].tolist()]
        assert some.linear().tolist() == flat[flat.size // 3 :].tolist()
        warps = sorted({(block, thread // 32) for block, thread in expected})
        assert some.warps == len(warps)
        matrix, _ = some.layout.matrix(some.linear().reshape(1, -1), some.shape)
        held = {lane: divmod(place, 32) for place, lane in zip(some.layout.place, some.linear().tolist(), strict=True)}
        for (block, thread), lane in zip(expected, some.linear().tolist(), strict=True):
            assert held[lane] == (warps.index((block, thread // 32)), thread % 32)
            assert some.layout.mask[held[lane]] and matrix[held[lane]] == lane
        assert np.count_nonzero(some.layout.mask) == len(expected)
        assert some.layout.first.tolist() == [min(t % 32 for b, t in expected if (b, t // 32) == w) for w in warps]
