"""Loops that never end are named soon, and a waiting thread lets the others go on, whatever the pattern of waiting."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import EndlessLoop, Schedule
from climb.emulator.execution.progress import loop_at, loop_body, outermost_body
from climb.emulator.execution.schedules import scheduling

ENDLESS = r"""
extern "C" __global__ void flag(volatile int* o) { if (threadIdx.x < 3) while (o[0] == 0) { } o[1] = 1; }
extern "C" __global__ void two_flags(volatile int* o) { int me = threadIdx.x / 32;
  while (o[1 - me] == 0) { } o[me] = 1; }
extern "C" __global__ void held(int* o) { o[2] = 1; while (atomicExch(o + 2, 1)) { } o[1]++; }
extern "C" __global__ void backoff(int* o) { unsigned wait = 8; o[2] = 1; __syncthreads();
  while (atomicCAS(o + 2, 0, 1)) { __nanosleep(wait); if (wait < 256) wait *= 2; } }
extern "C" __global__ void counting(volatile int* o) { int tries = 0; while (o[0] == 0) ++tries; o[1] = tries; }
extern "C" __global__ void search(const int* o) { int lo = 0, hi = 63, want = 5;
  while (lo < hi) { int middle = (lo + hi) / 2; if (o[middle] < want) lo = middle; else hi = middle; }
  if (lo == 99) __trap(); }
extern "C" __global__ void full_table(int* o) { unsigned at = threadIdx.x * 7 % 64;
  while (o[at] != 99) at = (at + 1) % 64; o[at] = 1; }
extern "C" __global__ void sums(int* o) { float sum = 1; int n = o[0] + 5;
  for (int i = 0; i < n; i += o[i]) sum = sum * 1.5f + n; o[threadIdx.x] = sum; }
extern "C" __global__ void adds(int* o) { while (true) atomicAdd(o + 1, 1); }
extern "C" __global__ void rallies(volatile int* o) { int me = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) while (true) { while (o[3] != me) { } o[3] = 1 - me; } }
extern "C" __global__ void counts_rounds(volatile int* o) { while (o[0] == 0) o[8 + threadIdx.x % 8]++; }
extern "C" __global__ void adds_rounds(int* o) { while (*(volatile int*)o == 0) atomicAdd(o + 1, 1); }
extern "C" __global__ void rallies_until(volatile int* o) { int me = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) while (o[0] == 0) { while (o[3] != me) { } o[3] = 1 - me; } }
extern "C" __global__ void toggles(int* o) { if (threadIdx.x == 0) while (atomicXor(o + 1, 1) != 2) { } }
extern "C" __global__ void barriers(int* o) { do __syncthreads(); while (o[0] == 0); }
"""


@pytest.fixture(scope="module")
def endless():
    return Device(ENDLESS)


@pytest.mark.parametrize(
    "name", ["flag", "two_flags", "held", "backoff", "search", "full_table", "sums", "barriers", "counting"]
)
def test_a_loop_that_nothing_can_end_is_named_before_it_has_run_for_long(endless, name):
    """A hundredth of the usual limit on steps: with 8192 all of them are found out."""
    with pytest.raises(EndlessLoop, match="nothing that the loop's condition depends on changes any more"):
        endless.launch(name, 2, 64, np.zeros(64, np.int32), max_steps=20_000)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("adds", "no path leads out of this loop"), ("rallies", "all registers and all of memory"),
        ("counts_rounds", "nothing that the loop's condition depends on"),
        ("adds_rounds", "nothing that the loop's condition depends on"),
        ("rallies_until", "all registers and all of memory are as they were before"),
        ("toggles", "all registers and all of memory are as they were before"),
    ],
)  # fmt: skip
def test_a_loop_that_changes_memory_for_ever_is_named_before_it_has_run_for_long(endless, name, why, monkeypatch):
    monkeypatch.setattr("climb.emulator.execution.scheduler.PATIENCE", 500)
    with pytest.raises(EndlessLoop, match=why):
        endless.launch(name, 1, 64, np.zeros(64, np.int32), max_steps=2_000)


FINITE = r"""
extern "C" __global__ void long_loop(unsigned* o) { unsigned x = threadIdx.x, n = 0;
  do { x = x * 1664525u + 1013904223u; ++n; } while (n < 9000 || (x >> 28) == 3); o[threadIdx.x] = n; }
