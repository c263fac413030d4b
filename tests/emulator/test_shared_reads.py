"""Reads of one shared word by a whole block: two of its lanes stand for all, and the stamps stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from climb.bench.counting import count_kernel
from climb.emulator import Race, checking
from climb.emulator.checks import shared_shadow

KERNEL = """
__global__ void broadcast(const int* __restrict__ at, int* __restrict__ out)
{
    __shared__ int values[64];
    if (threadIdx.x < 64) values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int sum = values[3] + values[at[blockIdx.x]];
    if (threadIdx.x >= 40) sum += values[5];
    if (threadIdx.x < 20) sum += values[7];
    if (threadIdx.x == 33) sum += values[9];
    if (threadIdx.x == WRITER) values[TARGET] = sum;
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum + values[11];
}
"""


def stamps(monkeypatch, source: str, threads: int, reduced: bool) -> list[np.ndarray]:
    """The stamps of reads after each flush."""
    found: list[np.ndarray] = []
    plain = shared_shadow.SharedShadow._flush

    def flush(self, log, which):
        plain(self, log, which)
        found.append(self.cells.reads.copy())

    with monkeypatch.context() as patch:
        patch.setattr(shared_shadow.SharedShadow, "_flush", flush)
        if not reduced:
            patch.setattr(shared_shadow, "_same_in_a_block", lambda index: False)
        with checking({"shared"}):
            arguments = np.array([1, 60], np.int32), np.zeros(2 * threads, np.int32)
            count_kernel(source, "broadcast", (2,), (threads,), arguments)
    return found


@pytest.mark.parametrize("threads", [64, 70, 128])
def test_two_lanes_leave_the_stamps_of_all(monkeypatch, threads: int) -> None:
    source = KERNEL.replace("TARGET", "13").replace("WRITER", "2")
    few, many = (stamps(monkeypatch, source, threads, reduced) for reduced in (True, False))
    assert len(few) == len(many) > 0 and any(each.any() for each in few)
    for one, other in zip(few, many, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("writer", [0, 31, 32, 63])
def test_a_write_to_the_word_that_all_have_read_is_a_race_for_every_writer(writer: int) -> None:
    source = KERNEL.replace("TARGET", "3").replace("WRITER", str(writer))
    with checking({"shared"}), pytest.raises(Race):
        count_kernel(source, "broadcast", (2,), (64,), (np.array([1, 60], np.int32), np.zeros(128, np.int32)))
