"""The claims of the chapter sparsity about its exhibits and its numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from climb import count_kernel, load_ladder, verify
from climb.emulator import OutOfBounds, PendingProduct
from kernels.sparsity.exercises import early, exhibit
from kernels.sparsity.sparse_pipe import INSTRUCTIONS


def interleaved(m: int, source: str) -> np.ndarray:
    rows, out = np.arange(m * 4, dtype=np.uint16), np.full(m * 4, 0xFFFF, np.uint16)
    count_kernel(source, "interleave", (1,), (256,), [rows, out, np.int32(m), np.int32(4)])
    return out


def test_interleaved_rows_are_a_permutation_of_whole_groups_alone() -> None:
    source = exhibit("interleaved")
    assert sorted(interleaved(64, source)) == list(range(256))
    with pytest.raises(OutOfBounds):
        interleaved(48, source)
    mended = source.replace("kGroup = 32;", "kGroup = 16;").replace("kInterleave = 4;", "kInterleave = 2;")
    assert sorted(interleaved(48, mended)) == list(range(192))


@pytest.mark.emulated
def test_metadata_that_change_while_products_read_them_are_found_from_the_second_slab_on() -> None:
    verify(early, {"m": 16, "n": 8, "k": 64})
    with pytest.raises(PendingProduct, match="writes a register that is read by the matrix product"):
        verify(early, {"m": 16, "n": 8, "k": 128})


def test_a_step_of_the_pipe_makes_as_many_instructions_as_the_chapter_counts() -> None:
    assert INSTRUCTIONS == 4
    for rung in load_ladder("sparse_pipe"):
        calls = re.findall(r"wgmma_sparse_f16_rows_of_n<\d>\(d", rung.source)
        assert len(calls) * 2 == INSTRUCTIONS  # two warpgroups
