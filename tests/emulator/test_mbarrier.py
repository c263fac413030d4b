"""mbarrier: phases, tokens and parities, and faulty uses."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import ALL_CHECKS, BarrierMisuse, EndlessLoop, Race, Uninitialised, checking
from climb.emulator.execution import batches
from climb.emulator.simt.batch import Batch

PTX = """
__device__ unsigned word(void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(unsigned long long* b, int n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(word(b)), "r"(n) : "memory");
}
__device__ unsigned long long arrive(unsigned long long* b) {
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(word(b)) : "memory");
    return state;
}
__device__ void leave(unsigned long long* b) {
    asm volatile("mbarrier.arrive_drop.shared.b64 _, [%0];" :: "r"(word(b)) : "memory");
}
__device__ bool over(unsigned long long* b, unsigned long long state) {
    unsigned p;
    asm volatile("{.reg .pred p; mbarrier.try_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(p) : "r"(word(b)), "l"(state) : "memory");
    return p;
}
__device__ bool over_parity(unsigned long long* b, unsigned parity) {
    unsigned p;
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(p) : "r"(word(b)), "r"(parity) : "memory");
    return p;
}
"""
KERNEL = (
    PTX
    + """
extern "C" __global__ void k(const int* a, int* o) {
    __shared__ unsigned long long bar;
    __shared__ int s[128];
    int t = threadIdx.x;
    if (t == 0) init(&bar, COUNT);
    __syncthreads();
    BODY
}
"""
)
TURN = "s[t] = a[t]; unsigned long long state = arrive(&bar); WAIT o[t] = s[127 - t];"
DATA = np.random.default_rng(0).integers(0, 1000, 128).astype(np.int32)


def launch(body: str, count: int = 128, source: str = KERNEL, steps: int = 100_000) -> np.ndarray:
    out = np.zeros(128, np.int32)
    text = source.replace("COUNT", str(count)).replace("BODY", body)
    with checking(ALL_CHECKS):
        Device(text).launch("k", 1, 128, DATA, out, max_steps=steps)
    return out


def test_every_arrival_is_a_change_that_a_waiting_loop_may_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Kept(Batch):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(batches, "Batch", Kept)
    for arrivals in (1, 2, 3):
        launch(f"if (t == 0) {{ {'arrive(&bar); ' * arrivals} }}", 4)
    assert np.diff([batch.changes for batch in made]).tolist() == [1, 1]


def test_threads_arrive_and_wait() -> None:
    assert (launch(TURN.replace("WAIT", "while (!over(&bar, state));")) == DATA[::-1]).all()


def test_phases_alternate() -> None:
    """Five rounds on one barrier, by parity; each round reads what the previous one wrote."""
    body = """s[t] = a[t];
    for (unsigned round = 0; round < 5; ++round) {
        arrive(&bar);
        while (!over_parity(&bar, round & 1));
        int next = s[(t + 1) % 128];
        __syncthreads();  // all have read before any writes
        s[t] = next;
    }
    o[t] = s[t];"""
    assert (launch(body) == np.roll(DATA, -5)).all()


def test_consumers_read_what_producers_wrote() -> None:
    """Producers arrive and continue; consumers wait without arriving."""
    body = """unsigned long long state = 0;
    if (t < 32) { for (int i = t; i < 128; i += 32) s[i] = 2 * a[i]; arrive(&bar); o[t] = -1; }
    else { while (!over(&bar, state)); o[t] = s[t]; }"""
    assert (launch(body, 32) == np.where(np.arange(128) < 32, -1, 2 * DATA)).all()


def test_threads_that_drop_out_are_not_waited_for() -> None:
    body = """if (t >= 64) { leave(&bar); o[t] = 0; return; }
    for (unsigned round = 0; round < 3; ++round) { arrive(&bar); while (!over_parity(&bar, round & 1)); }
    o[t] = t;"""
    assert (launch(body) == np.where(np.arange(128) < 64, np.arange(128), 0)).all()


def test_mbarrier_operations_are_not_counted() -> None:
    out = np.zeros(128, np.int32)
    text = KERNEL.replace("COUNT", "128").replace("BODY", TURN.replace("WAIT", "while (!over(&bar, state));"))
    found = Device(text).launch("k", 1, 128, DATA, out)
    assert found.total("shared atomic").requests == 0
    assert (found.total("shared load").requests, found.total("shared store").requests) == (4, 4)


def test_a_forgotten_wait_is_a_race() -> None:
    with pytest.raises(Race, match="race in shared memory"):
        launch(TURN.replace("WAIT", ""))


def test_an_uninitialised_barrier_is_found() -> None:
    source = KERNEL.replace("if (t == 0) init(&bar, COUNT);", "")
    with pytest.raises(Uninitialised, match="byte 0 of bar"):
        launch(TURN.replace("WAIT", "while (!over(&bar, state));"), source=source)


def test_missing_and_surplus_arrivals_are_found() -> None:
    wait = TURN.replace("WAIT", "while (!over(&bar, state));")
    with pytest.raises(EndlessLoop):
        launch(wait, 129, steps=3000)
    with pytest.raises(BarrierMisuse, match="mbarrier: there are more arrivals than its phase has left"):
        asked = 'asm volatile("mbarrier.arrive.shared.b64 _, [%0], 70;" :: "r"(word(&bar)) : "memory");'
        launch(f"if (t < 2) {{ {asked} }}")


@pytest.mark.thorough
def test_cuda_barrier_of_libcu_works() -> None:
    source = """#include <cuda/barrier>
