"""Clocks, pauses, hints, elections, atomics of halves and vectors, and unsupported instructions."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device, run_ptx

from climb.emulator import ALL_CHECKS, Misaligned, UnsupportedInstruction, checking
from climb.emulator.memory.device_memory import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW


def test_clocks_grow_and_are_the_same_in_every_run():
    body = """extern "C" __global__ void k(long long* o, unsigned* p) {
    long long before = clock64();
    int spins = 0;
    while (clock64() - before < 10000) { __nanosleep(100); ++spins; }
    unsigned first = clock();
    if (threadIdx.x == 0) { o[0] = clock64() - before; o[1] = spins; p[0] = clock() - first; }
    unsigned long long timer; unsigned low, high;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
    asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(low));
    asm volatile("mov.u32 %0, %%clock_hi;" : "=r"(high));
    if (threadIdx.x == 0) { p[1] = low - unsigned(timer); p[2] = high; }
}"""
    found = []
    for _ in range(2):
        o, p = np.zeros(2, np.int64), np.zeros(3, np.uint32)
        Device(body).launch("k", 2, 64, o, p)
        found.append((o.tolist(), p.tolist()))
    assert found[0] == found[1]
    (elapsed, spins), (step, timer, high) = found[0]
    assert elapsed > 10000 and 0 < spins <= 10 and step > 0 and timer > 0 and high == 0


def test_hints_change_nothing():
    body = """extern "C" __global__ void k(int* o) {
    asm volatile("prefetch.global.L2 [%0];" :: "l"(o));
    asm volatile("prefetch.global.L1 [%0];" :: "l"(o + 1000000));
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(o), "r"(64));
    int far, once;
    asm volatile("ld.global.L2::128B.s32 %0, [%1];" : "=r"(far) : "l"(o + 35));
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.s32 %0, [%1];" : "=r"(once) : "l"(o + 36));
    o[threadIdx.x] = __ldcg(o + 32) + __ldcv(o + 33) + __ldlu(o + 34) + far + once;
}"""
    out = np.arange(64, dtype=np.int32)
    Device(body).launch("k", 1, 32, out)
    assert out[:32].tolist() == [32 + 33 + 34 + 35 + 36] * 32


def test_one_lane_is_elected():
    body = """extern "C" __global__ void k(unsigned* o) {
    unsigned leader, mine, mask = threadIdx.x % 32 < 8 ? 0xffu : 0xffffff00u;
    if (mask == 0xffu)
        asm volatile("{.reg .pred p; elect.sync %0|p, 0xff; selp.u32 %1, 1, 0, p;}" : "=r"(leader), "=r"(mine));
    else
        asm volatile("{.reg .pred p; elect.sync %0|p, 0xffffff00; selp.u32 %1, 1, 0, p;}" : "=r"(leader), "=r"(mine));
    o[threadIdx.x] = leader + 100 * mine;
}"""
    out = np.zeros(64, np.uint32)
    Device(body).launch("k", 1, 64, out)
    assert out.reshape(2, 32).tolist() == [[100, *[0] * 7, 108, *[8] * 23]] * 2


@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomics_of_halves_sum_exactly(space):
    """Sums of small integers are exact in both formats; pairs are added separately."""
    body = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void k(__half* h, __half2* h2, __nv_bfloat16* b, __nv_bfloat162* b2, float* old) {
    __shared__ __half2 memory[4];
    __half* sum = @@ ? (__half*)memory : h;
    if (@@ && threadIdx.x < 4) memory[threadIdx.x] = __floats2half2_rn(0.f, 0.f);
    __syncthreads();
    old[threadIdx.x] = __half2float(atomicAdd(sum + threadIdx.x % 2, __float2half(2.f)));
    atomicAdd(h2 + threadIdx.x % 4, __floats2half2_rn(1.f, threadIdx.x));
    atomicAdd(b, __float2bfloat16(1.f));
    atomicAdd(b2 + 1, __floats2bfloat162_rn(-1.f, 0.5f));
    __syncthreads();
    if (@@ && threadIdx.x < 2) h[threadIdx.x] = ((__half*)memory)[threadIdx.x];
}""".replace("@@", "true" if space == "shared" else "false")
    h, h2 = np.zeros(2, np.float16), np.zeros((4, 2), np.float16)
    b, b2, old = np.zeros(2, np.uint16), np.zeros((2, 2), np.uint16), np.zeros(64, np.float32)
    with checking(ALL_CHECKS):
        counters = Device(body).launch("k", 1, 64, h, h2, b, b2, old)
    assert h.tolist() == [64, 64]
    assert sorted(old[::2].tolist()) == [2 * i for i in range(32)] == sorted(old[1::2].tolist())
    assert h2.tolist() == [[16, sum(range(start, 64, 4))] for start in range(4)]
    wide = (b.astype(np.uint32) << 16).view(np.float32), (b2.astype(np.uint32) << 16).view(np.float32)
    assert wide[0].tolist() == [64, 0] and wide[1].tolist() == [[0, 0], [-64, 32]]
    assert counters.total(f"{space} atomic").lanes >= 64


