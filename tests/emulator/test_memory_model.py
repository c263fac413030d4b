"""The accesses of two threads that PTX's memory model orders: litmus tests, resets of counters, warp operations.

PTX ISA, "Memory Consistency Model"; Lustig, Sahasrabuddhe and Giroux, "A Formal Analysis of the NVIDIA PTX Memory
Consistency Model", ASPLOS 2019. The names of the litmus tests are those of Alglave et al., TOPLAS 36(2), 2014.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device
from litmus import HEAD, PARAMETERS, races

from climb.emulator import ALL_CHECKS, Race, checking

# Two threads run each body: `me` is 0 or 1. x and y are data, f and g flags, m[...] more words, all 0 at first. Their
# places are two blocks, two warps of a block (threads 0 and 32), or two lanes (threads 0 and 1).
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
    # an atomic of one's own orders nothing that others do to its place later
    "mp_write_after_an_atomic": ("FIRST { atomicAdd(x, 1); __threadfence(); STORE('relaxed.gpu', f, 1);"
                                 "do LOAD('relaxed.gpu', v, g); while (!v); m[0] = *x; }"
                                 "SECOND { do LOAD('relaxed.gpu', v, f); while (!v); __threadfence(); *x = 5;"
                                 "STORE('relaxed.gpu', g, 1); }", (BLOCKS, WARPS, LANES)),
    "mp_read_after_an_atomic": ("FIRST { atomicAdd(x, 1); __threadfence(); STORE('relaxed.gpu', f, 1);"
                                "do LOAD('relaxed.gpu', v, g); while (!v); *x = 5; }"
                                "SECOND { do LOAD('relaxed.gpu', v, f); while (!v); __threadfence(); m[0] = *x;"
                                "STORE('relaxed.gpu', g, 1); }", (BLOCKS, WARPS, LANES)),
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


@pytest.mark.parametrize("place", [BLOCKS, WARPS, LANES], ids=["blocks", "warps", "lanes"])
@pytest.mark.parametrize("name", LITMUS)
def test_litmus_tests_have_the_races_that_the_memory_model_gives_them(litmus, name, place):
    index = list(LITMUS).index(name)
    grid, block = ((2, 1), (1, 64), (1, 2))[place]
    assert races(litmus, f"litmus_{index}", grid, block, place) == (place in LITMUS[name][1])


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
extern "C" __global__ void other_resets_after_its_own_barrier(
    unsigned* count, unsigned*, unsigned*, unsigned*, unsigned*, int) {
  if (blockIdx.x == 0) atomicAdd(count, 1);
  __syncthreads();
  if (blockIdx.x > 0 && threadIdx.x == 0) *count = 0; }
extern "C" __global__ void last_resets_in_block(unsigned*, unsigned*, unsigned*, unsigned*, unsigned* o, int early) {
  __shared__ unsigned count; if (threadIdx.x == 0) count = 0; __syncthreads();
  if (atomicAdd(&count, 1) == (early ? 3 : blockDim.x - 1)) { count = 0; o[blockIdx.x % 8] = 1; } }
"""


@pytest.fixture(scope="module")
def patterns():
    return Device(HEAD + PATTERNS)


@pytest.mark.parametrize("plain", [0, 1])
def test_independent_reads_of_independent_writes_race_if_they_are_plain(patterns, plain):
    assert races(patterns, "iriw", 4, 1, plain) == bool(plain)


@pytest.mark.parametrize("who", [0, 1, 40])
def test_the_block_that_counts_last_may_reset_the_counter(patterns, who):
    assert not races(patterns, "last_resets", 300, 64, who)


@pytest.mark.parametrize("name", ["last_resets_early", "last_resets_unordered"])
def test_a_reset_that_others_may_still_count_after_is_a_race(patterns, name):
    assert races(patterns, name, 4, 64, 0)


def test_a_barrier_of_ones_own_block_does_not_order_a_reset_after_another_block_counts(patterns):
    assert races(patterns, "other_resets_after_its_own_barrier", 2, 64, 0)


@pytest.mark.parametrize("early", [0, 1])
def test_the_thread_that_counts_last_may_reset_a_counter_in_shared_memory(patterns, early):
    assert races(patterns, "last_resets_in_block", 1, 96, early) == bool(early)


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
        for memory, place in {"shared": "__shared__ unsigned s[32];", "global": "unsigned* s = o + 32;"}.items():
            parts.append(
                f'extern "C" __global__ void write_{name}_{memory}(unsigned* o) {{ {place} int t = threadIdx.x;'
                f"unsigned v = t; s[t] = 2 * t; {text} o[t] = s[t ^ 1] + v; }}"
                f'extern "C" __global__ void read_{name}_{memory}(unsigned* o) {{ {place} int t = threadIdx.x;'
                f"s[t] = 2 * t; __syncwarp(); unsigned v = s[t ^ 1]; {text} s[t] = v; o[t] = v; }}"
            )
    return Device("\n".join(parts))


@pytest.mark.parametrize("memory", ["shared", "global"])
@pytest.mark.parametrize("name", WARP_OPERATIONS)
@pytest.mark.parametrize("first", ["write", "read"])
def test_only_syncwarp_orders_a_write_before_another_lane_reads_it(warp_operations, name, first, memory):
    raced = False
    try:
        with checking(ALL_CHECKS):
            warp_operations.launch(f"{first}_{name}_{memory}", 1, 32, np.zeros(64, np.uint32))
    except Race as caught:
        raced = True
        assert "no __syncwarp lies between" in str(caught)
    assert raced == (name not in ORDERS_WRITES if first == "write" else name == "nothing")


def test_a_poll_without_a_fence_is_named_as_the_reason(litmus):
    words = [np.zeros(1, np.uint32) for _ in range(4)] + [np.zeros(8, np.uint32)]
    index = list(LITMUS).index("mp_no_acquire")
    with checking(ALL_CHECKS), pytest.raises(Race, match="no fence follows that load"):
        litmus.launch(f"litmus_{index}", 2, 1, *words, BLOCKS)