extern "C" __global__ void k(const int* a, int* o) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ int s[128];
    int t = threadIdx.x;
    if (t == 0) init(&bar, blockDim.x);
    __syncthreads();
    s[t] = a[t];
    bar.arrive_and_wait();
    int mine = s[127 - t];
    auto token = bar.arrive();
    o[t] = mine;
    bar.wait(std::move(token));
}"""
    assert (launch("", source=source) == DATA[::-1]).all()


#: One warp writes three slots after another, seven times; another one reads them. Every slot has two barriers.
SLOTS = (
    PTX
    + """
extern "C" __global__ void k(const int* a, int* o) {
    __shared__ unsigned long long full[3], empty[3];
    __shared__ int s[3][32];
    int t = threadIdx.x % 32;
    if (threadIdx.x == 0)
        for (int i = 0; i < 3; ++i) { init(full + i, 32); init(empty + i, 32); }
    __syncthreads();
    for (int i = 0; i < 7; ++i) {
        int slot = i % 3, round = i / 3;
        if (threadIdx.x < 32) {
            while (!over_parity(empty + slot, ~round & 1));
            s[slot][t] = a[i];
            arrive(full + slot);
        } else {
            while (!over_parity(full + slot, round & 1));
            o[i] = s[slot][31 - t];
            arrive(empty + slot);
        }
    }
}"""
)


def _slots(*swapped: str) -> np.ndarray:
    """Run the kernel with two neighbouring lines swapped."""
    out, source = np.zeros(128, np.int32), SLOTS
    if swapped:
        first, second = (next(line for line in SLOTS.splitlines(True) if each in line) for each in swapped)
        assert first + second in SLOTS
        source = SLOTS.replace(first + second, second + first)
    with checking(ALL_CHECKS):
        Device(source).launch("k", 1, 64, DATA, out)
    return out


def test_an_arrival_hands_over_only_what_precedes_it_at_that_barrier() -> None:
    """A later arrival at the barrier of another slot hands it over to those alone who wait there."""
    assert (_slots()[:7] == DATA[:7]).all()
    nor = "nor an arrival at an mbarrier that this thread has waited for"
    with pytest.raises(Race, match=rf"this write of byte \d+ of s, which thread .* reads at .*; .*{nor}"):
        _slots("o[i] =", "arrive(empty +")
    with pytest.raises((Race, Uninitialised)):
        _slots("s[slot][t] =", "arrive(full +")


@pytest.mark.parametrize("cluster", ["", "__cluster_dims__(2)"])
@pytest.mark.parametrize("barrier", ['asm volatile("bar.sync 1, 96;" ::: "memory");', "__syncthreads();"])
def test_a_barrier_hands_on_what_one_of_its_warps_has_waited_for(cluster: str, barrier: str) -> None:
    """Warp 0 writes, warp 1 waits for that at an mbarrier, and the warps from 1 or 0 on read after a barrier."""
    body = """if (t < 32) { for (int i = t; i < 128; i += 32) s[i] = a[i]; arrive(&bar); }
    else if (t < 64) while (!over_parity(&bar, 0));
    if (t >= FIRST) { BEFORE BARRIER o[t] = s[127 - t]; }"""
    body = body.replace("FIRST", "32" if "96" in barrier else "0").replace("BARRIER", barrier)
    source = KERNEL.replace("void k(", f"void {cluster} k(").replace("COUNT", "32")

    def run(before: str) -> np.ndarray:
        out = np.zeros(128, np.int32)
        with checking(ALL_CHECKS):
            Device(source.replace("BODY", body.replace("BEFORE", before))).launch("k", 2, 128, DATA, out)
        return out

    assert (run("")[32:] == DATA[::-1][32:]).all()
    with pytest.raises((Race, Uninitialised)):
        run("o[t] = s[127 - t];")


def test_warp_that_arrives_after_the_phase_has_ended_hands_nothing_over() -> None:
    body = TURN.replace("WAIT", "while (!over_parity(&bar, 0));")
    assert (launch(body) == DATA[::-1]).all()
    with pytest.raises(Race, match=r"thread \(127,0,0\) writes"):
        launch(body, count=127)
