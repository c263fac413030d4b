"""Counts of tiny kernels equal numbers worked out by hand; they come from the emulator on every machine."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_ladder import scale

from climb import emulator, load_ladder
from climb.bench import speed
from climb.bench.arguments import ArgumentError
from climb.bench.counting import count_kernel, counters, trace
from climb.cli import main


def test_coalesced_load_takes_four_sectors_per_request():
    # 1024 floats, 32 warps: one 128-byte request each, loaded and stored.
    found = counters(scale.ladder["plain"], {"n": 1024})
    for kind in ("global load", "global store"):
        total = found.total(kind)
        assert (total.requests, total.sectors) == (32, 128)


def test_float4_load_takes_sixteen_sectors_per_request():
    # 256 threads of 16 bytes, 8 warps: 512 bytes a request.
    total = counters(scale.ladder["vector"], {"n": 1024}).total("global load")
    assert (total.requests, total.sectors) == (8, 128)


def test_counters_of_two_launches_are_added():
    found = counters(scale.ladder["twice"], {"n": 1024})
    assert (found.total("global load").requests, found.total("global store").requests) == (64, 64)


def test_the_same_counts_are_kept_and_other_ones_made_anew():
    rung, size = scale.ladder["plain"], {"n": 1024}
    once = counters(rung, size)
    assert counters(rung, dict(size)) is once
    with emulator.checking(()):
        assert counters(rung, size) is not once
    others = (counters(rung, size, seed=1), counters(rung, {"n": 1000}), counters(scale.ladder["vector"], size))
    given = counters(rung, size, inputs=scale.ladder.inputs(size))
    assert all(other is not once for other in (*others, given)) and given == once


def test_a_size_that_the_rung_does_not_take_is_refused():
    with pytest.raises(ArgumentError, match="no multiple of 4"):
        counters(scale.ladder["vector"], {"n": 1023})


def test_trace_holds_the_accesses_of_one_warp():
    seen = trace(scale.ladder["plain"], {"n": 1024}, block=(3, 0, 0), warp=1)
    load, store = seen.accesses
    assert (load.kind, load.allocation, store.kind, store.allocation) == ("global load", "x", "global store", "y")
    assert load.active.all() and (np.diff(load.addresses) == 4).all()
    # Block 3 of 64 threads, second warp: elements 224 to 255.
    first = trace(scale.ladder["plain"], {"n": 1024}).accesses[0]
    assert load.addresses[0] - first.addresses[0] == 4 * 224


def test_second_launch_can_be_traced():
    (load, _) = trace(scale.ladder["twice"], {"n": 64}, launch=1).accesses
    assert load.allocation == "t"


def test_accesses_of_one_source_line_become_one_row():
    once = counters(scale.ladder["plain"], {"n": 1000})
    both = once + once
    assert len(both.lines) == len(once.lines)
    assert [line.sectors for line in both.lines] == [2 * line.sectors for line in once.lines]
    assert [b.branches for b in both.branch_lines] == [2 * b.branches for b in once.branch_lines]
    assert both.warp_instructions == 2 * once.warp_instructions and both.lane_efficiency == once.lane_efficiency


def test_kernel_outside_a_ladder_is_counted_and_writes_back():
    source = """
    template <int S> __global__ void gather(float* y, const float* x, int n, float f) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = f * x[i * S];
    }"""
    x, y = np.arange(256, dtype=np.float32), np.zeros(32, np.float32)
    found = count_kernel(source, "gather<8>", (1,), (32,), (y, x, np.int32(32), np.float32(0.5)))
    np.testing.assert_array_equal(y, 0.5 * x[::8])
    load = found.total("global load")
    assert (load.requests, load.sectors) == (1, 32)


def test_a_python_number_is_refused_because_its_type_is_unknown():
    source = 'extern "C" __global__ void f(int n) {}'
    with pytest.raises(TypeError, match=r"argument 0 is a int; expected a NumPy array, or a NumPy scalar"):
        count_kernel(source, "f", (1,), (1,), (3,))


def test_speed_command_prints_the_speed_of_a_ladder(capsys):
    size = load_ladder("copy").problem.check[-1]
    found = speed.speed_of(load_ladder("copy"))
    assert found.rungs == 5 and len(found.seconds) == 2 and min(found.seconds) > 0
    assert found.thread_instructions == sum(counters(rung, size).thread_instructions for rung in load_ladder("copy"))
    assert main(["speed", "copy"]) == 0
    head, line = capsys.readouterr().out.split("\n")[1:3]
    assert head.split()[:2] == ["ladder", "rungs"] and line.split()[:2] == ["copy", "5"]
