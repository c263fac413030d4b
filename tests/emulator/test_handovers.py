"""Handovers of data from one block to another: the fences, barriers and waits that PTX's memory model asks for."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device
from litmus import HEAD, PARAMETERS, races

from climb.emulator import ALL_CHECKS, Race, checking

# One block hands over to another, and what lies between decides. Thread 0 of block 0 sets the flag.
HANDOVER = r"""
extern "C" __global__ void k(unsigned* x, unsigned* y, unsigned* f, unsigned* g, unsigned* m, int) {
  int t = threadIdx.x; unsigned v;
  if (blockIdx.x == 0) { @@ }
  else if (t == 0) { do LOAD("relaxed.gpu", v, f); while (!v); __threadfence(); m[0] = x[0] + x[1] + x[40]; } }
"""
FLAG = "if (t == 0) STORE('relaxed.gpu', f, 1);"
ALL, FENCE = "if (t < 2 || t == 40) x[t] = 1;", "__threadfence();"
HANDOVERS = {
    "own": (f"if (t == 0) {{ x[0] = x[1] = x[40] = 1; {FENCE} }} {FLAG}", False),
    "barrier_fence": (f"{ALL} __syncthreads(); if (t == 0) {FENCE} {FLAG}", False),
    "fence_barrier": (f"{ALL} {FENCE} __syncthreads(); {FLAG}", False),
    "warp_fence": (f"if (t < 2) x[t] = 1; __syncwarp(); if (t == 0) {FENCE} {FLAG}", False),
    "fence_warp": (f"if (t < 2) {{ x[t] = 1; {FENCE} }} __syncwarp(); {FLAG}", False),
    "named_barrier": (f"{ALL} asm volatile('bar.sync 1, 64;' ::: 'memory'); if (t == 0) {FENCE} {FLAG}", False),
    "masked": (f"if (t < 2) {{ x[t] = 1; __syncwarp(3); }} if (t == 0) {FENCE} {FLAG}", False),
    "fence_of_another_thread": (f"if (t == 0) x[0] = 1; if (t == 1) {FENCE} {FLAG}", True),
    "data_of_another_thread": (f"if (t == 1) x[1] = 1; if (t == 0) {FENCE} {FLAG}", True),
    "data_of_another_warp": (f"if (t == 40) x[40] = 1; if (t == 0) {FENCE} {FLAG}", True),
    "write_after_the_fence": (f"{ALL} {FENCE} if (t == 0) x[0] = 2; __syncthreads(); {FLAG}", True),
    "no_barrier": (f"{ALL} {FENCE} {FLAG}", True),
    "shuffle": (f"if (t < 2) x[t] = 1; v = __shfl_xor_sync(~0u, t, 1); if (t == 0 && v) {FENCE} {FLAG}", True),
    "fence_in_block": (f"{ALL} __syncthreads(); if (t == 0) __threadfence_block(); {FLAG}", True),
}


@pytest.fixture(scope="module")
def handovers():
    bodies = [HANDOVER.replace("@@", body.replace("'", '"')) for body, _ in HANDOVERS.values()]
    return Device(HEAD + "".join(body.replace(" k(", f" k{n}(") for n, body in enumerate(bodies)))


@pytest.mark.parametrize("name", HANDOVERS)
def test_a_flag_hands_over_what_its_thread_has_fenced_or_waited_for(handovers, name):
    x, out = np.zeros(64, np.uint32), np.zeros(1, np.uint32)
    words = [np.zeros(1, np.uint32) for _ in range(3)]
    raced = False
    try:
        with checking(ALL_CHECKS):
            handovers.launch(f"k{list(HANDOVERS).index(name)}", 2, 64, x, *words, out, 0)
    except Race:
        raced = True
    assert raced == HANDOVERS[name][1]


def test_what_was_taken_is_handed_on():
    device = Device(
        r"""extern "C" __global__ void k(volatile unsigned* flags, unsigned* x, unsigned* o, int broken) {
        int b = blockIdx.x; if (b == 0) x[0] = 7;
        if (b) { while (!flags[b - 1]) { } if (b == 3) { __threadfence(); o[0] = x[0]; } }
        if (b || !broken) __threadfence();
        flags[b] = 1; }"""
    )
    for broken in (0, 1):
        args = np.zeros(4, np.uint32), np.zeros(1, np.uint32), np.zeros(1, np.uint32)
        raced = False
        try:
            with checking(ALL_CHECKS):
                device.launch("k", 4, 1, *args, broken)
        except Race:
            raced = True
        assert raced == bool(broken)


# One thread polls; the fence, or the reader, is another thread that has waited for it.
WAITERS = {
    "the_poller_fences": ("POLL __threadfence(); } __syncthreads();", False),
    "all_fence": ("POLL } __syncthreads(); __threadfence();", False),
    "a_warp_fences": ("POLL } __syncwarp(); __threadfence(); __syncthreads();", False),
    "another_lane_fences": ("POLL } __syncwarp(); if (t == 1) __threadfence(); __syncthreads();", False),
    "another_lane_fences_at_once": ("POLL } if (t == 1) __threadfence(); __syncthreads();", True),
    "nobody_fences": ("POLL } __syncthreads();", True),
    "the_fence_is_early": ("__threadfence(); POLL } __syncthreads();", True),
}  # fmt: skip


@pytest.fixture(scope="module")
def waiters():
    parts = [HEAD]
    for index, (body, _) in enumerate(WAITERS.values()):
        body = body.replace("POLL", 'if (t == 0) { do LOAD("relaxed.gpu", v, f); while (!v);')
        parts.append(
            f'extern "C" __global__ void wait_{index}{PARAMETERS} {{ int t = threadIdx.x; unsigned v = where;'
            'if (blockIdx.x == 0) { if (t == 0) { *x = 1; __threadfence(); STORE("relaxed.gpu", f, 1); } }'
            f"else {{ {body} if (t < 64) m[0] = *x; }} }}"
        )
    return Device("\n".join(parts))


@pytest.mark.parametrize("name", WAITERS)
def test_a_fence_counts_for_loads_that_its_thread_has_waited_for(waiters, name):
    assert races(waiters, f"wait_{list(WAITERS).index(name)}", 2, 64, 0) == WAITERS[name][1]


# How public code waits between blocks, rewritten. CUTLASS (include/cutlass/semaphore.h) and TurboMind: one thread loads
# with acquire, a barrier tells the others; the next block is let in with release. Marlin (IST-DASLab): by a fence and a
# relaxed sum, and the last block resets the lock, which it has seen. b0nes164/GPUPrefixSums: a chained scan, whose
# volatile words hold flag and sum together, so that nothing lies behind them.
PUBLIC = r"""
extern "C" __global__ void semaphore(const float* x, float* sum, int* lock, int broken) {
  int state = -1, t = threadIdx.x;
  while (__syncthreads_and(state != (int)blockIdx.x)) {
    if (t == 0) {
      if (broken == 1) asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(state) : "l"(lock));
      else asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(state) : "l"(lock));
    }
  }
  __syncthreads();
  sum[t] += x[blockIdx.x * blockDim.x + t];
  __syncthreads();
  if (t == 0) {
    int next = (blockIdx.x + 1) % gridDim.x;
    if (broken == 2) asm volatile("st.global.relaxed.gpu.b32 [%0], %1;" :: "l"(lock), "r"(next));
    else asm volatile("st.global.release.gpu.b32 [%0], %1;" :: "l"(lock), "r"(next));
  }
}
extern "C" __global__ void turns(const float* x, float* sum, int* lock, int broken) {
  int t = threadIdx.x;
  if (t == 0) {
    int state = -1;
    do asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(state) : "l"(lock)); while (state != (int)blockIdx.x);
  }
  __syncthreads();
  sum[t] += x[blockIdx.x * blockDim.x + t];
  if (broken != 1) __syncthreads();
  if (t == 0) {
    if (blockIdx.x == gridDim.x - 1) { lock[0] = 0; return; }
    if (broken != 2) asm volatile("fence.acq_rel.gpu;");
    asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" :: "l"(lock), "r"(1));
  }
}
extern "C" __global__ void chained_scan(const unsigned* x, unsigned* out, volatile unsigned long long* state,
                                        unsigned* ticket) {
  __shared__ unsigned part, before, sums[32];
  int t = threadIdx.x;
  if (t == 0) part = atomicAdd(ticket, 1);
  __syncthreads();
  unsigned i = part * 32 + t, v = x[i];
  for (int d = 1; d < 32; d *= 2) { unsigned o = __shfl_up_sync(~0u, v, d); if (t >= d) v += o; }
  sums[t] = v;
  __syncwarp();
  if (t == 0) {
    unsigned long long mine = (unsigned long long)sums[31] << 2;
    state[part] = mine | (part ? 1 : 2);
    unsigned total = 0;
    for (int at = (int)part - 1; at >= 0;) {
      unsigned long long word = state[at];
      if ((word & 3) == 0) continue;
      total += (unsigned)(word >> 2);
      if ((word & 3) == 2) break;
      --at;
    }
    if (part) state[part] = (unsigned long long)(total + sums[31]) << 2 | 2;
    before = total;
  }
  __syncthreads();
  out[i] = v + before;
}
"""


@pytest.fixture(scope="module")
def public():
    return Device(PUBLIC)


@pytest.mark.parametrize("broken", [0, 1, 2])
@pytest.mark.parametrize("name", ["semaphore", "turns"])
def test_a_semaphore_between_blocks_needs_acquire_and_release(public, name, broken):
    """Broken are: a plain load or a relaxed store; a missing barrier or a missing fence."""
    x, total = np.arange(5 * 64, dtype=np.float32), np.zeros(64, np.float32)
    raced = False
    try:
        with checking(ALL_CHECKS):
            public.launch(name, 5, 64, x, total, np.zeros(1, np.int32), broken)
    except Race:
        raced = True
    assert raced == bool(broken)
    assert raced or np.array_equal(total, x.reshape(5, 64).sum(axis=0))


RESETS = r"""
extern "C" __global__ void seen(int* x, int how) {
  int b = blockIdx.x, v = 0;
  if (b < 2) atomicAdd(x, 1);
  else if (how == 0) { do asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(v) : "l"(x)); while (v != 2); *x = 0; }
  else if (how == 1) { asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(v) : "l"(x + 1)); *x = 0; }
  else if (threadIdx.x == 0) { do asm volatile("ld.relaxed.gpu.b32 %0, [%1];" : "=r"(v) : "l"(x)); while (v != 2); }
  else *x = 0;
}
"""


@pytest.mark.parametrize(("how", "threads", "races"), [(0, 1, False), (1, 1, True), (2, 64, True)])
def test_who_has_seen_the_last_atomic_may_write_its_place(how, threads, races):
    """Without another place that it has read, and not for a thread that has not waited for it."""
    device, x = Device(RESETS.replace("if (b < 2)", "if (b < 2 && threadIdx.x == 0)", 1).replace(
        "else if (how == 0)", "else if (b < 2) { } else if (how == 0)", 1)), np.zeros(2, np.int32)  # fmt: skip
    raced = False
    try:
        with checking(ALL_CHECKS):
            device.launch("seen", 3, threads, x, how)
    except Race:
        raced = True
    assert raced == races


def test_a_chained_scan_whose_words_hold_flag_and_sum_has_no_race(public):
    x, out = np.arange(9 * 32, dtype=np.uint32), np.zeros(9 * 32, np.uint32)
    with checking(ALL_CHECKS):
        public.launch("chained_scan", 9, 32, x, out, np.zeros(9, np.uint64), np.zeros(1, np.uint32))
    assert np.array_equal(out, np.cumsum(x))
