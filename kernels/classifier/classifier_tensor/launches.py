"""The launches of the classifier's rungs on tensor cores: tiles of outputs and samples, pieces of the inputs."""

from __future__ import annotations

import numpy as np

from climb.bench.problem import Launch, Size, Tensor, ceil_div
from kernels.classifier.classifier import tuning
from kernels.classifier.classifier.batches import sums
from kernels.classifier.classifier.launches import args, extents_fit
from kernels.classifier.classifier.problem import FLOAT
from kernels.classifier.classifier.tuning import width

__all__ = [
    "bf16_corrections",
    "clusters",
    "extents_fit",
    "mma",
    "mma_plan",
    "shares",
    "shares_sums",
    "slabs",
    "slabs_plan",
    "sums",
    "tensor_maps_fit",
    "tickets",
    "tickets_sums",
    "wgmma",
    "wgmma_plan",
]

#: ``mma``: the kernel's kTileRows and kTileSamples, kStep, kWarps and its shared memory in bytes.
MMA_ROWS, SAMPLES, MMA_STEP, MMA_WARPS = 64, 32, 16, 4
MMA_BYTES = FLOAT * MMA_WARPS * 3 * (MMA_ROWS + SAMPLES) * (MMA_STEP + 4)
#: ``wgmma``: the kernel's kRows, kDepth, kStages and kThreads.
ROWS, DEPTH, STAGES, THREADS = 256, 32, 4, 640
#: Bytes of a stage: weights, the input, its low parts.
STAGE_BYTES = FLOAT * DEPTH * (ROWS + 2 * SAMPLES)
#: ``slabs``: the kernel's kTileRows, kSlabs and kStages.
SLAB_ROWS, SLABS, SLAB_STAGES = 128, 2, 4
SLAB_BYTES = FLOAT * SLAB_STAGES * SLABS * DEPTH * (SLAB_ROWS + 2 * SAMPLES)
#: A thread of the second pass has one output.
SECOND_THREADS = 128


