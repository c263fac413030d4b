"""The limit equals arithmetic done by hand."""

from __future__ import annotations

import dataclasses

import pytest
from tiny_ladder import made, product, scale

from climb.bench import roofline
from climb.bench.problem import Argument
from climb.bench.records import Ceilings
from climb.bench.roofline import MissingCeiling, arithmetic_intensity, bandwidth_ceiling, limit, limit_of, limit_s
from climb.bench.work import Work, ceiling_of, pipe_name

CEILINGS = {"copy_gb_s": 4000.0, "read_gb_s": 5000.0, "fma_tflop_s": 50.0}
ALL = {
    **CEILINGS,
    "floor_us": 3.0,
    "launch_us": 2.5,
    "write_gb_s": 4500.0,
    "int32_top_s": 25.0,
    "shared_tb_s": 30.0,
    "issue_ginst_s": 1000.0,
}


def test_limit_of_a_memory_bound_problem_is_its_bytes():
    # 2^20 floats in and out are 8 MiB, at 4000 GB/s 2.097152 us; 2^21 FLOPs at 50 TFLOP/s are 0.04 us.
    found = limit(scale.problem, {"n": 1 << 20}, CEILINGS)
    assert found.seconds == pytest.approx(2.097152e-6) and found.bound == found.limited_by == "memory"
    assert found.arithmetic_s == pytest.approx(4.194304e-8) and found.pending == ("floor_us",)
    assert arithmetic_intensity(scale.problem, {"n": 1 << 20}) == 0.25


def test_limit_of_a_compute_bound_problem_is_its_flops():
    # 2 * 4096^3 FLOPs at 50 TFLOP/s are 2.749 ms; 3 * 4096^2 floats at 4000 GB/s 50 us.
    size = {"m": 4096, "n": 4096, "k": 4096, "repeat": 1}
    assert limit_s(product.problem, size, CEILINGS) == pytest.approx(2 * 4096**3 / 50e12)
    found = limit(product.problem, size, CEILINGS)
    assert (found.bound, found.pipe, found.limited_by) == ("arithmetic", "fma", "FMA pipe")


def test_the_floor_comes_before_the_slower_of_memory_and_pipes():
    found = limit(scale.problem, {"n": 1 << 20}, ALL)
    assert found.seconds == pytest.approx(3e-6 + 2.097152e-6) and found.pending == ()
    assert limit_of(Work(written=4), ALL).floor_s == pytest.approx(2.5e-6), "nothing is read"
    small = limit(scale.problem, {"n": 1024}, ALL)
    assert small.limited_by == "floor" and small.bound == "memory"


@pytest.mark.parametrize(
    ("read", "written", "seconds"),
    [
        (10**9, 10**9, 2e9 / 4e12),
        (3 * 10**9, 10**9, 2e9 / 4e12 + 2e9 / 5e12),
        (10**9, 3 * 10**9, 2e9 / 4e12 + 2e9 / 4.5e12),
        (10**9, 0, 1e9 / 5e12),
        (0, 10**9, 1e9 / 4.5e12),
    ],
)
def test_bytes_take_the_rate_of_copying_and_the_rest_that_of_reading_or_writing(read, written, seconds):
    assert limit_of(Work(read=read, written=written), ALL).memory_s == pytest.approx(seconds)


def test_written_bytes_that_stay_in_l2_are_not_counted():
    keeping = {**ALL, "kept_mb": 10.0}
    # 10 of 1000 MB stay: 990 are copied, and 10 more are read.
    assert limit_of(Work(read=10**9, written=10**9), keeping).memory_s == pytest.approx(1.98e9 / 4e12 + 1e7 / 5e12)
    assert limit_of(Work(read=0, written=10**7), keeping).memory_s == 0


@pytest.mark.parametrize(
    ("work", "pipe", "seconds"),
    [
        (Work(fma=10**9), "fma", 2e9 / 50e12),
        (Work(fp32=10**9), "fma", 2e9 / 50e12),  # an addition takes as long as a multiply-add
        (Work(fma=10**9, fp32=10**9), "fma", 4e9 / 50e12),
        (Work(int32=10**9), "int32", 2e9 / 25e12),
        (Work(shared=10**9), "shared", 1e9 / 30e12),
        (Work(issue=10**9), "issue", 1e9 / 1e12),
        (Work(fma=1, tensor={"tf32": 10**9}), "tensor_tf32", 1e9 / 400e12),
    ],
)
def test_each_pipe_has_its_own_ceiling(work, pipe, seconds):
    found = limit_of(work, {**ALL, "tensor_tf32_tflop_s": 400.0})
    assert found.pipe == pipe and found.arithmetic_s == pytest.approx(seconds)
    assert roofline.unit(ceiling_of(pipe)) and pipe_name(pipe)


