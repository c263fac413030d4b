"""A whole matrix product for Hopper: copy engine, mbarriers, warp specialisation and wgmma together."""

from __future__ import annotations

from dataclasses import replace

import hopper_kernels
import numpy as np
import pytest
from hopper_kernels import Example, Tensor, emulate

from climb.emulator import AsyncRace, Deadlock, EmulatorError, PendingProduct, UnfencedProduct
from climb.emulator.runtime.tensor_cores.arithmetic import Types, warpgroup_product

ROWS, COLUMNS, DEPTH = 256, 128, 448


def matmul() -> Example:
    """256 x 128 sums of 448 products, seven tiles of k through a ring of three."""
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((rows, DEPTH)).astype(np.float16) for rows in (ROWS, COLUMNS))
    return Example(
        "matmul", (2, 2), 384, (a, b, np.zeros((ROWS, COLUMNS), np.float32)),
        (Tensor(0, (64, 128), 128, "float16"), Tensor(1, (64, 64), 128, "float16"), 2, np.int32(COLUMNS),
         np.int32(DEPTH)),
        (2,), lambda a, b, c: (product(a, b),), shared=3 * 24576,
    )  # fmt: skip


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A B^T as wgmma adds it up, 16 products at a time."""
    total = np.zeros((1, len(a), len(b)), np.uint32)
    for k in range(0, a.shape[1], 16):
        left, right = (np.ascontiguousarray(each[:, k : k + 16]).view(np.uint16)[None] for each in (a, b))
        total = warpgroup_product(left, right.swapaxes(1, 2), total, Types("f16", "f16", "f32", "f32"))
    return total[0].view(np.float32)


def test_a_warp_specialised_product_is_right_bit_by_bit():
    example = matmul()
    arrays, counters = emulate(example)
    (want,) = example.expected(*example.arrays)
    assert (arrays[2] == want).all()
    a, b, _ = (each.astype(np.float64) for each in example.arrays)
    np.testing.assert_allclose(arrays[2], a @ b.T, atol=3e-4)
    (line,) = counters.product_lines
    assert line.flops == 2 * ROWS * COLUMNS * DEPTH
    assert line.instructions == ROWS // 64 * COLUMNS // 64 * DEPTH // 16


RELEASE = "            if (i > 0 && t % 128 == 0)\n                arrive(&empty[(i - 1) % STAGES]);\n"
PLANTED = [
    (RELEASE, RELEASE.replace("i > 0 && ", "").replace("i - 1", "i"), AsyncRace, "still in flight"),
    ("        wait_group<0>();\n", "", PendingProduct, "left the latest group open"),
    ("            fence();\n", "", UnfencedProduct, "first of its warpgroup"),
    ("wait(&full[s], i / STAGES & 1);", "wait(&full[0], 0);", EmulatorError, "matmul.cu|ptx.cuh"),
    ("            close_group();\n", "", EmulatorError, "no wgmma.commit_group has closed its group"),
    ("sizeof(Stage)", "sizeof(Stage) / 2", EmulatorError, "transaction|expect|bytes|flight"),
    (RELEASE, "", Deadlock, "misses 1 arrival"),
]


@pytest.mark.parametrize("old,new,error,words", PLANTED)
def test_planted_mistakes_are_found(old: str, new: str, error: type[EmulatorError], words: str) -> None:
    with pytest.raises(error, match=f"(?s){words}"):
        emulate(replace(matmul(), edits=((old, new),)))


def test_the_file_is_among_the_kernels():
    assert (hopper_kernels.FOLDER / "matmul.cu").exists()
