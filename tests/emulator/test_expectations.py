"""`expect`: what tests of kernels can expect of a launch, and what they are told when it does not hold."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from climb.emulator import Expectations, Schedules, expect, run

SOURCE = """__global__ void k(const float* x, float* y) {
    __shared__ float s[1024];
    s[threadIdx.x * 32] = x[threadIdx.x * 2];
    __syncthreads();
    if (threadIdx.x < 8) atomicAdd(y, s[992 - threadIdx.x * 32]);
}"""


@pytest.fixture(scope="module")
def found() -> Expectations:
    args = [np.ones(64, np.float32), np.zeros(1, np.float32)]
    return expect(run(SOURCE, grid=2, block=32, args=args, schedule=Schedules(1)))


def test_expectations_that_hold_chain(found: Expectations) -> None:
    found.clean().at_most("global load sectors", 16).at_least("global load sectors", 16).equal("barriers", 2)
    found.equal("global load sectors per request", 8).equal("global load ideal sectors", 8).ideal("local load")
    found.equal("global atomic lanes at a shared address", 14)
    found.equal("shared store bank conflicts", 62).equal("bank conflicts", 62 + 14).equal("bank conflicts", 62, line=3)
    found.equal("shared store wavefronts", 64, line="x[threadIdx").equal("divergent branches", 2, line=5)
    found.equal("local load sectors", 0).at_most("lane efficiency", 0.99).equal("lane efficiency", 1, line=4)
    assert math.isnan(found.value("local load sectors per request"))
    assert found.value("warp instructions", line="atomicAdd") < found.value("warp instructions")
    assert expect(found.counters).clean().value("thread instructions") == found.counters.thread_instructions


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda e: e.at_most("global load sectors", 15), "sectors: 16, expected at most 15\n  line 3: 16, 2 requests"),
        (lambda e: e.at_least("lane efficiency", 1.5), "lane efficiency: 0.78125, expected at least 1.5"),
        (lambda e: e.equal("barriers", 3), "barriers: 2, expected 3"),
        (lambda e: e.ideal("global load"), "global load sectors: 16, expected at most 8"),
        (lambda e: e.ideal("shared load"), "shared load wavefronts: 16, expected at most 2"),
        (lambda e: e.at_most("local load sectors per request", 4), "local load sectors per request: nan, expected"),
    ],
)  # fmt: skip
def test_expectation_that_does_not_hold_says_what_was_found(found: Expectations, wrong, says: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(says)):
        wrong(found)


@pytest.mark.parametrize(
    ("quantity", "line", "says"),
    [
        ("global load sector", None, "did you mean 'global load sectors'?"),
        ("bank conflict", None, "did you mean 'bank conflicts'?"),
        ("sectors", None, "no quantity 'sectors'"),
        ("bank conflicts", 7, "the kernel's files have no line 7"),
        ("global load sectors", "z[", r"the kernel's files have no line 'z['"),
        ("barriers", 4, "is counted for a launch"),
    ],
)
def test_unknown_quantity_or_line_is_refused(found: Expectations, quantity: str, line: int | str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        found.at_most(quantity, 1e9, line=line)


def test_outputs_that_depend_on_the_schedule_are_not_clean() -> None:
    source = "__global__ void k(int* last) { atomicExch(last + 1, blockIdx.x); }"
    result = run(source, grid=8, block=1, args=[np.zeros(2, np.int32)], schedule=Schedules(4))
    with pytest.raises(AssertionError, match="the outputs depend on the schedule"):
        expect(result).clean()
