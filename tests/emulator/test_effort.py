"""Kernels that run for long: those without an end in sight are given up, those that get somewhere are not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from harness import Device

from climb.emulator import EndlessLoop
from climb.emulator.execution.effort import SAMPLES, Effort, _Approach, bounds_of

KERNELS = r"""
extern "C" __global__ void odd(unsigned* o) { unsigned n = 2 * threadIdx.x + 1;
  while (n != o[0]) { n += 2; if (n == 9) o[1] = n; } }
extern "C" __global__ void passes_by(volatile unsigned* o) { o[1] = 1; while (o[1] != 8) o[1] += 2; }
extern "C" __global__ void queue(unsigned* o) {
  while (atomicAdd(o + 1, 1) != *(volatile unsigned*)(o + 2) + 1) atomicAdd(o + 2, 1); }
extern "C" __global__ void nears(unsigned* o) { double x = 0; while (x < 1) x += 1e-9 * (1 - x); o[1] = x; }
extern "C" __global__ void nears_fast(unsigned* o) { double x = 0;
  while (x < 1) x += 5e-3 * (1 - x) + 1e-12; o[1] = 1; }
extern "C" __global__ void inner_loops(unsigned* o) { unsigned n = 1, sum = 0;
  while (n != o[0]) { n += 2; for (unsigned i = 0; i < o[32] + 40; ++i) sum = sum * 5 + i; } o[1] = sum; }

extern "C" __global__ void long_sum(unsigned* o) { unsigned x = threadIdx.x + 1;
  for (int i = 0; i < 30000 + o[0]; ++i) x = x * 1664525u + (x >> 7); o[1] = x; }
extern "C" __global__ void long_nest(unsigned* o) { unsigned x = threadIdx.x + 1;
  for (int i = 0; i < 90 + o[0]; ++i) for (int j = 0; j < 400 + o[0]; ++j) x = x * 5 + (x >> 7); o[1] = x; }
extern "C" __global__ void fills(unsigned* o) { unsigned at = 0, x = 1;
  while (at != 3000) { x = x * 1664525u + 1013904223u; if (x >> 31) o[64 + at++] = x; } o[1] = x; }
"""


@pytest.fixture(scope="module")
def kernels():
    return Device(KERNELS)


@pytest.fixture
def reviews(monkeypatch):
    """Let 2 ms pass at each review, and give kernels up after 0.4 s, not 8. The list has the time of each review."""
    times = []

    def clock() -> float:
        times.append(0.002 * len(times) + 0.002)
        return times[-1]

    for name, value in (("thread_time", clock), ("WINDOW", 0.1), ("STEPS", 500)):
        monkeypatch.setattr(f"climb.emulator.execution.effort.{name}", value)
    return times


@pytest.mark.parametrize("name", ["odd", "passes_by", "queue", "inner_loops", "nears"])
def test_a_loop_that_changes_for_ever_what_it_compares_is_given_up(kernels, name, reviews):
    with pytest.raises(EndlessLoop, match=r"no end in sight: in 0 seconds of computing.*raise max_steps"):
        kernels.launch(name, 1, 1, np.zeros(64, np.uint32))
    assert reviews[-1] < 0.7


@pytest.mark.parametrize("name", ["long_sum", "long_nest", "fills", "nears_fast"])
def test_a_kernel_that_is_only_long_runs_to_its_end(kernels, name, reviews):
    out = np.zeros(64 + 3000, np.uint32)
    kernels.launch(name, 1, 1, out)
    assert out[1] != 0 and reviews[-1] > 0.7


@pytest.mark.parametrize("name, sampled", [("long_sum", True), ("fills", False)])
def test_loops_are_looked_at_only_while_nothing_else_speaks_for_an_end(kernels, name, sampled, reviews, monkeypatch):
    """`fills` stores in a new place every few steps, in each window before its loops could be sampled often enough."""
    samples, plain = [], Effort._sample
    monkeypatch.setattr(Effort, "_sample", lambda *args: (samples.append(1), plain(*args)))
    kernels.launch(name, 1, 1, np.zeros(64 + 3000, np.uint32))
    windows = reviews[-1] / 0.1
    assert (len(samples) > 8 * windows) is sampled


def test_more_steps_give_a_kernel_more_time(kernels, reviews):
    with pytest.raises(EndlessLoop, match="no end in sight"):
        kernels.launch("odd", 1, 1, np.zeros(64, np.uint32), max_steps=8_000_000)
    assert 1.6 < reviews[-1] < 2.4


@pytest.mark.thorough
def test_an_endless_loop_is_given_up_after_seven_seconds_of_computing(kernels, monkeypatch):
    """A clock of the test's own: a hundredth of a second passes whenever it is read."""
    monkeypatch.setattr("climb.emulator.execution.effort.thread_time", (n / 100 for n in itertools.count()).__next__)
    with pytest.raises(EndlessLoop, match=r"no end in sight: in [67] seconds of computing"):
        kernels.launch("queue", 1, 256, np.zeros(64, np.uint32))


@pytest.mark.parametrize(("samples", "enough"), [(SAMPLES - 1, False), (SAMPLES, True)])
def test_a_loop_that_comes_closer_needs_so_many_samples(samples, enough):
    approach = _Approach(first=100.0, last=100.0, begun=0, steps=0)
    for sample in range(1, samples):
        approach.add(100.0 - sample, 10 * sample)
    assert approach.samples == samples and approach.closer(1000) is enough


def test_what_is_found_out_about_loops_serves_later_launches(reviews, monkeypatch):
    found = []
    monkeypatch.setattr(
        "climb.emulator.execution.effort.bounds_of", lambda blocks, head: found.append(head) or bounds_of(blocks, head)
    )
    device = Device(KERNELS)
    for _ in range(2):
        device.launch("long_nest", 1, 1, np.zeros(64, np.uint32))
    assert sorted(set(found)) == sorted(found) != []
