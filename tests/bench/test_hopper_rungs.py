"""Rungs made for one architecture, and launches with tensor maps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tiny_ladder import scale

from climb import cp
from climb.bench.checking import verify
from climb.bench.counting import counters
from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, RungUnavailable, Tensor
from climb.toolchain.options import split_architecture

PROBLEM = Problem(
    name="boxes",
    title="y = x",
    size_keys=("rows", "cols"),
    arguments=(Argument("y", "float32", ("rows", "cols"), "output"), Argument("x", "float32", ("rows", "cols"))),
    make_inputs=lambda size, rng: {"x": rng.standard_normal((size["rows"], size["cols"]), dtype=np.float32)},
    reference=lambda inputs, size: {"y": inputs["x"].astype(np.float64)},
    tolerance=lambda size: 0,
    flops=lambda size: 0,
    bytes=lambda size: 8 * size["rows"] * size["cols"],
    headline=({"rows": 16, "cols": 32},),
    check=({"rows": 9, "cols": 20},),
)


def launches(size, box=(8, 16)):
    shape = (size["rows"], size["cols"])
    args = tuple(Tensor(name, shape, box, "float32") for name in "yx")
    return (Launch("boxes", (-(-shape[1] // 16), -(-shape[0] // 8)), (128,), args),)


RUNG = Rung("boxes", "the copy engine", launches, arch="sm_90a", capability="9.0", source="boxes.cu")
LADDER = Ladder(PROBLEM, scale.FOLDER, (RUNG,))


def test_launch_takes_tensor_maps():
    """Boxes reach past both edges of 9 x 20, where the copy engine reads zeros and writes nothing."""
    assert verify(LADDER["boxes"], PROBLEM.check[0]).max_rel_error == 0


def test_counters_of_a_launch_with_tensor_maps():
    found = counters(LADDER["boxes"], PROBLEM.headline[0])
    assert found.total("tma load").bytes == found.total("tma store").bytes == 4 * 16 * 32


def test_tensor_map_is_part_of_what_is_measured():
    other = Ladder(PROBLEM, scale.FOLDER, (dataclasses.replace(RUNG, launches=lambda s: launches(s, (4, 16))),))
    size = PROBLEM.headline[0]
    assert LADDER["boxes"].sha256(size) != other["boxes"].sha256(size)
    assert "tensor map of x (16 x 32 float32, boxes of 8 x 16)" in str(LADDER["boxes"].launches(size)[0])


def test_strides_of_a_tensor_with_a_pitch():
    assert Tensor("x", (3, 5, 8), (1, 1, 8), "bfloat16", pitch=16).strides == (160, 32, 2)
    assert Tensor("x", (3, 5, 8), (1, 1, 8), "float32").strides == (160, 32, 4)


@pytest.mark.emulated
def test_rung_of_one_architecture_runs_nowhere_else(monkeypatch):
    rung = LADDER["boxes"]
    assert rung.lacks("90", PROBLEM.headline[0]) is None
    assert "made for sm_90a alone" in rung.lacks("100", PROBLEM.headline[0])
    assert "needs compute capability 9.0" in rung.lacks("80", PROBLEM.headline[0])
    monkeypatch.setattr(type(cp.cuda.Device()), "compute_capability", "100")
    with pytest.raises(RungUnavailable, match="made for sm_90a alone"):
        verify(rung, PROBLEM.headline[0])


def test_rung_of_one_architecture_is_compiled_for_it_alone():
    compiled = LADDER["boxes"].compiled(PROBLEM.headline[0], "sm_120")
    assert compiled.arch == "sm_90a" and ".target sm_90a" in compiled.ptx


def test_architecture_of_a_rung_has_instructions_of_its_own():
    with pytest.raises(ValueError, match="sm_90a, not 'sm_90'"):
        dataclasses.replace(RUNG, arch="sm_90")


def test_raw_kernel_takes_an_architecture_as_an_option():
    code = 'extern "C" __global__ void __launch_bounds__(128) f() { asm("setmaxnreg.dec.sync.aligned.u32 40;"); }'
    cp.RawKernel(code, "f", options=("-arch=sm_90a",))((1,), (128,), ())
    with pytest.raises(ValueError, match="such as sm_90a"):
        split_architecture(("-arch=compute_90a",))
    assert split_architecture(("-O3", "--gpu-architecture=sm_90a")) == (("-O3",), "sm_90a")
