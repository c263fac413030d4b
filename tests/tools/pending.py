"""Rungs that wait for a GPU: tests of counts and times that only a GPU gives leave them out."""

from __future__ import annotations

from climb import MissingRecord, load_ladder, load_record

#: Ladders and rungs that were timed on a GPU, but not yet counted there, or that wait for both. Once `climb record
#: --only agreement` has run, this set shrinks.
TO_COUNT = {
    "async_reduction cluster", "chain", "classifier_f16", "classifier_work", "conv2d_sizes", "conv3d_tiles",
    "convlayer_batch", "convlayer_f16", "convlayer_int direct", "convlayer_tensor",
    "convlayer_tf32",
    "fft_conv3d boxes", "fft_conv3d dependent", "fft_crossover", "floor", "hgemm balanced", "integer", "launch",
    "report_layouts",
    "shared", "sparse_pipe", "tensor_bf16", "tensor_f16", "tensor_fp8", "tensor_int8", "tensor_tf32", "unet",
    "unet_f16", "write",
}  # fmt: skip

#: Ladders that were counted, but have not been found clean under compute-sanitizer. memcheck reported calls of the
#: driver's bindings where those load; they load before the first launch now. racecheck reported, of async_reduction's
#: `cluster`, a store to a block that may not have begun, which the rung now waits for, and of tgemm's `few_rows` reads
#: of what a warpgroup stored before __syncthreads().
TO_SANITIZE = {
    "async_matmul", "async_reduction", "fft_conv3d", "hgemm", "tf32gemm", "tgemm",
}  # fmt: skip


def pending(name: str) -> set[str]:
    """The rungs of a ladder that its record has no point of; none where the ladder has no record at all."""
    try:
        measured = {point.name for point in load_record(name).points}
    except MissingRecord:
        return set()
    return set(load_ladder(name).names) - measured
