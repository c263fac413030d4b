"""Which accesses of two threads the memory model of PTX orders: litmus tests, and the patterns that programs use.

PTX ISA, "Memory Consistency Model"; Lustig, Sahasrabuddhe and Giroux, "A Formal Analysis of the NVIDIA PTX Memory
Consistency Model", ASPLOS 2019. The names of the litmus tests are those of Alglave et al., TOPLAS 36(2), 2014.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import ALL_CHECKS, Race, checking

# Two threads run each body: `me` is 0 or 1. x and y are data, f and g flags, m[...] more words, all 0 at first. Their
# places are two blocks, two warps of a block (threads 0 and 32), or two lanes (threads 0 and 1).
HEAD = r"""
#define STORE(how, p, v) asm volatile("st." how ".u32 [%0], %1;" :: "l"(p), "r"(v) : "memory")
#define LOAD(how, v, p) asm volatile("ld." how ".u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory")
#define FENCE(how) asm volatile("fence." how ";" ::: "memory")
"""
PARAMETERS = "(unsigned* x, unsigned* y, unsigned* f, unsigned* g, unsigned* m, int where)"
WHERE = """{ int t = threadIdx.x, me = where == 0 ? blockIdx.x : where == 1 ? t / 32 : t;
if (where == 1 && t % 32 > 0) return; (void)me; unsigned v = 0; (void)v; """

BLOCKS, WARPS, LANES = 0, 1, 2
# name: (body, the places where it has a race)
LITMUS = {
    # message passing (MP)
    "mp": ("FIRST { *x = 1; __threadfence(); STORE('relaxed.gpu', f, 1); }"
           "SECOND { do LOAD('relaxed.gpu', v, f); while (!v); __threadfence(); m[0] = *x; }", ()),
    "mp_release_acquire": ("FIRST { *x = 1; STORE('release.gpu', f, 1); }"
                           "SECOND { do LOAD('acquire.gpu', v, f); while (!v); m[0] = *x; }", ()),
    "mp_fence_acq_rel": ("FIRST { *x = 1; FENCE('acq_rel.gpu'); STORE('relaxed.gpu', f, 1); }"
                         "SECOND { do LOAD('relaxed.gpu', v, f); while (!v); FENCE('acq_rel.gpu'); m[0] = *x; }", ()),
    "mp_volatile": ("FIRST { *x = 1; __threadfence(); *(volatile unsigned*)f = 1; }"
                    "SECOND { while (!*(volatile unsigned*)f) { } __threadfence(); m[0] = *x; }", ()),
    "mp_exchange": ("FIRST { *x = 1; __threadfence(); atomicExch(f, 1); }"
                    "SECOND { while (!atomicAdd(f, 0)) { } __threadfence(); m[0] = *x; }", ()),
    "mp_no_fence": ("FIRST { *x = 1; STORE('relaxed.gpu', f, 1); }"
                    "SECOND { do LOAD('relaxed.gpu', v, f); while (!v); m[0] = *x; }", (BLOCKS, WARPS, LANES)),
    # the consumer's side: a fence after the loop, of the right scope, and after the load rather than before it
    "mp_no_acquire": ("FIRST { *x = 1; STORE('release.gpu', f, 1); }"
                      "SECOND { do LOAD('relaxed.gpu', v, f); while (!v); m[0] = *x; }", (BLOCKS, WARPS, LANES)),
    "mp_volatile_no_fence": ("FIRST { *x = 1; __threadfence(); *(volatile unsigned*)f = 1; }"
                             "SECOND { while (!*(volatile unsigned*)f) { } m[0] = *x; }", (BLOCKS, WARPS, LANES)),
    "mp_fence_before_the_load": ("FIRST { *x = 1; __threadfence(); STORE('relaxed.gpu', f, 1); }"
                                 "SECOND { do { __threadfence(); LOAD('relaxed.gpu', v, f); } while (!v);"
                                 "m[0] = *x; }", (BLOCKS, WARPS, LANES)),
    "mp_consumer_cta_fence": ("FIRST { *x = 1; __threadfence(); STORE('relaxed.gpu', f, 1); }"
                              "SECOND { do LOAD('relaxed.gpu', v, f); while (!v); __threadfence_block();"
                              "m[0] = *x; }", (BLOCKS,)),
    "mp_release_is_no_fence": ("FIRST { *x = 1; STORE('release.gpu', f, 1); }"
                               "SECOND { do LOAD('relaxed.gpu', v, f); while (!v); STORE('release.gpu', g, 1);"
                               "m[0] = *x; }", (BLOCKS, WARPS, LANES)),
    "mp_no_release": ("FIRST { *x = 1; STORE('relaxed.gpu', f, 1); }"
                      "SECOND { do LOAD('acquire.gpu', v, f); while (!v); m[0] = *x; }", (BLOCKS, WARPS, LANES)),
    "mp_cta_fence": ("FIRST { *x = 1; __threadfence_block(); STORE('relaxed.gpu', f, 1); }"
                     "SECOND { do LOAD('relaxed.gpu', v, f); while (!v); __threadfence(); m[0] = *x; }", (BLOCKS,)),
    "mp_cta_release": ("FIRST { *x = 1; STORE('release.cta', f, 1); }"
                       "SECOND { do LOAD('acquire.gpu', v, f); while (!v); m[0] = *x; }", (BLOCKS,)),
    "mp_cta_acquire": ("FIRST { *x = 1; STORE('release.gpu', f, 1); }"
                       "SECOND { do LOAD('acquire.cta', v, f); while (!v); m[0] = *x; }", (BLOCKS,)),
    "mp_system": ("FIRST { *x = 1; STORE('release.sys', f, 1); }"
                  "SECOND { do LOAD('acquire.sys', v, f); while (!v); m[0] = *x; }", ()),
    "mp_fence_too_early": ("FIRST { __threadfence(); *x = 1; STORE('relaxed.gpu', f, 1); }"
                           "SECOND { do LOAD('relaxed.gpu', v, f); while (!v); __threadfence(); m[0] = *x; }",
                           (BLOCKS, WARPS, LANES)),
    # store buffering (SB), load buffering (LB), coherence (CoRR) and 2+2W: with relaxed accesses no outcome is a race,
    # with plain ones all are
    "sb_relaxed": ("FIRST { STORE('relaxed.gpu', x, 1); LOAD('relaxed.gpu', v, y); m[0] = v; }"
                   "SECOND { STORE('relaxed.gpu', y, 1); LOAD('relaxed.gpu', v, x); m[1] = v; }", ()),
    "sb_plain": ("FIRST { *x = 1; m[0] = *y; } SECOND { *y = 1; m[1] = *x; }", (BLOCKS, WARPS, LANES)),
    "sb_fenced_plain": ("FIRST { *x = 1; FENCE('sc.gpu'); m[0] = *y; } SECOND { *y = 1; FENCE('sc.gpu'); m[1] = *x; }",
                        (BLOCKS, WARPS, LANES)),
    "lb_relaxed": ("FIRST { LOAD('relaxed.gpu', v, x); STORE('relaxed.gpu', y, 1); m[0] = v; }"
                   "SECOND { LOAD('relaxed.gpu', v, y); STORE('relaxed.gpu', x, 1); m[1] = v; }", ()),
    "lb_plain": ("FIRST { m[0] = *x; *y = 1; } SECOND { m[1] = *y; *x = 1; }", (BLOCKS, WARPS, LANES)),
    "corr_relaxed": ("FIRST STORE('relaxed.gpu', x, 1); SECOND { LOAD('relaxed.gpu', v, x); m[0] = v;"
                     "LOAD('relaxed.gpu', v, x); m[1] = v; }", ()),
    "2+2w_relaxed": ("FIRST { STORE('relaxed.gpu', x, 1); STORE('relaxed.gpu', y, 2); }"
                     "SECOND { STORE('relaxed.gpu', y, 1); STORE('relaxed.gpu', x, 2); }", ()),
    "2+2w_plain": ("FIRST { *x = 1; *y = 2; } SECOND { *y = 1; *x = 2; }", (BLOCKS, WARPS, LANES)),
}  # fmt: skip


def _source() -> str:
    parts = [HEAD]
    for index, (body, _) in enumerate(LITMUS.values()):
        body = body.replace("'", '"').replace("FIRST", "if (me == 0)").replace("SECOND", "else")
        parts.append(f'extern "C" __global__ void litmus_{index}{PARAMETERS} {WHERE} {body} }}')
    return "\n".join(parts)


@pytest.fixture(scope="module")
def litmus():
    return Device(_source())


def _races(device: Device, name: str, grid: int, block: int, *args: object) -> bool:
    words = [np.zeros(1, np.uint32) for _ in range(4)] + [np.zeros(8, np.uint32)]
    try:
        with checking(ALL_CHECKS):
            device.launch(name, grid, block, *words, *args)
    except Race:
        return True
    return False


@pytest.mark.parametrize("place", [BLOCKS, WARPS, LANES], ids=["blocks", "warps", "lanes"])
@pytest.mark.parametrize("name", LITMUS)
def test_litmus_tests_have_the_races_that_the_memory_model_gives_them(litmus, name, place):
    index = list(LITMUS).index(name)
    grid, block = ((2, 1), (1, 64), (1, 2))[place]
    assert _races(litmus, f"litmus_{index}", grid, block, place) == (place in LITMUS[name][1])


PATTERNS = """
extern "C" __global__ void iriw(unsigned* x, unsigned* y, unsigned* f, unsigned* g, unsigned* m, int plain) {
  int b = blockIdx.x; unsigned first, second;
  unsigned *mine = b % 2 ? y : x, *other = b % 2 ? x : y;
  if (b < 2) { if (plain) *mine = 1; else STORE("relaxed.gpu", mine, 1); return; }
  LOAD("relaxed.gpu", first, mine); FENCE("sc.gpu"); LOAD("relaxed.gpu", second, other);
  if (plain) second = *other;
  m[b] = first * 2 + second; }
// The last block resets the counter, which all blocks have incremented: with any order of its threads, and no fence.
extern "C" __global__ void last_resets(unsigned* count, unsigned* o, unsigned*, unsigned*, unsigned*, int who) {
  __shared__ bool last;
  if (threadIdx.x == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
  __syncthreads();
  if (last && threadIdx.x == who) *count = 0; }
extern "C" __global__ void last_resets_early(unsigned* count, unsigned*, unsigned*, unsigned*, unsigned*, int) {
  if (atomicAdd(count, 1) == 0) *count = 0; }
extern "C" __global__ void last_resets_unordered(unsigned* count, unsigned*, unsigned*, unsigned*, unsigned*, int) {
  __shared__ volatile bool last; last = false; __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
  if (threadIdx.x == 1 && blockIdx.x == gridDim.x - 1) *count = 0; }
extern "C" __global__ void last_resets_in_block(unsigned*, unsigned*, unsigned*, unsigned*, unsigned* o, int early) {
  __shared__ unsigned count; if (threadIdx.x == 0) count = 0; __syncthreads();
  if (atomicAdd(&count, 1) == (early ? 3 : blockDim.x - 1)) { count = 0; o[blockIdx.x % 8] = 1; } }
"""


@pytest.fixture(scope="module")
def patterns():
    return Device(HEAD + PATTERNS)


@pytest.mark.parametrize("plain", [0, 1])
def test_independent_reads_of_independent_writes_race_if_they_are_plain(patterns, plain):
    assert _races(patterns, "iriw", 4, 1, plain) == bool(plain)


@pytest.mark.parametrize("who", [0, 1, 40])
def test_the_block_that_counts_last_may_reset_the_counter(patterns, who):
    assert not _races(patterns, "last_resets", 300, 64, who)


@pytest.mark.parametrize("name", ["last_resets_early", "last_resets_unordered"])
def test_a_reset_that_others_may_still_count_after_is_a_race(patterns, name):
    assert _races(patterns, name, 4, 64, 0)


@pytest.mark.parametrize("early", [0, 1])
def test_the_thread_that_counts_last_may_reset_a_counter_in_shared_memory(patterns, early):
    assert _races(patterns, "last_resets_in_block", 1, 96, early) == bool(early)


# What warp operations order between lanes. Only __syncwarp orders a write before another lane's read. An exchange of
# values does order a read before a write of a lane that has received a value.
WARP_OPERATIONS = {
    "nothing": "", "syncwarp": "__syncwarp();", "shuffle": "v += __shfl_xor_sync(~0u, v, 1);",
    "vote": "v += __any_sync(~0u, v == 3);", "reduction": "v += __reduce_add_sync(~0u, v);",
    "masked_shuffle": "if (t < 16) v += __shfl_xor_sync(0xffff, v, 1); else v += __shfl_xor_sync(0xffff0000u, v, 1);",
    "masked_syncwarp": "if (t < 16) __syncwarp(0xffff); else __syncwarp(0xffff0000u);",
    "fence_and_shuffle": "__threadfence_block(); v += __shfl_xor_sync(~0u, v, 1);",
}  # fmt: skip
ORDERS_WRITES = {"syncwarp", "masked_syncwarp"}


@pytest.fixture(scope="module")
def warp_operations():
    parts = []
    for name, text in WARP_OPERATIONS.items():
        parts.append(
            f'extern "C" __global__ void write_{name}(unsigned* o) {{ __shared__ unsigned s[32]; int t = threadIdx.x;'
            f"unsigned v = t; s[t] = 2 * t; {text} o[t] = s[t ^ 1] + v; }}"
            f'extern "C" __global__ void read_{name}(unsigned* o) {{ __shared__ unsigned s[32]; int t = threadIdx.x;'
            f"s[t] = 2 * t; __syncwarp(); unsigned v = s[t ^ 1]; {text} s[t] = v; o[t] = v; }}"
        )
    return Device("\n".join(parts))


@pytest.mark.parametrize("name", WARP_OPERATIONS)
@pytest.mark.parametrize("first", ["write", "read"])
def test_only_syncwarp_orders_a_write_before_another_lane_reads_it(warp_operations, name, first):
    raced = False
    try:
        warp_operations.launch(f"{first}_{name}", 1, 32, np.zeros(32, np.uint32))
    except Race as caught:
        raced = True
        assert "no __syncwarp lies between" in str(caught)
    assert raced == (name not in ORDERS_WRITES if first == "write" else name == "nothing")


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
    assert _races(waiters, f"wait_{list(WAITERS).index(name)}", 2, 64, 0) == WAITERS[name][1]


def test_a_poll_without_a_fence_is_named_as_the_reason(litmus):
    words = [np.zeros(1, np.uint32) for _ in range(4)] + [np.zeros(8, np.uint32)]
    index = list(LITMUS).index("mp_no_acquire")
    with checking(ALL_CHECKS), pytest.raises(Race, match="no fence follows that load"):
        litmus.launch(f"litmus_{index}", 2, 1, *words, BLOCKS)


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
