"""Adverse schedules: what depends on the order of warps, blocks and copies is found, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from climb.cli import main
from climb.emulator import OutOfBounds, Schedule, Schedules, checking, load, scheduling
from climb.emulator.running import launch
from climb.toolchain import compile_cuda

SOURCE = r"""
#include <cuda_pipeline.h>
__device__ int last, ticket;
__device__ unsigned lock_;

// What depends on the schedule.
extern "C" __global__ void last_block(int* o) { if (threadIdx.x == 0) last = o[1] = blockIdx.x; o[0] = 7; }
extern "C" __global__ void warps(int* o)
{
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = 2 * t;
    o[t] = s[(t + 32) % 256];
}
extern "C" __global__ void after_the_barrier(int* o)
{
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = 2 * t;
    __syncthreads();
    o[t] = s[(t + 32) % 256];
    s[t] = -1;
}
extern "C" __global__ void early(int* o, int* a)
{
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = -1;
    __syncthreads();
    __pipeline_memcpy_async(&s[t], &a[t], 4); __pipeline_commit();
    o[t] = s[t];
    __pipeline_wait_prior(0);
}
extern "C" __global__ void late(int* o, int* a)
{
    __shared__ int s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &a[t], 4); __pipeline_commit();
    a[t] = -1;
    __pipeline_wait_prior(0);
    o[t] = s[t];
}
extern "C" __global__ void bulk(int* o, int* a)
{
    __shared__ alignas(16) int s[32];
    __shared__ alignas(8) unsigned long long barrier;
    int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(s), at = (unsigned)__cvta_generic_to_shared(&barrier);
    s[t] = -1;
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (t == 0) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                     :: "r"(to), "l"(a), "r"(at) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" :: "r"(at) : "memory");
    }
    __syncwarp();
    o[t] = s[t];
    for (int done = 0; !done;)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
    o[32 + t] = s[t];
}
extern "C" __global__ void sum_of_floats(float* o, float* a) { atomicAdd(o, a[blockIdx.x * blockDim.x + threadIdx.x]); }
extern "C" __global__ void first_warp(int* o)
{
    if (threadIdx.x % 32 == 0 && atomicExch(&last, 1) == 0 && threadIdx.x > 0) o[1000000] = 1;
}

