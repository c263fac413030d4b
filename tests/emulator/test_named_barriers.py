"""Named barriers for some threads of a block, and switch tables."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device, ptx_of

from climb.emulator import ALL_CHECKS, BarrierDivergence, DeviceMemory, Race, UnsupportedInstruction, checking, load

HEAD = """
__device__ void wait_for(int n, int threads) { asm volatile("bar.sync %0, %1;" :: "r"(n), "r"(threads) : "memory"); }
__device__ void arrive(int n, int threads) { asm volatile("bar.arrive %0, %1;" :: "r"(n), "r"(threads) : "memory"); }
"""


def run(body: str, grid, block, *args, checks=ALL_CHECKS):
    device = Device(HEAD + body)
    with checking(checks):
        return device.launch("k", grid, block, *args)


def test_each_half_of_a_block_waits_for_itself():
    """The second half makes two rounds: the barriers of the halves are independent."""
    body = """extern "C" __global__ void k(int* o) {
    __shared__ int s[128];
    int t = threadIdx.x, half = t / 64, base = 64 * half, u = t % 64;
    for (int i = 0; i <= half; ++i) {
        s[t] = 10 * i + u;
        wait_for(1 + half, 64);
        o[blockIdx.x * 128 + t] = s[base + 63 - u];
        wait_for(1 + half, 64);
    }
}"""
    out = np.zeros(3 * 128, np.int32)
    counters = run(body, 3, 128, out)
    u = np.arange(64)
    assert out.reshape(3, 128).tolist() == [[*(63 - u), *(10 + 63 - u)]] * 3
    assert counters.barriers == 3 * (2 + 4)


PIPE = """extern "C" __global__ void k(const int* a, int* o, int rounds) {
    __shared__ int box[32];
    int t = threadIdx.x;
    if (t < 32) {                       // the producer
        for (int i = 0; i < rounds; ++i) {
            if (i > 0) wait_for(2, 64);     // the box is empty
            box[t] = a[32 * i + t];
            @@
        }
    } else {                            // the consumer
        for (int i = 0; i < rounds; ++i) {
            wait_for(1, 64);                // the box is full
            o[32 * i + t - 32] = box[63 - t] + 1;
            if (i + 1 < rounds) arrive(2, 64);
        }
    }
}"""


def test_producer_and_consumer_meet_from_different_places():
    data, out = np.arange(160, dtype=np.int32), np.zeros(160, np.int32)
    run(PIPE.replace("@@", "arrive(1, 64);"), 1, 64, data, out, 5)
    assert out.reshape(5, 32).tolist() == (data.reshape(5, 32)[:, ::-1] + 1).tolist()


def test_a_consumer_without_a_producer_is_found():
    data, out = np.arange(160, dtype=np.int32), np.zeros(160, np.int32)
    with pytest.raises(BarrierDivergence, match="barrier 1 waits for 64 threads, but only 32 have arrived") as caught:
        run(PIPE.replace("@@", ""), 1, 64, data, out, 1)
    assert caught.value.where.lanes == 32 and 'asm volatile("bar.sync' in caught.value.where.text


def test_a_warp_counts_once_its_last_lane_has_arrived():
    body = """extern "C" __global__ void k(int* o) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t % 2) s[t] = 3 * t; else s[t] = 5 * t;
    wait_for(3, 64);
    o[t] = s[63 - t];
}"""
    out = np.zeros(64, np.int32)
    run(body, 1, 64, out)
    t = 63 - np.arange(64)
    assert out.tolist() == np.where(t % 2, 3 * t, 5 * t).tolist()


def test_lanes_that_have_left_are_not_waited_for():
    body = """extern "C" __global__ void k(int* o) {
    int t = threadIdx.x;
    if (t % 32 > 20) return;
    wait_for(4, 64);
    o[t] = 1;
}"""
    out = np.zeros(64, np.int32)
    run(body, 2, 64, out)
    assert out.sum() == 2 * 21


def test_votes_cover_the_threads_at_the_barrier():
    body = """extern "C" __global__ void k(const int* a, int* o) {
    int t = threadIdx.x, n = 1 + t / 64, count, all, any;
    asm volatile("{.reg .pred p, q; setp.ne.s32 p, %3, 0; bar.red.popc.u32 %0, %4, 64, p;"
                 "bar.red.and.pred q, %4, 64, p; selp.s32 %1, 1, 0, q;"
                 "bar.red.or.pred q, %4, 64, p; selp.s32 %2, 1, 0, q;}"
                 : "=r"(count), "=r"(all), "=r"(any) : "r"(a[t]), "r"(n));
    o[t] = count + 1000 * all + 2000 * any;
}"""
    data = np.array([*[1] * 64, *[0] * 60, 1, 1, 0, 1], np.int32)
    out = np.zeros(128, np.int32)
    run(body, 1, 128, data, out)
    assert out.tolist() == [64 + 1000 + 2000] * 64 + [3 + 2000] * 64


def test_a_vote_over_different_places_is_refused():
    body = """extern "C" __global__ void k(int* o) {
    int n;
    if (threadIdx.x < 32)
        asm volatile("{.reg .pred p; setp.eq.s32 p, 0, 0; bar.red.popc.u32 %0, 1, 64, p;}" : "=r"(n));
    else { wait_for(1, 64); n = 0; }
    o[threadIdx.x] = n;
}"""
    with pytest.raises(UnsupportedInstruction, match="a vote over threads at different places"):
        run(body, 1, 64, np.zeros(64, np.int32))


def test_a_barrier_between_other_warps_does_not_hide_a_race():
    """Warps 0 and 1 wait for each other; warp 2 does not."""
    body = """extern "C" __global__ void k(int* o) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) s[t] = t;
    if (t < 64) wait_for(1, 64);
    if (t >= @@) o[t] = s[t % 32];
}"""
    with pytest.raises(Race, match="this read of byte 0 of s"):
        run(body.replace("@@", "64"), 1, 96, np.zeros(96, np.int32))
    run(body.replace("t >= @@", "t >= 32 && t < 64"), 1, 96, np.zeros(96, np.int32))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("wait_for(16, 64)", "there is no barrier 16; barriers are numbered 0 to 15"),
        ("wait_for(1, 40)", "a barrier waits for whole warps, not for 40 threads"),
        ("wait_for(1, threadIdx.x < 32 ? 64 : 96)", "threads disagree on how many threads the barrier waits for"),
    ],
)
def test_wrong_barrier_numbers_and_counts_are_found(call, says):
    body = 'extern "C" __global__ void k(int* o) { ' + call + "; o[threadIdx.x] = 1; }"
    with pytest.raises(BarrierDivergence, match=says):
        run(body, 1, 96, np.zeros(96, np.int32))


def test_a_barrier_with_another_number_can_cover_the_whole_block():
    body = """extern "C" __global__ void k(int* o) {
    __shared__ int s[96];
    s[threadIdx.x] = threadIdx.x;
    asm volatile("barrier.sync 5;" ::: "memory");
    o[threadIdx.x] = s[95 - threadIdx.x];
}"""
    out = np.zeros(96, np.int32)
    assert run(body, 1, 96, out).barriers == 1
    assert out.tolist() == list(range(95, -1, -1))


def test_a_branch_table_selects_its_entry():
    """brx.idx, which NVRTC did not generate for any switch we tried; entry 3 is the default."""
    body = """
    {
    brx.idx %i0, table;
    table: .branchtargets first, second, second, other;
    first: mov.u32 %o0, 11; bra.uni done;
    second: mad.lo.u32 %o0, %i0, 100, 2; bra.uni done;
    other: mov.u32 %o0, 7;
    done:
    }"""
    text = ptx_of(body, ["u32"], ["u32"])
    memory = DeviceMemory()
    given, out = memory.allocate(256), memory.allocate(256)
    index = np.arange(64, dtype=np.uint32) % 4
    given.data[:] = index.view(np.uint8)
    args = [held.address.to_bytes(8, "little") for held in (given, out)]
    counters = load(text).kernel("k").launch(1, 64, args, memory=memory)
    assert out.data.view(np.uint32).tolist() == [[11, 102, 202, 7][i] for i in index]
    assert counters.divergent_branches


def test_block_of_one_thread_that_waits_for_two_warps_is_found() -> None:
    """Barriers count whole warps, so one thread arrives as 32."""
    with pytest.raises(BarrierDivergence, match="barrier 1 waits for 64 threads, but only 32 have arrived"):
        run('extern "C" __global__ void k(int* o) { wait_for(1, 64); o[0] = 1; }', 1, 1, np.zeros(1, np.int32))