def mma_plan(size: Size) -> tuple[int, int]:
    """Pieces of the inputs, and steps of each warp: as many pieces as make the tiles two blocks per SM."""
    steps = max(1, ceil_div(size["inputs"], MMA_STEP))
    tiles = ceil_div(size["outputs"], MMA_ROWS) * ceil_div(size["batch"], SAMPLES)
    pieces = max(1, min(2 * tuning.SMS // max(1, tiles), steps // MMA_WARPS))
    each = ceil_div(steps, pieces * MMA_WARPS)
    return ceil_div(steps, each * MMA_WARPS), each


def wgmma_plan(size: Size) -> tuple[int, int]:
    """Pieces of the inputs, and stages of each block: as many pieces as make the tiles a block per SM."""
    stages = max(1, ceil_div(size["inputs"], DEPTH))
    tiles = ceil_div(size["outputs"], ROWS) * ceil_div(size["batch"], SAMPLES)
    each = ceil_div(stages, max(1, min(tuning.SMS // max(1, tiles), stages)))
    return ceil_div(stages, each), each


def _with_second_pass(first: Launch, size: Size, pieces: int) -> tuple[Launch, ...]:
    if pieces == 1:
        return (first,)
    n = size["outputs"] * size["batch"]
    last_args = ("sums", "output", np.uint64(n), np.int32(pieces))
    return (
        first,
        Launch(f"add_pieces<{SECOND_THREADS}>", (ceil_div(n, SECOND_THREADS),), (SECOND_THREADS,), last_args),
    )


def mma(size: Size, parts: int = 2) -> tuple[Launch, ...]:
    """Each warp of a block has a slice of the inputs for the whole tile; ``parts`` of each factor."""
    pieces, steps = mma_plan(size)
    weights, given, output, *extents = args(size)
    grid = (ceil_div(size["outputs"], MMA_ROWS), pieces, ceil_div(size["batch"], SAMPLES))
    to = output if pieces == 1 else "sums"
    taken = (weights, given, to, *extents, np.int32(size["batch"]), np.int32(steps))
    first = Launch(f"classifier_mma<{parts}, {width(size)}>", grid, (32 * MMA_WARPS,), taken, MMA_BYTES)
    return _with_second_pass(first, size, pieces)


def tensor_maps_fit(size: Size) -> str | None:
    """Return why the rungs with tensor maps refuse a size, or None."""
    if size["inputs"] % 4 or not size["inputs"]:
        return "inputs must be a multiple of 4 and not zero, because rows of a tensor map are multiples of 16 bytes"
    if not size["outputs"] or not size["batch"]:
        return "outputs and batch may not be zero, because a tensor map has at least one row"
    return extents_fit(size)


def maps(size: Size, rows: int = ROWS, l2_promotion: int = 256) -> tuple[Tensor, Tensor]:
    """Boxes of ``rows`` outputs and of kBatch samples, kDepth floats wide."""
    shapes = {"weights": ("outputs", rows), "input": ("batch", SAMPLES)}
    weights, given = (
        Tensor(name, (size[lines], size["inputs"]), (box, DEPTH), "float32", swizzle=128, l2_promotion=l2_promotion)
        for name, (lines, box) in shapes.items()
    )
    return weights, given


def wgmma(size: Size) -> tuple[Launch, ...]:
    """A block for a tile and a piece of the inputs, with a ring of stages."""
    pieces, stages = wgmma_plan(size)
    _, _, output, *extents = args(size)
    grid = (ceil_div(size["outputs"], ROWS), pieces, ceil_div(size["batch"], SAMPLES))
    to = output if pieces == 1 else "sums"
    taken = (*maps(size), to, *extents, np.int32(size["batch"]), np.int32(stages))
    first = Launch("classifier_wgmma", grid, (THREADS,), taken, STAGES * STAGE_BYTES)
    return _with_second_pass(first, size, pieces)


def slabs_plan(size: Size) -> tuple[int, int]:
    """Pieces of the inputs, and stages of each block: as many pieces as make the tiles a block per SM."""
    stages = max(1, ceil_div(size["inputs"], SLABS * DEPTH))
    tiles = ceil_div(size["outputs"], SLAB_ROWS) * ceil_div(size["batch"], SAMPLES)
    each = ceil_div(stages, max(1, min(tuning.SMS // max(1, tiles), stages)))
    return ceil_div(stages, each), each


def slabs(size: Size, kernel: str = "classifier_slabs") -> tuple[Launch, ...]:
    """A block for a tile and a piece of the inputs, with stages of two slabs; the second pass is launched early."""
    pieces, stages = slabs_plan(size)
    _, _, output, *extents = args(size)
    grid = (ceil_div(size["outputs"], SLAB_ROWS), pieces, ceil_div(size["batch"], SAMPLES))
    to = output if pieces == 1 else "sums"
    taken = (*maps(size, SLAB_ROWS, l2_promotion=128), to, *extents, np.int32(size["batch"]), np.int32(stages))
    first = Launch(kernel, grid, (THREADS,), taken, SLAB_BYTES)
    if pieces == 1:
        return (first,)
    n = size["outputs"] * size["batch"]
    last_args = ("sums", "output", np.uint64(n), np.int32(pieces))
    blocks = ceil_div(n, SECOND_THREADS)
    return (first, Launch(f"add_pieces_late<{SECOND_THREADS}>", (blocks,), (SECOND_THREADS,), last_args, pdl=True))


def bf16_corrections(size: Size) -> tuple[Launch, ...]:
    """The launches of ``slabs``: a stage has as many bytes, two parts of the input in bfloat16 in place of one."""
    return slabs(size, "classifier_corrected")


#: ``clusters``: the kernel's kTileRows and kBoxRows, kThreads and its shared memory in bytes.
CLUSTER_ROWS, BOX_ROWS, CLUSTER_THREADS = 320, 160, 768
CLUSTER_BYTES = FLOAT * 4 * DEPTH * (CLUSTER_ROWS + 3 * SAMPLES)
#: Pieces of the inputs, for each as many blocks as surely run at the same time, because clusters lie within a GPC.
CLUSTER_PIECES = {8: 112, 4: 112, 2: tuning.SMS}


def clusters(size: Size) -> tuple[Launch, ...]:
    """A cluster for a tile, in as many pieces as there are SMs for, with stages of one slab."""
    tiles = ceil_div(size["outputs"], CLUSTER_ROWS) * ceil_div(size["batch"], SAMPLES)
    stages = ceil_div(size["inputs"], DEPTH)
    fits = (p for p, blocks in CLUSTER_PIECES.items() if p * tiles <= blocks and p <= stages)
    pieces = next(fits, 1)
    _, _, output, *extents = args(size)
    taken = (*maps(size, BOX_ROWS), output, *extents, np.int32(size["batch"]))
    return (Launch(f"classifier_clusters<{pieces}>", (pieces * tiles,), (CLUSTER_THREADS,), taken, CLUSTER_BYTES),)


#: ``tickets``: the kernel's kThreads, and the stages that fit, by kGroups.
TICKETS_THREADS, TICKETS_STAGES = 640, {1: 3, 2: 4, 4: 4}
#: The pieces that the last block of a tile reads at once.
FEW_PIECES = 8


def tickets_plan(size: Size) -> tuple[int, int, int, int, int]:
    """Groups of 64 outputs and samples of a tile, tiles of outputs and of samples, pieces, a block per SM.

    Tiles of 64 samples need 256 outputs, so that the input is a small part of what a block reads. Otherwise a tile has
    128 outputs, or 64 where that would make too many pieces.
    """
    samples = 32 if size["batch"] <= 32 else 64
    down = ceil_div(size["batch"], samples)
    for groups in (4,) if samples == 64 else (2, 1):
        rows = ceil_div(size["outputs"], 64 * groups)
        stages = max(1, ceil_div(size["inputs"], DEPTH * 4 // groups))
        each = ceil_div(stages, max(1, min(tuning.SMS // max(1, rows * down), stages)))
        pieces = ceil_div(stages, each)
        if pieces <= FEW_PIECES:
            break
    return groups, samples, rows, down, pieces


def tickets_sums(size: Size) -> dict[str, tuple[tuple[int, ...], str]]:
    """The sums of all pieces, whole tiles of them."""
    groups, samples, rows, down, pieces = tickets_plan(size)
    return {"sums": ((pieces * rows * down * 64 * groups * samples,), "float32")}


def _ticket_maps(size: Size, rows: int, samples: int) -> tuple[Tensor, ...]:
    boxes = (("weights", "outputs", rows), ("input", "batch", samples))
    return tuple(
        Tensor(name, (size[lines], size["inputs"]), (box, DEPTH), "float32", swizzle=128, l2_promotion=128)
        for name, lines, box in boxes
    )


def tickets(size: Size) -> tuple[Launch, ...]:
    """One launch: a block for a tile and a piece, which is what it makes of it."""
    groups, samples, rows, down, pieces = tickets_plan(size)
    own = (*_ticket_maps(size, 64 * groups, samples), "sums", *args(size)[2:], np.int32(size["batch"]))
    shared = TICKETS_STAGES[groups] * FLOAT * DEPTH * (4 // groups) * (64 * groups + 2 * samples)
    return (Launch(f"classifier_tickets<{groups}, {samples}>", (rows, pieces, down), (TICKETS_THREADS,), own, shared),)


#: ``shares``: the outputs of a tile, and the kernel's kStages, by kSamples.
SHARES_ROWS, SHARES_STAGES = 256, {32: 5, 64: 4}
#: The least stages of a piece, nearly a ring: more pieces than that read no faster, and all have to be added up.
LEAST_STAGES = 4


def shares_plan(size: Size) -> tuple[int, int, int, int]:
    """Samples of a tile, tiles of outputs and of samples, pieces: a block per SM, unless pieces became too small."""
    samples = 32 if size["batch"] <= 32 else 64
    rows, down = ceil_div(size["outputs"], SHARES_ROWS), ceil_div(size["batch"], samples)
    pieces = ceil_div(size["inputs"], DEPTH) // LEAST_STAGES
    return samples, rows, down, max(1, min(tuning.SMS // max(1, rows * down), pieces))


def shares_sums(size: Size) -> dict[str, tuple[tuple[int, ...], str]]:
    """The sums of all pieces, whole tiles of them."""
    samples, rows, down, pieces = shares_plan(size)
    return {"sums": ((pieces * rows * down * SHARES_ROWS * samples,), "float32")}


def shares(size: Size) -> tuple[Launch, ...]:
    """One launch; blocks of a tile have consecutive numbers, so that they run at the same time."""
    samples, rows, down, pieces = shares_plan(size)
    own = (*_ticket_maps(size, SHARES_ROWS, samples), "sums", *args(size)[2:], np.int32(size["batch"]))
    shared = SHARES_STAGES[samples] * FLOAT * DEPTH * (SHARES_ROWS + 2 * samples)
    return (Launch(f"classifier_shares<{samples}>", (pieces, rows, down), (TICKETS_THREADS,), own, shared),)