// What does not.
extern "C" __global__ void reduction(int* o, int* a)
{
    __shared__ int s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = a[i];
    __syncthreads();
    for (int k = 128; k; k /= 2) { if (t < k) s[t] += s[t + k]; __syncthreads(); }
    if (t == 0) atomicAdd(o, s[0]);
    int many = __syncthreads_count(a[i] > 10);
    if (t == 1) atomicMax(o + 1, many);
}
extern "C" __global__ void divergent(int* o, int* a)
{
    int t = threadIdx.x, i = blockIdx.x * 256 + t, v = a[i];
    if (v % 3 == 0) for (int k = 0; k < v % 7; ++k) v += k * t; else if (v % 3 == 1) v = -v;
    v += __shfl_xor_sync(~0u, v, 1);
    o[i] = v;
}
extern "C" __global__ void producer(int* o, int* a)
{
    __shared__ int s[2][64];
    int t = threadIdx.x;
    if (t < 64) {
        for (int i = 0; i < 4; ++i) {
            if (i > 1) asm volatile("bar.sync %0, 128;" :: "r"(3 + i % 2));
            s[i % 2][t] = a[64 * i + t];
            asm volatile("bar.arrive %0, 128;" :: "r"(1 + i % 2));
        }
    } else {
        for (int i = 0; i < 4; ++i) {
            asm volatile("bar.sync %0, 128;" :: "r"(1 + i % 2));
            o[64 * i + t - 64] = s[i % 2][127 - t];
            if (i < 2) asm volatile("bar.arrive %0, 128;" :: "r"(3 + i % 2));
        }
    }
}
extern "C" __global__ void lock(int* o)
{
    for (bool done = false; !done;) {
        if (atomicCAS(&lock_, 0u, 1u) == 0u) {
            __threadfence();
            volatile int* count = o; *count = *count + 1;
            __threadfence();
            atomicExch(&lock_, 0u);
            done = true;
        }
    }
}
extern "C" __global__ void tickets(int* o)
{
    __shared__ int mine;
    if (threadIdx.x == 0) mine = atomicAdd(&ticket, 1);
    __syncthreads();
    int i = mine * 256 + threadIdx.x;
    o[i] = i;
}
extern "C" __global__ void pipelined(int* o, int* a)
{
    __shared__ int s[2][256];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[0][t], &a[t], 4); __pipeline_commit();
    for (int i = 0; i < 4; ++i) {
        if (i < 3) __pipeline_memcpy_async(&s[(i + 1) % 2][t], &a[256 * (i + 1) + t], 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        o[256 * i + t] = s[i % 2][255 - t];
        __syncthreads();
    }
}
"""
COMPILED = compile_cuda(SOURCE, filename="orders.cu")


@pytest.fixture(scope="module")
def module():
    return load(COMPILED.ptx, COMPILED.sources)


def compared(module, name: str, grid: int, block: int, schedules, *args):
    return launch(COMPILED, name, grid, block, args, module=module, compare=False, schedule=schedules)


DEPENDS = {
    "last_block": (8, 32, (np.zeros(2, np.int32),), ("argument 0", "last")),
    "warps": (1, 256, (np.zeros(256, np.int32),), ("argument 0",)),
    "after_the_barrier": (1, 256, (np.zeros(256, np.int32),), ("argument 0",)),
    "early": (1, 64, (np.zeros(64, np.int32), np.arange(64, dtype=np.int32)), ("argument 0",)),
    "late": (1, 64, (np.zeros(64, np.int32), np.arange(64, dtype=np.int32)), ("argument 0",)),
    "bulk": (1, 32, (np.zeros(64, np.int32), np.arange(32, dtype=np.int32)), ("argument 0",)),
    "sum_of_floats": (8, 256, (np.zeros(1, np.float32), np.random.default_rng(0).random(2048, np.float32)),
                      ("argument 0",)),
}  # fmt: skip


@pytest.mark.parametrize("name", DEPENDS)
def test_output_that_depends_on_the_schedule_is_reported(module, name):
    """Without the checks, which would stop most of these kernels."""
    grid, block, args, outputs = DEPENDS[name]
    with checking(()):
        usual = [each.copy() for each in args]
        compared(module, name, grid, block, None, *usual)
        given = [each.copy() for each in args]
        found = compared(module, name, grid, block, Schedules(6, seed=3), *given).comparison
    assert {each.output for each in found.differences} == set(outputs)
    assert all((a == b).all() for a, b in zip(given, usual, strict=True)), "the arrays hold the usual outputs"
    for each in found.differences:
        assert each.schedule in found.schedules and each.usual != each.found and each.count > 0
        if each.output == "argument 0":
            assert each.usual == usual[0][each.index]
            with checking(()):
                again = [one.copy() for one in args]
                compared(module, name, grid, block, each.schedule, *again)
            assert again[0][each.index] == each.found, "the schedule alone gives the same output again"
    first = found.differences[0]
    assert str(found).startswith("6 schedules, seeds 3 to 8: the outputs depend on the schedule\n")
    assert f"{first.output}: {first.count} elements differ under seed {first.schedule.seed}" in str(found)


RIGHT = {
    "reduction": (5, 256, (np.zeros(2, np.int32), np.arange(1280, dtype=np.int32))),
    "divergent": (3, 256, (np.zeros(768, np.int32), np.arange(768, dtype=np.int32))),
    "producer": (2, 128, (np.zeros(256, np.int32), np.arange(256, dtype=np.int32))),
    "lock": (1, 40, (np.zeros(1, np.int32),)),
    "pipelined": (3, 256, (np.zeros(1024, np.int32), np.arange(1024, dtype=np.int32))),
    "tickets": (5, 256, (np.zeros(1280, np.int32),)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_correct_kernel_gives_the_same_bits_under_every_schedule(module, name):
    grid, block, args = RIGHT[name]
    module.symbol("ticket").data[:] = 0
    found = compared(module, name, grid, block, Schedules(3), *(each.copy() for each in args)).comparison
    assert not found and str(found) == "3 schedules, seeds 0 to 2: the outputs are equal, bit by bit"


@pytest.mark.parametrize("name", ["reduction", "divergent", "pipelined"])
def test_schedule_changes_no_counter(module, name):
    """Warps reconverge as usual, whichever runs first."""
    grid, block, args = RIGHT[name]
    usual, other = (
        compared(module, name, grid, block, one, *(each.copy() for each in args)).counters
        for one in (None, Schedule(1))
    )
    assert str(usual) == str(other)


@pytest.mark.parametrize(("copies", "sees"), [("early", "copy"), ("late", "old"), ("mixed", "")])
def test_copies_land_when_the_schedule_says(module, copies, sees):
    """`early` reads the target before the wait, `late` writes the source before it."""
    data, found = np.arange(64, dtype=np.int32), {}
    for kernel in ("early", "late"):
        found[kernel] = np.zeros(64, np.int32)
        with checking(()):
            compared(module, kernel, 1, 64, Schedule(7, copies), found[kernel], data.copy())
    minus = np.full(64, -1)
    assert not sees or (found["early"] == (data if sees == "copy" else minus)).all()
    assert not sees or (found["late"] == (data if sees == "copy" else minus)).all()
    assert set(found["early"].tolist()) <= {-1, *range(64)}
    out = np.zeros(64, np.int32)
    with checking(()):
        compared(module, "bulk", 1, 32, Schedule(7, copies), out, data[:32].copy())
    assert (out[32:] == data[:32]).all()
    assert not sees or (out[:32] == (data[:32] if sees == "copy" else -1)).all()


def test_scheduling_reaches_launches_that_are_given_no_schedule(module):
    out, data = np.zeros(64, np.int32), np.arange(64, dtype=np.int32)
    with checking(()):
        with scheduling(Schedule(0, "early")):
            compared(module, "early", 1, 64, None, out, data)
        assert (out == data).all()
        compared(module, "early", 1, 64, None, out, data)
    assert (out == -1).all()


def test_same_seed_gives_the_same_comparison_and_another_seed_another(module):
    grid, block, args, _ = DEPENDS["sum_of_floats"]
    found = [
        compared(module, "sum_of_floats", grid, block, Schedules(4, seed), *(each.copy() for each in args)).comparison
        for seed in (0, 0, 50)
    ]
    assert found[0] == found[1] and found[0].differences != found[2].differences


def test_fault_that_only_a_schedule_shows_names_the_schedule(module):
    module.symbol("last").data[:] = 0
    args = (2, 256, np.zeros(1, np.int32))
    compared(module, "first_warp", *args[:2], None, args[2])
    module.symbol("last").data[:] = 0
    with pytest.raises(OutOfBounds, match=r"under seed \d \(\w+ copies\); the usual order does not show it"):
        compared(module, "first_warp", *args[:2], Schedules(8), args[2])


def test_unknown_time_of_copies_is_refused():
    with pytest.raises(ValueError, match="copies is 'soon'; expected one of early, late, mixed"):
        Schedule(1, "soon")
    assert [Schedule(seed).copies for seed in range(4)] == ["early", "late", "mixed", "early"]
    assert Schedule(1, "early").copies == "early"


def test_command_line_runs_schedules_and_its_status_tells(tmp_path, capsys):
    path = tmp_path / "orders.cu"
    path.write_text(SOURCE, encoding="utf-8")

    def emulated(kernel: str, grid: int, block: int, *arrays: str) -> int:
        launched = ["--kernel", kernel, "--grid", str(grid), "--block", str(block), "--schedules", "3", "--seed", "5"]
        return main(["emulate", str(path), *launched, *(word for each in arrays for word in ("--arg", each))])

    assert emulated("sum_of_floats", 8, 256, "o:float32:1", "a:float32:2048:random") == 10
    assert "3 schedules, seeds 5 to 7: the outputs depend on the schedule" in capsys.readouterr().out
    assert emulated("divergent", 3, 256, "o:int32:768", "a:int32:768:range") == 0
    assert "3 schedules, seeds 5 to 7: the outputs are equal, bit by bit" in capsys.readouterr().out
