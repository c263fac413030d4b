"""A whole matrix product for Hopper: copy engine, mbarriers, warp specialisation and wgmma together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hopper_kernels import Example, Tensor, emulate
from tools.thorough import first_of_each

from climb.emulator import Deadlock, EmulatorError, PendingProduct, Race, Schedule, UnfencedProduct
from climb.emulator.runtime.tensor_cores.arithmetic import Types, warpgroup_product

ROWS, COLUMNS, DEPTH = 256, 128, 448


def matmul(rows: int = ROWS, columns: int = COLUMNS, depth: int = DEPTH) -> Example:
    """256 x 128 sums of 448 products, seven tiles of k through a ring of three."""
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((extent, depth)).astype(np.float16) for extent in (rows, columns))
    return Example(
        "matmul", (columns // 64, rows // 128), 384, (a, b, np.zeros((rows, columns), np.float32)),
        (Tensor(0, (64, 128), 128, "float16"), Tensor(1, (64, 64), 128, "float16"), 2, np.int32(columns),
         np.int32(depth)),
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
    assert line.instructions == 4 * ROWS // 64 * COLUMNS // 64 * DEPTH // 16


def test_warpgroups_meet_under_an_adverse_schedule():
    """Teams hold single warps; the warps of a warpgroup start a product together, while other warpgroups are late."""
    example = matmul(128, 64, 256)
    (want,) = example.expected(*example.arrays)
    arrays, _ = emulate(example, Schedule(0))
    assert (arrays[2] == want).all()


RELEASE = "            if (i > 0 && t % 128 == 0)\n                arrive(&empty[(i - 1) % STAGES]);\n"
PLANTED = [
    (RELEASE, RELEASE.replace("i > 0 && ", "").replace("i - 1", "i"), Race, "warpgroup arrives after its wait"),
    ("        wait_group<0>();\n", "", PendingProduct, "left the latest group open"),
    ("            fence();\n", "", UnfencedProduct, "first of its warpgroup"),
    ("wait(&full[s], i / STAGES & 1);", "wait(&full[0], 0);", EmulatorError, "matmul.cu|ptx.cuh"),
    ("            close_group();\n", "", EmulatorError, "no wgmma.commit_group has closed its group"),
    ("sizeof(Stage)", "sizeof(Stage) / 2", EmulatorError, "transaction|expect|bytes|flight"),
    (RELEASE, "", Deadlock, "misses 1 arrival"),
]


@pytest.mark.parametrize("old,new,error,words", first_of_each(PLANTED, lambda one: one[2], unpack=True))
def test_planted_mistakes_are_found(old: str, new: str, error: type[EmulatorError], words: str) -> None:
    with pytest.raises(error, match=f"(?s){words}"):
        emulate(replace(matmul(), edits=((old, new),)))


SMALL = """__device__ inline void small(float (&e)[4], Word a, Word b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3]) : "l"(a), "l"(b) : "memory");
}
extern "C" __global__"""
LATER = (
    ('extern "C" __global__', SMALL),
    ("        float d[32] = {};\n", "        float d[32] = {}, last = 0, sum = 0;\n"),
    ("            close_group();\n", "            close_group();\n            float e[4] = {};\n            "
     "small(e, left, right);\n            close_group();\n            sum += last;\n"),
    ("            wait_group<1>();\n", "            wait_group<0>();\n            last = e[0];\n"),
    ("make_float2(d[i], d[i + 1])", "make_float2(d[i] + 0 * sum, d[i + 1])"),
)  # fmt: skip


def test_results_of_an_earlier_iteration_may_be_used_while_others_are_in_flight() -> None:
    """Registers of the consumers are copied where the producer has left, so that arrays do not tell whose they are."""
    arrays, _ = emulate(replace(matmul(), edits=LATER))
    (want,) = matmul().expected(*matmul().arrays)
    assert (arrays[2] == want).all()
    early = tuple((old, new.replace("sum += last", "sum += e[0]")) for old, new in LATER)
    with pytest.raises(PendingProduct, match=r"(?s)e\[0\].*sum \+= e\[0\]"):
        emulate(replace(matmul(), edits=early))
