"""st.async and red.async: stores and reductions in another block of the cluster that complete on its mbarrier.

On an H200, `rounds` and `sums` (add.u32, max.s32, xor.b32) leave the values that are expected here.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import ALL_CHECKS, AsyncMisuse, AsyncRace, Deadlock, EmulatorError, Race, checking

SOURCE = r"""
typedef unsigned long long Word;
__device__ unsigned at(void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned there(void* p, unsigned rank) {
    unsigned out;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(at(p)), "r"(rank));
    return out;
}
__device__ void expect(Word* bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(bar)), "r"(bytes) : "memory");
}
__device__ void wait(Word* bar, int parity) {
    unsigned over = 0;
    while (!over)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
                     "selp.u32 %0, 1, 0, p;}" : "=r"(over) : "r"(at(bar)), "r"(parity) : "memory");
}
__device__ void meet() {
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
// Each block hands its numbers to the next one, ROUNDS times, through one of two buffers.
extern "C" __global__ void __cluster_dims__(4) rounds(int* data) {
    __shared__ alignas(16) int2 buffer[2][32];
    __shared__ Word full[2];
    unsigned rank, t = threadIdx.x;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
        for (int i = 0; i < 2; ++i)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(full + i)) : "memory");
        expect(full, BYTES);
        expect(full + 1, 256);
    }
    meet();
    int* mine = data + blockIdx.x * 64 + 2 * t;
    int2 value = make_int2(mine[0], mine[1]);
    for (int round = 0; round < 3; ++round) {
        int slot = round % SLOTS;
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];"
            :: "r"(there(&buffer[slot][t], (rank + 1) % 4)), "r"(value.x), "r"(value.y),
               "r"(there(full + slot, (rank + STEP) % 4)) : "memory");
        WAIT(full + slot, round / 2);
        value = buffer[slot][t];
        MEET
        if (t == 0 && round == 0) expect(full, 256);
    }
    mine[0] = value.x;
    mine[1] = value.y;
    meet();
}
// Each block adds its numbers to those of block 0.
extern "C" __global__ void __cluster_dims__(4) sums(const unsigned* data, unsigned* out) {
    __shared__ unsigned sums[32];
    __shared__ Word bar;
    unsigned t = threadIdx.x;
    sums[t] = 7;
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&bar)) : "memory");
        expect(&bar, 4 * 32 * sizeof(int));
    }
    meet();
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.HOW [%0], %1, [%2];"
        :: "r"(there(sums + t, 0)), "r"(data[blockIdx.x * 32 + t]), "r"(there(&bar, 0)) : "memory");
    if (blockIdx.x == 0) {
        wait(&bar, 0);
        out[t] = sums[t];
    }
    meet();
}
"""
USUAL = {"BYTES": "256", "SLOTS": "2", "STEP": "1", "WAIT": "wait", "MEET": "meet();", "HOW": "add.u32"}
DATA = np.random.default_rng(0).integers(-99, 99, 256).astype(np.int32)


def _source(**changes: str) -> str:
    text = SOURCE
    for name, value in {**USUAL, **changes}.items():
        text = text.replace(name, value)
    return text


def _rounds(**changes: str) -> np.ndarray:
    data = DATA.copy()
    with checking(ALL_CHECKS):
        Device(_source(**changes)).launch("rounds", 4, 32, data)
    return data


def test_stores_go_round_the_cluster():
    assert (_rounds().reshape(4, 64) == np.roll(DATA.reshape(4, 64), 3, axis=0)).all()


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"WAIT": "(void)"}, AsyncRace, "asynchronous store of thread .* no wait has seen the phase of its mbarrier"),
        ({"BYTES": "264"}, Deadlock, "misses 8 bytes"),
        ({"STEP": "0"}, AsyncMisuse, "whose target and mbarrier are in different blocks"),
        ({"MEET": "", "SLOTS": "1"}, Race, "by an asynchronous store of .* of buffer"),
    ],
)
def test_planted_faults_are_found(changes: dict[str, str], error: type[EmulatorError], words: str) -> None:
    with pytest.raises(error, match=words):
        _rounds(**changes)


@pytest.mark.parametrize("how", ["add.u32", "max.s32", "xor.b32"])
def test_reductions_of_all_blocks_meet_in_one(how: str) -> None:
    out, data = np.zeros(32, np.uint32), DATA[:128].reshape(4, 32)
    with checking(ALL_CHECKS):
        Device(_source(HOW=how)).launch("sums", 4, 32, data.view(np.uint32), out)
    function = {"add": np.add, "max": np.maximum, "xor": np.bitwise_xor}[how.split(".")[0]]
    assert (out.view(np.int32) == function(function.reduce(data), 7)).all()
