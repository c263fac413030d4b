"""The chapter ``book/tensor-cores.ipynb``: what its text says of its kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tools.corners import with_fault
from tools.thorough import thorough

from climb import BoundRung, check, cp, load_ladder
from climb.bench.identity import expand_includes
from climb.emulator import PendingProduct, Tensor, run
from kernels.tensor_cores.exercises import EXHIBITS, exhibit, holder, judge, swizzle
from kernels.tensor_cores.tf32gemm.launches import ROUNDED

EXHIBIT = EXHIBITS / "prefetched.cu"


def test_the_swizzle_exercise_begins_with_32_wavefronts() -> None:
    verdict = check(swizzle.skeleton, swizzle)
    assert [c.wrong for c in verdict.checks if c.wrong] == ["32 wavefronts per request"]


def test_a_wrong_holder_of_a_sum_is_found() -> None:
    assert judge(holder) and not judge(lambda row, col: (row % 8 * 4 + col // 2, 0))


def _product(text: str) -> float:
    """The relative error of the exhibit's kernel."""
    rng = np.random.default_rng(0)
    m, n, k = 24, 40, 68
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    maps = (Tensor(a, (128, 32), 128, dtype=ROUNDED), Tensor(b, (32, 32), 128, dtype=ROUNDED))
    arguments = [*maps, c, *map(np.int32, (m, n, k))]
    shared = 4 * 49152
    run(text, "tf32gemm_prefetched", grid=2, block=384, args=arguments, shared_mem=shared, arch="sm_90a")
    expected = a.astype(np.float64) @ b
    return float(np.abs(c - expected).max() / np.abs(expected).max())


def test_the_prefetched_exhibit_loads_into_registers_that_a_product_reads() -> None:
    assert exhibit("prefetched").startswith("// Exhibit: ")
    text = expand_includes(EXHIBIT)
    with pytest.raises(PendingProduct, match="writes a register that is read by the matrix product"):
        _product(text)
    # Waiting before the loads mends it.
    early = "                if (i + 1 < slices) {  // loads while the tensor cores multiply\n"
    assert text.count(early) == 1
    assert _product(text.replace(early, "                wgmma_wait<0>();\n" + early)) < 2.0**-9


def _error_of_tiny_products(rung: BoundRung) -> float:
    """The componentwise error of a product of factors around 2^-60."""
    rng = np.random.default_rng(0)
    a, b = (np.ldexp(rng.standard_normal(shape, dtype=np.float32), -60) for shape in ((32, 256), (256, 64)))
    found = cp.asnumpy(rung(cp.asarray(a), cp.asarray(b)))
    terms = np.abs(a).astype(np.float64) @ np.abs(b)
    return float(np.max(np.abs(found - a.astype(np.float64) @ b) / terms))


_OF_A_QUAD = ("values[j] = multiply_add(adds[j], 1.0f, values[j]);", "values[j] += adds[j];")


@pytest.mark.parametrize(
    ("name", "kept", "plain"),
    [
        ("few_rows", *_OF_A_QUAD),
        thorough("wide_tiles", *_OF_A_QUAD),
        thorough("shares", "sums[0] = multiply_add(more.x, 1.0f, sums[0]);", "sums[0] += more.x;"),
    ],
)
def test_partial_sums_below_the_normal_numbers_are_kept_which_plain_additions_lose(
    name: str, kept: str, plain: str, tmp_path: Path
) -> None:
    rung = load_ladder("tgemm")[name]
    assert _error_of_tiny_products(rung) < 2e-7
    assert _error_of_tiny_products(with_fault(rung, kept, plain, tmp_path)) > 1e-5
