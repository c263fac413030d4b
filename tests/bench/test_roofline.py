"""The limit equals arithmetic done by hand."""

from __future__ import annotations

import dataclasses

import pytest
from tiny_ladder import product, scale

from climb.bench import roofline
from climb.bench.problem import Argument
from climb.bench.roofline import MissingCeiling, arithmetic_intensity, bandwidth_ceiling, limit, limit_s

CEILINGS = {"copy_gb_s": 4000.0, "read_gb_s": 5000.0, "fma_tflop_s": 50.0}


def test_limit_of_a_memory_bound_problem_is_its_bytes():
    # 2^20 floats in and out are 8 MiB, at 4000 GB/s 2.097152 us; 2^21 FLOPs at 50 TFLOP/s are 0.04 us.
    found = limit(scale.problem, {"n": 1 << 20}, CEILINGS)
    assert found.seconds == pytest.approx(2.097152e-6) and found.bound == "memory"
    assert found.arithmetic_s == pytest.approx(4.194304e-8)
    assert arithmetic_intensity(scale.problem, {"n": 1 << 20}) == 0.25


def test_limit_of_a_compute_bound_problem_is_its_flops():
    # 2 * 4096^3 FLOPs at 50 TFLOP/s are 2.749 ms; 3 * 4096^2 floats at 4000 GB/s 50 us.
    size = {"m": 4096, "n": 4096, "k": 4096, "repeat": 1}
    assert limit_s(product.problem, size, CEILINGS) == pytest.approx(2 * 4096**3 / 50e12)
    assert limit(product.problem, size, CEILINGS).bound == "arithmetic"


@pytest.mark.parametrize(("outputs", "ceiling"), [(99, "read_gb_s"), (100, "copy_gb_s"), (101, "copy_gb_s")])
def test_problem_that_hardly_writes_uses_the_read_ceiling(outputs, ceiling):
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


def test_unit_of_a_ceiling_comes_from_its_name():
    assert roofline.unit("copy_gb_s") == 1e9 and roofline.unit("tf32_tflop_s") == 1e12
    with pytest.raises(ValueError, match="bandwidth"):
        roofline.unit("bandwidth")