def test_integers_are_counted_as_integers():
    whole = dataclasses.replace(
        scale.problem, arguments=(Argument("y", "int32", ("n",), "output"), Argument("x", "int32", ("n",)))
    )
    assert whole.work({"n": 100}) == Work(read=400, written=400, int32=100)
    assert scale.problem.work({"n": 100}) == Work(read=400, written=400, fma=100)
    adds = dataclasses.replace(scale.problem, operations=lambda size: {"fp32": 2 * size["n"]})
    assert adds.work({"n": 100}) == Work(read=400, written=400, fp32=200)


def test_a_ceiling_that_is_not_measured_yet_is_named_and_never_makes_a_limit_too_high():
    # Without a rate of writing, the fastest known one; integers take at least what multiply-adds take; others nothing.
    found = limit_of(Work(written=10**9, int32=10**9, shared=10**15, issue=10**15), CEILINGS)
    assert found.pending == ("launch_us", "write_gb_s", "int32_top_s", "shared_tb_s", "issue_ginst_s")
    assert found.memory_s == pytest.approx(1e9 / 5e12) and found.arithmetic_s == pytest.approx(2e9 / 50e12)


def test_a_rung_may_have_work_of_its_own():
    half = dataclasses.replace(scale.vector, work=lambda size: Work(read=2 * size["n"], written=2 * size["n"]))
    size = {"n": 1 << 20}
    assert limit(scale.problem, size, CEILINGS, rung=scale.vector) == limit(scale.problem, size, CEILINGS)
    assert limit(scale.problem, size, CEILINGS, rung=half).seconds == pytest.approx(1.048576e-6)


@pytest.mark.parametrize(
    ("median", "spreads", "share"),
    [
        (2e-6, {}, 0.5),
        (0.999e-6, {}, 1.0),  # its upper quartile, 0.5 % above, is not below the limit
        (0.99e-6, {}, 1 / 0.99),
        (0.99e-6, {"read_gb_s": 0.01}, 1.0),
        (0.99e-6, {"copy_gb_s": 0.05, "fma_tflop_s": 0.05}, 1 / 0.99),  # rates that this limit has no part of
        (0.9e-6, {"read_gb_s": 0.01}, 1 / 0.9),
    ],
)
def test_a_share_is_above_one_only_beyond_what_times_and_the_ceilings_of_its_limit_scatter(median, spreads, share):
    found = limit_of(Work(read=5 * 10**6), Ceilings(CEILINGS, spreads))  # 1 us
    point = made.point("plain", "rung", {"n": 1024}, "cold", seconds=median)
    assert found.share(point) == pytest.approx(share)


def test_the_least_limit_has_each_of_its_ceilings_at_the_fast_end_of_its_spread():
    values = {"copy_gb_s": 4000.0, "read_gb_s": 4000.0, "write_gb_s": 4000.0, "kept_mb": 10.0, "floor_us": 4.0}
    spreads = {"write_gb_s": 0.25, "kept_mb": 0.5, "floor_us": 0.1, "fma_tflop_s": 0.9}
    work = Work(read=0, written=40 * 10**6)
    # 30 MB at 4 TB/s, then 25 MB at 5 TB/s; what reads nothing starts as a launch does, which is not measured here.
    found = limit_of(work, Ceilings(values, spreads))
    assert found.seconds == pytest.approx(7.5e-6) and found.least_s == pytest.approx(5e-6)
    reads = limit_of(Work(read=4000), Ceilings(values, spreads))
    assert reads.floor_s == 4e-6 and reads.least_s == pytest.approx(3.6e-6 + 1e-9)
    assert limit_of(work, values).least_s is None


@pytest.mark.parametrize(("outputs", "ceiling"), [(99, "read_gb_s"), (100, "copy_gb_s"), (101, "copy_gb_s")])
def test_problem_that_hardly_writes_is_drawn_under_the_slope_of_reading(outputs, ceiling):
    reads = dataclasses.replace(
        scale.problem,
        arguments=(Argument("y", "float32", (lambda s: outputs,), "output"), Argument("x", "float32", ("n",))),
        bytes=lambda s: 4 * 10000,
    )
    assert bandwidth_ceiling(reads, {"n": 10000 - outputs}) == ceiling


def test_missing_ceiling_is_named_only_if_it_is_needed():
    with pytest.raises(MissingCeiling, match="fma_tflop_s was not measured"):
        limit(scale.problem, {"n": 8}, {"copy_gb_s": 1.0})
    copy = dataclasses.replace(scale.problem, flops=lambda s: 0)
    assert limit_s(copy, {"n": 8}, {"copy_gb_s": 1.0}) == pytest.approx(64e-9)
    with pytest.raises(MissingCeiling, match="read_gb_s was not measured"):
        limit_of(Work(read=8, written=4), {"copy_gb_s": 1.0})


def test_unit_of_a_ceiling_comes_from_its_name():
    assert roofline.unit("copy_gb_s") == 1e9 and roofline.unit("tensor_tf32_tflop_s") == 1e12
    assert roofline.unit("floor_us") == 1e-6 and roofline.unit("kept_mb") == 1e6
    with pytest.raises(ValueError, match="bandwidth"):
        roofline.unit("bandwidth")
