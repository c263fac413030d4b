"""Programmatic dependent launches: what they access before the launches before them may have ended is found."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from climb.emulator import ALL_CHECKS, DeviceMemory, EarlyAccess, Module, checking, dependent_launches, load
from climb.toolchain import compile_cuda

SOURCE = r"""
#define TRIGGER asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define WAIT asm volatile("griddepcontrol.wait;" ::: "memory")
#define BULK "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
constexpr unsigned kAll = 0xffffffff;

extern "C" __global__ void first(int* a, int* b, int how)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (how == 1 || (how == 2 && blockIdx.x == 1)) TRIGGER;
    if (how == 3) { TRIGGER; atomicAdd(a + i, 1); return; }
    if (how == 4) { TRIGGER; asm volatile("st.release.gpu.s32 [%0], 7;" :: "l"(a + i) : "memory"); return; }
    if (how == 5) { TRIGGER; b[i] = a[i]; return; }
    a[i] = i;
}
extern "C" __global__ void middle(int* c, int how)
{
    if (how == 1) { TRIGGER; WAIT; }
    if (how == 2) { WAIT; TRIGGER; }
    if (how == 3 && blockIdx.x == 0) { WAIT; __syncthreads(); }
    if (how == 3 || how == 4) TRIGGER;
    if (how == 5 && threadIdx.x == 9) WAIT;
    c[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
extern "C" __global__ void last(int* a, int* b, int how)
{
    __shared__ alignas(16) int copy[64];
    __shared__ alignas(8) unsigned long long bar;
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    int value = 0;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(copy));
    switch (how) {
    case 1: WAIT; break;
    case 2: if (t == 63) WAIT; __syncthreads(); break;
    case 3: if (t == 0) WAIT; break;
    case 4: if (t % 32 == 7) WAIT; __syncwarp(); break;
    case 5: if (t % 32 == 7) WAIT; value = __shfl_sync(kAll, t, 7); break;
    case 6: if (t < 32) { WAIT; asm volatile("bar.sync 3, 64;"); } else asm volatile("bar.sync 3, 64;"); break;
    case 7: if (t < 32) WAIT; if (t % 32 == 0) __threadfence_block(); break;
    case 8: __syncthreads(); if (t == 0) WAIT; break;
    case 9: while (atomicAdd(a + i, 0) == 0); return;
    case 10: { int flag; do { asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(flag) : "l"(a + i) : "memory"); }
               while (flag != 7); } break;
    case 11: a[i] = 3; return;
    case 15: asm volatile("st.release.gpu.s32 [%0], 8;" :: "l"(a + i) : "memory"); return;
    case 16: case 17:
        copy[t] = t;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (how == 17) WAIT;
        if (t == 0) asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
                                 "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
                                 :: "l"(a + blockIdx.x * 64), "r"(to) : "memory");
        return;
    case 18: WAIT; b[i] = __ldg(a + i); return;
    case 19: WAIT; value = __ldg(a + i + 128); break;
    case 12: copy[t] = a[i + 128]; return;
    case 13: case 14:
        if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;" :: "r"(at));
        __syncthreads();
        if (t == 0) {
            if (how == 13) WAIT;
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" :: "r"(at) : "memory");
            asm volatile(BULK " [%0], [%1], 256, [%2];" :: "r"(to), "l"(a + blockIdx.x * 64), "r"(at) : "memory");
        }
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again; }"
                     :: "r"(at) : "memory");
        b[i] = copy[t] + a[i];
        return;
    }
    b[i] = a[i] + value;
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) pair(int* a, int* b, int how)
{
    if (blockIdx.x % 2 == 0 && threadIdx.x == 0) WAIT;
    if (how) asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    b[blockIdx.x * blockDim.x + threadIdx.x] = a[blockIdx.x * blockDim.x + threadIdx.x];
}
"""
BLOCKS, THREADS = 2, 64


@cache
def module() -> Module:
    compiled = compile_cuda(SOURCE, filename="kernel.cu", arch="sm_90")
    return load(compiled.ptx, compiled.sources)


class Stream:
    """Launches on one memory, whose arrays a, b and c each have 256 elements."""

    def __init__(self) -> None:
        self.memory = DeviceMemory()
        self.arrays = {name: self.memory.allocate(1024, name) for name in "abc"}

    def launch(self, name: str, how: int, dependent: bool = True) -> None:
        """Launch a kernel with its arrays and its way of doing things."""
        names = "c" if name == "middle" else "ab"
        args = [self.arrays[each].address.to_bytes(8, "little") for each in names] + [how.to_bytes(4, "little")]
        module().kernel(name).launch(BLOCKS, THREADS, args, memory=self.memory, dependent=dependent)


def line_of(text: str) -> int:
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


@pytest.mark.parametrize(
    ("how", "line", "why"),
    [
        (0, "b[i] = a[i] + value", "no griddepcontrol.wait precedes this access"),
        (18, "case 18", "an ld.global.nc promises that its memory is read-only"),
    ],
    ids=["no wait", "a read-only load after the wait"],
)
def test_early_read_is_named_with_both_lines(how: int, line: str, why: str) -> None:
    stream = Stream()
    stream.launch("first", 1, dependent=False)
    with pytest.raises(EarlyAccess, match=r"read of byte 0 of a, .*\(0,0,0\) of block \(0,0,0\) of first") as caught:
        stream.launch("last", how)
    assert why in caught.value.what
    assert caught.value.where.line == line_of(line)
    assert caught.value.other.line == line_of("a[i] = i;")


@pytest.mark.parametrize("how", [1, 2, 4, 5, 6, 10, 12, 13, 17, 19], ids=str)
def test_accesses_after_a_wait_or_elsewhere_are_right(how: int) -> None:
    stream = Stream()
    stream.launch("first", 4 if how == 10 else 1, dependent=False)
    stream.launch("last", how)


@pytest.mark.parametrize(
    ("how", "thread"), [(3, 1), (7, 32), (8, 1), (14, 0)], ids=["one thread", "fence", "barrier before", "bulk copy"]
)
def test_wait_that_does_not_cover_a_thread_is_found(how: int, thread: int) -> None:
    stream = Stream()
    stream.launch("first", 1, dependent=False)
    with pytest.raises(EarlyAccess) as caught:
        stream.launch("last", how)
    assert caught.value.where.thread[0] == thread


@pytest.mark.parametrize(
    ("first", "last", "what"), [(1, 11, "write"), (5, 11, "write"), (1, 16, "write"), (5, 16, "write"), (3, 0, "read")]
)
def test_writes_and_atomics_conflict_too(first: int, last: int, what: str) -> None:
    stream = Stream()
    stream.launch("first", first, dependent=False)
    with pytest.raises(EarlyAccess, match=f"this {what} of byte 0 of a"):
        stream.launch("last", last)


@pytest.mark.parametrize(("first", "last"), [(3, 9), (4, 9), (3, 15), (4, 15)])
def test_atomics_and_ordered_stores_of_both_launches_may_meet(first: int, last: int) -> None:
    stream = Stream()
    stream.launch("first", first, dependent=False)
    stream.launch("last", last)


def test_an_ordered_store_and_an_ordinary_one_may_not_meet() -> None:
    stream = Stream()
    stream.launch("first", 1, dependent=False)
    with pytest.raises(EarlyAccess, match="this write of byte 0 of a"):
        stream.launch("last", 15)


def test_read_only_load_is_right_where_no_launch_before_lets_it_start_early() -> None:
    stream = Stream()
    stream.launch("first", 0, dependent=False)
    stream.launch("last", 18)


RESTRICT = r"""
__device__ __forceinline__ int first_of(const int* RESTRICT from) { return from[threadIdx.x]; }
extern "C" __global__ void first(int* a)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    a[threadIdx.x] = 7;
}
extern "C" __global__ void last(const int* a, int* b)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
    b[threadIdx.x] = first_of(a);
}
"""


@pytest.mark.parametrize("qualifier", ["", "__restrict__"])
def test_restrict_on_an_inlined_function_makes_its_loads_read_only(qualifier: str) -> None:
    compiled = compile_cuda(RESTRICT.replace("RESTRICT", qualifier), filename="kernel.cu", arch="sm_90")
    loaded, memory = load(compiled.ptx, compiled.sources), DeviceMemory()
    a, b = (memory.allocate(256, name).address.to_bytes(8, "little") for name in "ab")
    loaded.kernel("first").launch(1, 64, [a], memory=memory)
    if qualifier:
        with pytest.raises(EarlyAccess, match=r"ld\.global\.nc"):
            loaded.kernel("last").launch(1, 64, [a, b], memory=memory, dependent=True)
    else:
        loaded.kernel("last").launch(1, 64, [a, b], memory=memory, dependent=True)


def test_one_block_that_lets_the_next_launch_start_is_enough_and_none_is_not() -> None:
    stream = Stream()
    stream.launch("first", 0, dependent=False)
    stream.launch("last", 0)
    stream.launch("first", 2, dependent=False)
    with pytest.raises(EarlyAccess):
        stream.launch("last", 0)


def test_launch_without_the_attribute_waits_for_all_before_it() -> None:
    stream = Stream()
    stream.launch("first", 1, dependent=False)
    stream.launch("middle", 4)
    stream.launch("last", 0, dependent=False)


#: How the middle launch waits and triggers, and whether the last one may read the first one's array: at its start, and
#: after its own wait.
CHAINS = {
    "triggers, then waits": (1, False, True),
    "waits, then triggers": (2, True, True),
    "one block waits before it triggers": (3, True, True),
    "triggers and never waits": (4, False, False),
    "one thread waits": (5, True, True),
    "neither": (0, False, False),
}


@pytest.mark.parametrize(("how", "at_start", "after_wait"), CHAINS.values(), ids=CHAINS)
def test_wait_covers_launches_further_back_only_if_those_between_have_waited(
    how: int, at_start: bool, after_wait: bool
) -> None:
    stream = Stream()
    for last, right in ((0, at_start), (1, after_wait)):
        stream.launch("first", 1, dependent=False)
        stream.launch("middle", how)
        if right:
            stream.launch("last", last)
        else:
            with pytest.raises(
                EarlyAccess, match="no griddepcontrol.wait precedes" if after_wait else "has not waited"
            ):
                stream.launch("last", last)


def test_wait_of_one_block_covers_another_of_its_cluster_after_their_barrier() -> None:
    for how in (1, 0):
        stream = Stream()
        stream.launch("first", 1, dependent=False)
        if how:
            stream.launch("pair", how)
        else:
            with pytest.raises(EarlyAccess):
                stream.launch("pair", how)


def test_all_checks_together_agree_and_none_finds_nothing() -> None:
    stream = Stream()
    with dependent_launches(), checking(ALL_CHECKS):
        stream.launch("first", 1, dependent=False)
        stream.launch("last", 13, dependent=None)
        stream.launch("first", 1, dependent=False)
        with pytest.raises(EarlyAccess):
            stream.launch("last", 14, dependent=None)
    with checking(()):
        stream.launch("first", 1, dependent=False)
        stream.launch("last", 0)


def test_results_are_those_of_launches_in_order() -> None:
    stream = Stream()
    stream.launch("first", 1, dependent=False)
    stream.launch("last", 2)
    assert (stream.arrays["b"].data.view(np.int32)[: BLOCKS * THREADS] == np.arange(BLOCKS * THREADS)).all()