extern "C" __global__ void nested(unsigned* o) { unsigned x = threadIdx.x + 1;
  for (int i = 0; i < 90 + o[0]; ++i) for (int j = 0; j < 400 + o[0]; ++j) x = x * 5 + (x >> 7); o[32] = x; }
extern "C" __global__ void polls(volatile int* flag, int* o) {
  if (threadIdx.x < 32) { while (flag[0] == 0) { } o[0] = flag[1]; }
  else if (threadIdx.x == 32) { unsigned x = 7; for (int i = 0; i < 9000; ++i) x = x * 1664525u + 1013904223u;
    flag[1] = x; __threadfence(); flag[0] = 1; } }
extern "C" __global__ void deadline(volatile int* flag, int* o) { long long start = clock64(); int late = 0;
  while (flag[0] == 0) if (clock64() - start > 20000000) { late = 1; break; } o[threadIdx.x] = late; }
extern "C" __global__ void ping_pong(volatile int* ball, int* o) { int me = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) for (int i = 0; i < 200; ++i) { while (ball[0] != me) { } ball[0] = 1 - me; }
  o[threadIdx.x] = 1; }
extern "C" __global__ void count_up(volatile int* o) {
  if (threadIdx.x == 32) while (o[0] < 3000) o[0] = o[0] + 1;
  else if (threadIdx.x < 32) while (o[0] < 3000) { } }
extern "C" __global__ void ends_by_count(volatile int* o) { while (o[0] == 0) { if (++o[1] == 1500) o[0] = 1; } }
extern "C" __global__ void ends_by_address(volatile int* o) { int* p = (int*)o + 1500; while (o[0] == 0) *p-- = 1; }
extern "C" __global__ void ends_by_sum(volatile int* o) { while (atomicAdd((int*)o + 1, 1) < 1500) { } o[0] = 1; }
extern "C" __global__ void rallies_and_counts(volatile int* o) { int me = threadIdx.x / 32, n = 0;
  if (threadIdx.x % 32 == 0) while (n < 150) { while (o[3] != me) { } o[3] = 1 - me; ++n; } o[0] = 1; }
extern "C" __global__ void one_ends_the_other(volatile int* o) {
  if (threadIdx.x == 0) { for (int i = 0; i < 1500; ++i) o[2 + i % 2] ^= 1; o[0] = 1; }
  else if (threadIdx.x == 32) while (o[0] == 0) o[4] ^= 1; }
extern "C" __global__ void backoff(int* lock, int* sum) { unsigned wait = 8;
  while (atomicCAS(lock, 0, 1) != 0) { __nanosleep(wait); if (wait < 256) wait *= 2; }
  __threadfence(); *sum = *sum + 1; __threadfence(); atomicExch(lock, 0); }
extern "C" __global__ void ticket(unsigned* next, int* sum) { volatile unsigned* serving = next + 1;
  unsigned mine = atomicAdd(next, 1); while (*serving != mine) { }
  __threadfence(); *sum = *sum + 1; __threadfence(); *serving = mine + 1; }