def test_atomics_of_vectors_add_each_element():
    body = """extern "C" __global__ void k(float2* two, float4* four, float* old) {
    float2 before = atomicAdd(two + threadIdx.x % 3, make_float2(1.f, threadIdx.x));
    old[threadIdx.x] = before.x;
    atomicAdd(four + threadIdx.x / 16, make_float4(1.f, 2.f, 3.f, 4.f));
}"""
    two, four, old = np.zeros((3, 2), np.float32), np.zeros((4, 4), np.float32), np.zeros(64, np.float32)
    with checking(ALL_CHECKS):
        Device(body).launch("k", 1, 64, two, four, old)
    assert two.tolist() == [[len(range(i, 64, 3)), sum(range(i, 64, 3))] for i in range(3)]
    assert four.tolist() == [[16, 32, 48, 64]] * 4
    assert sorted(old[::3].tolist()) == list(range(22))
    with pytest.raises(Misaligned, match="8-byte atomic"):
        Device(body.replace("two + threadIdx.x % 3", "(float2*)((float*)two + 1)")).launch("k", 1, 64, two, four, old)


def test_cuda_atomic_ref_works():
    body = """#include <cuda/atomic>
extern "C" __global__ void k(int* o) {
    cuda::atomic_ref<int, cuda::thread_scope_device> sum(o[0]), flag(o[1]), most(o[2]);
    sum.fetch_add(1, cuda::memory_order_relaxed);
    most.fetch_max(int(threadIdx.x), cuda::memory_order_acq_rel);
    if (threadIdx.x == 5) { o[3] = 77; flag.store(1, cuda::memory_order_release); }
    if (threadIdx.x == 40) { while (flag.load(cuda::memory_order_acquire) == 0) { } o[4] = o[3]; }
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst);
}"""
    out = np.zeros(5, np.int32)
    with checking(ALL_CHECKS):
        Device(body).launch("k", 1, 64, out)
    assert out.tolist() == [64, 1, 63, 77, 77]


TEXTURE = (
    'float v[4]; asm volatile("%s;" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "l"((unsigned long long)o), '
    '"f"(1.0f));'
)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            'asm volatile("multimem.red.relaxed.gpu.global.add.u32 [%0], 1;" :: "l"(o));',
            "multimem.red.relaxed.gpu.global.add.u32 is not supported",
        ),
        (
            TEXTURE.replace("%s", "tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %5}], {1, 2}"),
            "offsets and depth comparisons",
        ),
        (
            TEXTURE.replace("%s", "tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %5}], %5"),
            "offsets and depth comparisons",
        ),
        (
            TEXTURE.replace("%s", "tld4.r.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %5}], {1, 2}"),
            "offsets and depth comparisons",
        ),
    ],
)
def test_unsupported_instructions_are_refused_by_name(code, says):
    body = f'\nextern "C" __global__ void k(int* o) {{\n{code}\n}}'
    with pytest.raises(UnsupportedInstruction, match=says) as caught:
        Device(body).launch("k", 1, 32, np.zeros(4, np.int32))
    assert caught.value.where.line == 3


def test_blocks_are_spread_over_the_multiprocessors_of_an_h200():
    body = """extern "C" __global__ void k(unsigned* o) {
    unsigned here, all;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(all));
    o[2 * blockIdx.x] = here; o[2 * blockIdx.x + 1] = all;
}"""
    o = np.zeros((200, 2), np.uint32)
    Device(body).launch("k", 200, 1, o)
    assert set(o[:, 0].tolist()) == set(range(132)) and set(o[:, 1].tolist()) == {132}


@pytest.mark.parametrize("space", ["shared", "local", "param", "param::entry", "global"])
def test_a_generic_address_is_in_the_window_of_one_space(space):
    """At the first and the last byte of each window, and beside them; what is in no window is global."""
    windows = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}
    size = LOCAL_WINDOW - SHARED_WINDOW
    # Of the window of shared memory, only blocks that are there have addresses.
    values = [1, SHARED_WINDOW - 1, SHARED_WINDOW, SHARED_WINDOW + 64, LOCAL_WINDOW, LOCAL_WINDOW + 1, PARAM_WINDOW - 1,
              PARAM_WINDOW, PARAM_WINDOW + size - 1, PARAM_WINDOW + size, 1 << 46]  # fmt: skip
    of = [next((name for name, start in windows.items() if start <= each < start + size), "global") for each in values]
    (found,) = run_ptx(
        f"isspacep.{space} %q, %i0; selp.u32 %o0, 1, 0, %q;", [("u64", values)], ["u32"], ".reg .pred %q;"
    )
    assert found.tolist() == [each == space.removesuffix("::entry") for each in of]


@pytest.mark.parametrize("space", ["param", "param::entry"])
def test_an_address_of_a_parameter_becomes_generic_and_back(space):
    (there,) = run_ptx(f"cvta.{space}.u64 %o0, %i0;", [("u64", [0, 8])], ["u64"])
    (back,) = run_ptx(f"cvta.to.{space}.u64 %o0, %i0;", [("u64", there.tolist())], ["u64"])
    assert (there.tolist(), back.tolist()) == ([PARAM_WINDOW, PARAM_WINDOW + 8], [0, 8])


def test_pointers_of_a_kernel_are_in_the_windows_of_what_they_point_to():
    body = """__constant__ int fixed; __device__ int variable;
extern "C" __global__ void k(unsigned* o, const __grid_constant__ int given) {
    __shared__ int s; int l[8]; s = 0; l[threadIdx.x] = 1;
    const void* at[] = {&s, l, &variable, o, &given};
    for (int i = 0; i < 5; ++i)
        o[i] = __isShared(at[i]) | __isLocal(at[i]) << 1 | (i < 4 && __isGlobal(at[i])) << 2
            | __isGridConstant(at[i]) << 3;
    o[5] = l[threadIdx.x]; }"""
    out = np.zeros(6, np.uint32)
    Device(body).launch("k", 1, 1, out, 5)
    assert out[:5].tolist() == [1, 2, 4, 4, 8]
