"""Classifier: a fully connected layer, output = weights x input, float32. Each weight is used once per input vector.

``weights`` has a row of ``inputs`` floats per output, as PyTorch's ``Linear`` has it. A batch of one is the course
report's case; with more the weights can be used again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from climb.bench.ladder import Ladder
from climb.bench.libraries import cublas, cublaslt, triton_peers
from climb.bench.problem import Launch, Peer, Rung, Size
from kernels.classifier.classifier import batches
from kernels.classifier.classifier.launches import (
    ATOMIC_THREADS,
    ROWS,
    SHARED_THREADS,
    THREADS,
    TILE,
    atomics_fit,
    extents_fit,
    no_bounds,
    row_blocks,
    rows,
    split_k,
    split_k_fits,
    split_k_sums,
    with_atomics,
)
from kernels.classifier.classifier.problem import CLASS1, CLASS2, WARP, problem

__all__ = ["CLASS1", "CLASS2", "ladder", "problem"]


def _by_atomics(name: str, idea: str, inputs_per_block: int, outputs_per_block: int) -> Rung:
    launches = with_atomics(f"classifier_{name}", inputs_per_block, outputs_per_block)
    return Rung(name, idea, launches, requires=atomics_fit(outputs_per_block), swept=False)


def _packed(name: str, idea: str, launches: Callable[[Size], tuple[Launch, ...]], **more: Any) -> Rung:
    """A rung that loads packs of up to four floats."""
    more = {"requires": extents_fit, **more}
    return Rung(name, idea, launches, alignment={"weights": 16, "input": 16}, **more)


def _cublas(tf32: bool) -> Callable[[dict[str, Any], Size], Callable[[], Any]]:
    """cuBLAS on the whole batch: its matrix-vector product where the batch is one, its matrix product otherwise."""

    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], Any]:
        import torch

        weights, given, out = (torch.from_dlpack(arrays[name]) for name in ("weights", "input", "output"))
        if size["batch"] == 1 and not tf32:
            return lambda: torch.mv(weights, given[0], out=out[0])
        return cublas.matmul(given, weights.t(), out, tf32)

    return prepare


def _cublaslt(precision: str) -> Callable[[dict[str, Any], Size], Callable[[], Any]]:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], Any]:
        weights, given, out = (arrays[name] for name in ("weights", "input", "output"))
        factors = cublaslt.matrix(given), cublaslt.matrix(weights, transposed=True)
        return cublaslt.product(*factors, cublaslt.matrix(out), precision)

    return prepare


def _triton(precision: str) -> Callable[[dict[str, Any], Size], Callable[[], Any]]:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], Any]:
        return triton_peers.layer(arrays["weights"], arrays["input"], arrays["output"], precision)

    return prepare


def _several(size: Size) -> str | None:
    return None if size["batch"] > 1 else "a batch of one has nothing for a tensor core"


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _by_atomics("tiles", "a thread per weight, an atomic per product", TILE, TILE),
        _by_atomics("tile_sums", "an atomic per warp", TILE, TILE),
        _by_atomics("single_thread_load", "a block per input, one thread loads", 1, ATOMIC_THREADS),
        _by_atomics("columns", "a block per input, every thread loads", 1, ATOMIC_THREADS),
        Rung(
            "row_thread",
            "a thread per output",
            rows("classifier_row_thread", THREADS, THREADS, packed=False),
            requires=extents_fit,
            swept=False,
        ),
        Rung(
            "row_warp",
            "a warp per output",
            rows("classifier_row_warp", THREADS, THREADS // WARP, packed=False),
            requires=extents_fit,
        ),
        _packed("vectorised", "16 bytes per load", rows("classifier_vectorised", THREADS, THREADS // WARP)),
        _packed(
            "shared_input",
            "the input in shared memory",
            rows("classifier_shared_input", SHARED_THREADS, SHARED_THREADS // WARP),
        ),
        _packed(
            "several_rows",
            "four rows per warp for one load of the input",
            rows("classifier_several_rows", THREADS, THREADS // WARP * ROWS),
        ),
        _packed("row_block", "a block per output", row_blocks("classifier_row_block")),
        _packed("launch_bounds", "registers for a whole row in flight", row_blocks("classifier_launch_bounds")),
        _packed("evict_first", "weights leave the L2 cache first", row_blocks("classifier_evict_first")),
        _packed(
            "split_k",
            "a block per piece of a row, then a second pass",
            split_k,
            requires=split_k_fits,
            workspace=split_k_sums,
        ),
        _packed("no_bounds", "no bounds for rows that a block covers", no_bounds),
        _packed(
            "batched",
            "weights meet 32 samples in shared memory",
            batches.batched,
            workspace=batches.sums(batches.batched_plan),
        ),
        _packed(
            "split_k_per_warp",
            "a warp per slice of the inputs, 64 sums a lane",
            batches.split_k_per_warp,
            workspace=batches.sums(batches.per_warp_plan),
        ),
    ),
    peers=(
        Peer("cuBLAS fp32", _cublas(tf32=False), cublas.cublas("torch.mv; torch.mm for a batch", "fp32")),
        # TF32 rounds each factor to 11 bits: a relative error of 2^-11 for each product, and they average out.
        Peer("cuBLAS TF32", _cublas(tf32=True), cublas.cublas("torch.mm", "TF32"), tolerance=lambda size: 2.0**-10),
        Peer(
            "cuBLASLt fp32", _cublaslt("fp32"), cublas.cublas("cublasLtMatmul, heuristics timed", "fp32"), swept=False
        ),
        Peer(
            "cuBLASLt TF32",
            _cublaslt("TF32"),
            cublas.cublas("cublasLtMatmul, heuristics timed", "TF32"),
            tolerance=lambda size: 2.0**-10,
            requires=_several,
            swept=False,
        ),
        Peer("Triton fp32", _triton("ieee"), triton_peers.triton("matrix product", "fp32"), swept=False),
        Peer(
            "Triton 3xTF32",
            _triton("tf32x3"),
            triton_peers.triton("matrix product", "3xTF32"),
            requires=_several,
            swept=False,
        ),
    ),
)