"""


@pytest.fixture(scope="module")
def finite():
    return Device(FINITE)


def test_a_long_loop_whose_registers_change_runs_to_its_end(finite):
    out = np.zeros(32, np.uint32)
    finite.launch("long_loop", 1, 32, out)
    assert out.min() >= 9000


def test_an_inner_loop_that_starts_anew_is_not_taken_for_one_that_never_ends(finite):
    """In every round of the outer loop, all that decides about the inner one is as before."""
    out = np.zeros(64, np.uint32)
    finite.launch("nested", 1, 1, out)
    x = 1
    for _ in range(90 * 400):
        x = (x * 5 + (x >> 7)) % 2**32
    assert out[32] == x


def test_a_wait_for_a_thread_that_computes_for_long_ends(finite):
    out = np.zeros(1, np.int32)
    finite.launch("polls", 1, 64, np.zeros(2, np.int32), out)
    assert out[0] != 0


def test_a_wait_with_a_deadline_ends_at_the_deadline(finite):
    out = np.zeros(32, np.int32)
    finite.launch("deadline", 1, 32, np.zeros(1, np.int32), out)
    assert (out == 1).all()


def test_threads_that_return_memory_to_an_earlier_state_make_progress(finite):
    out = np.zeros(64, np.int32)
    finite.launch("ping_pong", 1, 64, np.zeros(1, np.int32), out)
    assert (out == 1).all()


def test_a_wait_for_a_thread_that_loops_over_stores_ends(finite):
    count = np.zeros(1, np.int32)
    finite.launch("count_up", 1, 64, count)
    assert count[0] == 3000


@pytest.mark.parametrize(
    "name", ["ends_by_count", "ends_by_address", "ends_by_sum", "rallies_and_counts", "one_ends_the_other"]
)
def test_a_long_loop_that_changes_memory_ends_where_it_should(finite, name, monkeypatch):
    monkeypatch.setattr("climb.emulator.execution.scheduler.PATIENCE", 500)
    words = np.zeros(10_000, np.int32)
    finite.launch(name, 1, 32 if name.startswith("ends") else 64, words)
    assert words[0] == 1


@pytest.mark.parametrize("name", ["backoff", "ticket"])
def test_contended_locks_let_every_thread_in(finite, name):
    total = np.zeros(1, np.int32)
    finite.launch(name, 2, 20, np.zeros(2, np.int32), total)
    assert total[0] == 40


def test_the_condition_of_a_loop_depends_on_its_registers_and_memory(endless, finite):
    """A sum that the loop only computes is not among them."""
    sums, deadline = (
        [loop_at(blocks, head, loop_body(blocks, head)) for head in _heads(blocks)]
        for blocks in (endless.kernel("sums").code.blocks, finite.kernel("deadline").code.blocks)
    )
    assert [(each.memory, each.clock) for each in sums] == [(True, False)]
    assert not any(name.startswith("%f") for name in sums[0].registers)
    assert any(each.clock for each in deadline)


def test_a_loop_with_all_loops_around_it_is_what_leads_to_its_head_and_back(finite):
    """Of the nested loops, with code before and after them, and of all other kernels with loops."""
    seen = 0
    for name in ("nested", "polls", "count_up", "ping_pong", "rallies_and_counts"):
        blocks = finite.kernel(name).code.blocks
        leads = np.zeros((len(blocks), len(blocks)), np.bool_)
        for block in blocks:
            leads[block.index, list(block.successors)] = True
        for _ in blocks:
            leads |= (leads.astype(int) @ leads.astype(int)) > 0
        for head in _heads(blocks):
            expected = set(np.flatnonzero(leads[head] & leads[:, head]).tolist())
            assert outermost_body(blocks, head) == expected | {head}, (name, head)
            assert len(expected) < len(blocks)
            seen += loop_body(blocks, head) < expected
    assert seen > 0  # a loop with another one around it


def _heads(blocks):
    return sorted({to for block in blocks for to in block.successors if to <= block.index})


PIPELINE = r"""
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
// CUDA C++ Programming Guide, "Asynchronous Barrier": two buffers, producers and consumers
extern "C" __global__ void k(int rounds, int length, int producers, const float* in, float* out) {
  extern __shared__ float buffer[];
  #pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier bar[4];
  barrier *ready = bar, *filled = bar + 2;
  int t = threadIdx.x;
  if (t < 4) init(bar + t, blockDim.x);
  __syncthreads();
  if (t < producers)
    for (int i = 0; i < rounds; ++i) {
      ready[i % 2].arrive_and_wait();
      for (int j = t; j < length; j += producers) buffer[i % 2 * length + j] = in[i * length + j];
      (void)filled[i % 2].arrive();
    }
  else {
    (void)ready[0].arrive();
    (void)ready[1].arrive();
    int consumers = blockDim.x - producers;
    for (int i = 0; i < rounds; ++i) {
      filled[i % 2].arrive_and_wait();
      for (int j = t - producers; j < length; j += consumers)
        out[i * length + j] = 2 * buffer[i % 2 * length + length - 1 - j];
      (void)ready[i % 2].arrive();
    }
  }
}"""


@pytest.fixture(scope="module")
def pipeline():
    return Device(PIPELINE)


@pytest.mark.parametrize("producers", [32, 96])
@pytest.mark.parametrize("schedule", [None, Schedule(1)])
def test_producers_and_consumers_take_turns_over_barriers(pipeline, producers, schedule):
    rng = np.random.default_rng(1)
    data = rng.random((7, 96), np.float32)
    out = np.zeros_like(data)
    with scheduling(schedule):
        pipeline.launch("k", 2, producers + 32, 7, 96, producers, data, out, shared=2 * 96 * 4)
    assert np.array_equal(out, 2 * data[:, ::-1])
