"""Rungs that wait for a GPU: tests of counts and times that only a GPU gives leave them out."""

from __future__ import annotations

from climb import MissingRecord, load_ladder, load_record

#: Ladders and rungs that were timed on a GPU, but not yet counted or sanitised there. Once `climb record --only
#: agreement,sanitize` has run, this set shrinks.
TO_COUNT = {
    "async_copy", "async_matmul", "async_reduction", "async_transpose", "chain", "classifier_work", "conv2d_sizes",
    "conv3d_tiles", "convlayer_batch", "convlayer_int direct", "csr_matrix", "csr_vector", "divergence compacted",
    "divergence cycle_check", "divergence replayed", "fft_conv2d", "floor", "hgemm", "integer", "launch", "prune",
    "report_layouts", "shared", "sparse_gemm", "sparse_pipe", "tensor_bf16", "tensor_f16", "tensor_fp8",
    "tensor_int8", "tensor_tf32", "tf32gemm", "tgemm", "unet", "unet_f16", "write",
}  # fmt: skip


def pending(name: str) -> set[str]:
    """The rungs of a ladder that its record has no point of; none where the ladder has no record at all."""
    try:
        measured = {point.name for point in load_record(name).points}
    except MissingRecord:
        return set()
    return set(load_ladder(name).names) - measured
