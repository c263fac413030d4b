"""Classifier: a fully connected layer, output = weights x input, float32. Each weight is used once per input vector.

``weights`` has a row of ``inputs`` floats per output, as PyTorch's ``Linear`` has it. A batch of one is the course
report's case; with more the weights can be used again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import libraries
from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div

FLOAT = 4
WARP = 32
#: The rungs' kTile, and threads of their blocks: the atomic ones, a thread or a warp per row, the shared input.
TILE = 32
ATOMIC_THREADS, THREADS, SHARED_THREADS = 1024, 128, 256
#: Rows that a warp takes at once in ``several_rows``.
ROWS = 4
#: Threads of a block and packs that each has in flight, where a block has a row: the first that covers the row, or the
#: last, which then goes over it several times.
SHAPES = ((64, 1), (64, 2), (128, 2), (256, 2), (512, 2), (448, 7))
#: The same for ``whole``: where a block of so many threads covers a row exactly, it need not ask where the row ends.
WHOLE_SHAPES = ((64, 1), (64, 2), (128, 2), (256, 2), (256, 4), (256, 7))
SECOND_THREADS = 128
#: Rows that keep 132 SMs busy, with four blocks each.
ENOUGH_BLOCKS = 528
#: The batched rung's kTileRows and kTileSamples, kThreads and kStages, and the SMs that its pieces are to keep busy.
TILE_ROWS, TILE_SAMPLES, BATCHED_THREADS, STAGES = 32, 32, 256, 5
SMS = 132
#: The rung slices' kTileRows and kTileSamples, kStep, kWarps, and the bytes of shared memory that its stages take.
SLICE_ROWS, SLICE_SAMPLES, SLICE_STEP, SLICE_WARPS = 64, 32, 16, 4
SLICE_BYTES = FLOAT * SLICE_WARPS * 3 * (SLICE_ROWS + SLICE_SAMPLES) * (SLICE_STEP + 4)
#: The grid's extent in y and z ends here.
MAX_GRID_Y = 65535
#: Rows and inputs are ints in the kernels, and a tile may reach past the edge.
MAX_EXTENT = (1 << 31) - (1 << 14)
#: One atomic per product: more than this takes seconds.
MAX_ATOMICS = 1 << 28

CLASS1 = {"inputs": 25088, "outputs": 4096, "batch": 1}
CLASS2 = {"inputs": 4096, "outputs": 1024, "batch": 1}


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "weights": rng.standard_normal((size["outputs"], size["inputs"]), dtype=np.float32),
        "input": rng.standard_normal((size["batch"], size["inputs"]), dtype=np.float32),
    }


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"output": inputs["input"].astype(np.float64) @ inputs["weights"].astype(np.float64).T}


problem = Problem(
    name="classifier",
    title="Fully connected layer, float32",
    size_keys=("inputs", "outputs", "batch"),
    arguments=(
        Argument("weights", "float32", ("outputs", "inputs")),
        Argument("input", "float32", ("batch", "inputs")),
        Argument("output", "float32", ("batch", "outputs"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    # A dot product of k terms rounds k times, by at most 2^-24 of a partial sum; the errors add up like a random walk.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, size["inputs"] ** 0.5),
    flops=lambda size: 2 * size["inputs"] * size["outputs"] * size["batch"],
    bytes=lambda size: FLOAT * (size["inputs"] * size["outputs"] + size["batch"] * (size["inputs"] + size["outputs"])),
    headline=(CLASS1, CLASS2, {**CLASS1, "batch": 32}),
    # The other two layers of VGG's classifier, a layer with few outputs, one with few inputs, and class2's batch.
    sweep=(
        {"inputs": 4096, "outputs": 4096, "batch": 1},
        {"inputs": 4096, "outputs": 1000, "batch": 1},
        {"inputs": 1 << 20, "outputs": 64, "batch": 1},
        {"inputs": 256, "outputs": 1 << 18, "batch": 1},
        {**CLASS2, "batch": 32},
    ),
    check=(
        {"inputs": 0, "outputs": 3, "batch": 1},
        {"inputs": 5, "outputs": 0, "batch": 2},
        {"inputs": 5, "outputs": 2, "batch": 0},
        {"inputs": 1, "outputs": 1, "batch": 1},
        {"inputs": 7, "outputs": 33, "batch": 2},
        {"inputs": 1030, "outputs": 5, "batch": 1},
        {"inputs": 4100, "outputs": 3, "batch": 1},
        {"inputs": 26000, "outputs": 3, "batch": 2},
        {"inputs": 132, "outputs": 65, "batch": 3},
    ),
    accepts_empty=True,
)


def _args(size: Size) -> tuple[Any, ...]:
    return ("weights", "input", "output", np.int32(size["inputs"]), np.int32(size["outputs"]))


def _extents_fit(size: Size) -> str | None:
    if max(size["inputs"], size["outputs"]) > MAX_EXTENT:
        return f"inputs and outputs may be at most {MAX_EXTENT}, for positions in a row are 32-bit"
    if size["batch"] > MAX_GRID_Y:
        return f"batch may be at most {MAX_GRID_Y}, the most blocks in y and z"
    return None


def _atomics_fit(outputs_per_block: int) -> Callable[[Size], str | None]:
    """What the rungs take that add each product to its output by an atomic."""

    def requires(size: Size) -> str | None:
        products = size["inputs"] * size["outputs"] * size["batch"]
        if products > MAX_ATOMICS:
            return f"{products} products; at most {MAX_ATOMICS}, for more would take far too long"
        if ceil_div(size["outputs"], outputs_per_block) > MAX_GRID_Y:
            return (
                f"outputs may be at most {MAX_GRID_Y * outputs_per_block}, for the grid has at most {MAX_GRID_Y} in y"
            )
        return _extents_fit(size)

    return requires


def _zeroed(name: str, inputs_per_block: int, outputs_per_block: int) -> Callable[[Size], tuple[Launch, ...]]:
    """Zero the output, then a grid over inputs, outputs and batch that adds to it."""

    def launches(size: Size) -> tuple[Launch, ...]:
        n = size["outputs"] * size["batch"]
        grid = (
            max(1, ceil_div(size["inputs"], inputs_per_block)),
            ceil_div(size["outputs"], outputs_per_block),
            size["batch"],
        )
        return (
            Launch(
                f"zero_{name}",
                (ceil_div(n, ATOMIC_THREADS),),
                (ATOMIC_THREADS,),
                ("output", np.uint64(n)),
            ),
            Launch(f"classifier_{name}", grid, (ATOMIC_THREADS,), _args(size)),
        )

    return launches


def _width(size: Size) -> int:
    """Floats per load: 4 where every row starts at a multiple of 16 bytes."""
    return 4 if size["inputs"] % 4 == 0 else 1


def _rows(kernel: str, threads: int, rows_per_block: int) -> Callable[[Size], tuple[Launch, ...]]:
    """A grid over the rows and the batch. A kernel that ends in ``<`` is told its width."""

    def launches(size: Size) -> tuple[Launch, ...]:
        name = f"{kernel}{_width(size)}>" if kernel.endswith("<") else kernel
        return (Launch(name, (ceil_div(size["outputs"], rows_per_block), size["batch"]), (threads,), _args(size)),)

    return launches


def _shape(size: Size) -> tuple[int, int]:
    """Threads of a block and packs per thread for the rows of this size."""
    packs = size["inputs"] // _width(size)
    return next((shape for shape in SHAPES if shape[0] * shape[1] >= packs), SHAPES[-1])


def _row_blocks(kernel: str) -> Callable[[Size], tuple[Launch, ...]]:
    """A block per output and sample."""

    def launches(size: Size) -> tuple[Launch, ...]:
        threads, unroll = _shape(size)
        name = f"{kernel}<{_width(size)}, {threads}, {unroll}>"
        return (Launch(name, (size["outputs"], size["batch"]), (threads,), _args(size)),)

    return launches


def _whole(size: Size) -> tuple[Launch, ...]:
    packs = size["inputs"] // _width(size)
    threads, unroll = next((shape for shape in WHOLE_SHAPES if shape[0] * shape[1] >= packs), WHOLE_SHAPES[-1])
    whole = str(threads * unroll == packs).lower()
    name = f"classifier_whole<{_width(size)}, {threads}, {unroll}, {whole}>"
    return (Launch(name, (size["outputs"], size["batch"]), (threads,), _args(size)),)


def _pieces(size: Size) -> int:
    """Blocks per row: one where the rows keep the SMs busy, else one for each round of a block."""
    threads, unroll = _shape(size)
    if size["outputs"] * size["batch"] >= ENOUGH_BLOCKS:
        return 1
    return max(1, ceil_div(size["inputs"] // _width(size), threads * unroll))


def _split(size: Size) -> tuple[Launch, ...]:
    threads, unroll = _shape(size)
    pieces, n = _pieces(size), size["outputs"] * size["batch"]
    each = size["inputs"] // _width(size) if pieces == 1 else threads * unroll
    weights, given, output, *extents = _args(size)
    name = f"classifier_pieces<{_width(size)}, {threads}, {unroll}>"
    args = (weights, given, output if pieces == 1 else "sums", *extents, np.int32(each))
    first = Launch(name, (size["outputs"], pieces, size["batch"]), (threads,), args)
    if pieces == 1:
        return (first,)
    last_args = ("sums", "output", np.uint64(n), np.int32(pieces))
    return (first, Launch("classifier_split", (ceil_div(n, SECOND_THREADS // WARP),), (SECOND_THREADS,), last_args))


def _piece_sums(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    pieces = _pieces(size)
    return {"sums": ((size["batch"] * size["outputs"] * pieces,), "float32")} if pieces > 1 else {}


def _pieces_fit(size: Size) -> str | None:
    if _pieces(size) > MAX_GRID_Y:
        return f"its rows have more than {MAX_GRID_Y} pieces, the most blocks in y"
    return _extents_fit(size)


def _batched_plan(size: Size) -> tuple[int, int]:
    """Pieces of the inputs, and steps of a pack per lane in each: as many pieces as make the tiles a block per SM."""
    steps = max(1, ceil_div(size["inputs"] // _width(size), WARP))
    tiles = ceil_div(size["outputs"], TILE_ROWS) * ceil_div(size["batch"], TILE_SAMPLES)
    each = ceil_div(steps, max(1, min(SMS // max(1, tiles), steps // STAGES)))
    return ceil_div(steps, each), each


def _batched(size: Size) -> tuple[Launch, ...]:
    pieces, steps = _batched_plan(size)
    n = size["outputs"] * size["batch"]
    weights, given, _, *extents = _args(size)
    sums = "output" if pieces == 1 else "sums"
    grid = (ceil_div(size["outputs"], TILE_ROWS), pieces, ceil_div(size["batch"], TILE_SAMPLES))
    args = (weights, given, sums, *extents, np.int32(size["batch"]), np.int32(steps))
    shared_mem = STAGES * (TILE_ROWS + TILE_SAMPLES) * WARP * FLOAT * _width(size)
    first = Launch(f"classifier_batched<{_width(size)}>", grid, (BATCHED_THREADS,), args, shared_mem)
    if pieces == 1:
        return (first,)
    last = Launch(
        "add_pieces",
        (ceil_div(n, BATCHED_THREADS),),
        (BATCHED_THREADS,),
        ("sums", "output", np.uint64(n), np.int32(pieces)),
    )
    return (first, last)


def _batched_sums(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    pieces, _ = _batched_plan(size)
    return {"sums": ((pieces, size["batch"], size["outputs"]), "float32")} if pieces > 1 else {}


def _slices_plan(size: Size) -> tuple[int, int]:
    """Pieces of the inputs, and steps of each warp: as many pieces as make the tiles two blocks per SM."""
    steps = max(1, ceil_div(size["inputs"], SLICE_STEP))
    tiles = ceil_div(size["outputs"], SLICE_ROWS) * ceil_div(size["batch"], SLICE_SAMPLES)
    pieces = max(1, min(2 * SMS // max(1, tiles), steps // SLICE_WARPS))
    each = ceil_div(steps, pieces * SLICE_WARPS)
    return ceil_div(steps, each * SLICE_WARPS), each


def _slices(size: Size) -> tuple[Launch, ...]:
    pieces, steps = _slices_plan(size)
    n = size["outputs"] * size["batch"]
    weights, given, _, *extents = _args(size)
    sums = "output" if pieces == 1 else "sums"
    grid = (ceil_div(size["outputs"], SLICE_ROWS), pieces, ceil_div(size["batch"], SLICE_SAMPLES))
    args = (weights, given, sums, *extents, np.int32(size["batch"]), np.int32(steps))
    threads = WARP * SLICE_WARPS
    first = Launch(f"classifier_slices<{_width(size)}>", grid, (threads,), args, SLICE_BYTES)
    if pieces == 1:
        return (first,)
    last_args = ("sums", "output", np.uint64(n), np.int32(pieces))
    return (first, Launch("add_slices", (ceil_div(n, threads),), (threads,), last_args))


def _slice_sums(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    pieces, _ = _slices_plan(size)
    return {"sums": ((pieces, size["batch"], size["outputs"]), "float32")} if pieces > 1 else {}


def _matrix_product(tf32: bool):
    """cuBLAS on the whole batch: its matrix-vector product where the batch is one, its matrix product otherwise."""

    def prepare(arrays: dict[str, Any], size: Size):
        import torch

        weights, given, out = (torch.from_dlpack(arrays[name]) for name in ("weights", "input", "output"))
        if size["batch"] == 1 and not tf32:
            return lambda: torch.mv(weights, given[0], out=out[0])
        turned = weights.t()

        def enqueue() -> None:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.mm(given, turned, out=out)

        return enqueue

    return prepare


QUAD_ALIGNED = {"weights": 16, "input": 16}

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "tiles",
            "a thread per weight, an atomic per product",
            _zeroed("tiles", TILE, TILE),
            requires=_atomics_fit(TILE),
            swept=False,
        ),
        Rung(
            "tile_sums",
            "an atomic per warp",
            _zeroed("tile_sums", TILE, TILE),
            requires=_atomics_fit(TILE),
            swept=False,
        ),
        Rung(
            "lone_loader",
            "a block per input, one thread fetches",
            _zeroed("lone_loader", 1, ATOMIC_THREADS),
            requires=_atomics_fit(ATOMIC_THREADS),
            swept=False,
        ),
        Rung(
            "columns",
            "a block per input, every thread fetches",
            _zeroed("columns", 1, ATOMIC_THREADS),
            requires=_atomics_fit(ATOMIC_THREADS),
            swept=False,
        ),
        Rung(
            "row_thread",
            "a thread per output",
            _rows("classifier_row_thread", THREADS, THREADS),
            requires=_extents_fit,
            swept=False,
        ),
        Rung(
            "row_warp",
            "a warp per output",
            _rows("classifier_row_warp", THREADS, THREADS // WARP),
            requires=_extents_fit,
        ),
        Rung(
            "float4",
            "16 bytes per load",
            _rows("classifier_float4<", THREADS, THREADS // WARP),
            alignment=QUAD_ALIGNED,
            requires=_extents_fit,
        ),
        Rung(
            "shared_input",
            "the input in shared memory",
            _rows("classifier_shared_input<", SHARED_THREADS, SHARED_THREADS // WARP),
            alignment=QUAD_ALIGNED,
            requires=_extents_fit,
        ),
        Rung(
            "several_rows",
            "four rows per warp for one load of the input",
            _rows("classifier_several_rows<", THREADS, THREADS // WARP * ROWS),
            alignment=QUAD_ALIGNED,
            requires=_extents_fit,
        ),
        Rung(
            "row_block",
            "a block per output",
            _row_blocks("classifier_row_block"),
            alignment=QUAD_ALIGNED,
            requires=_extents_fit,
        ),
        Rung(
            "in_flight",
            "registers for a whole row in flight",
            _row_blocks("classifier_in_flight"),
            alignment=QUAD_ALIGNED,
            requires=_extents_fit,
        ),
        Rung(
            "streaming",
            "weights leave the L2 cache first",
            _row_blocks("classifier_streaming"),
            alignment=QUAD_ALIGNED,
            requires=_extents_fit,
        ),
        Rung(
            "split",
            "a block per piece of a row, then a second pass",
            _split,
            alignment=QUAD_ALIGNED,
            requires=_pieces_fit,
            workspace=_piece_sums,
        ),
        Rung(
            "whole",
            "no bounds for rows that a block covers",
            _whole,
            alignment=QUAD_ALIGNED,
            requires=_extents_fit,
        ),
        Rung(
            "batched",
            "weights meet 32 samples in shared memory",
            _batched,
            alignment=QUAD_ALIGNED,
            requires=_extents_fit,
            workspace=_batched_sums,
        ),
        Rung(
            "slices",
            "a warp per slice of the inputs, 64 sums a lane",
            _slices,
            alignment=QUAD_ALIGNED,
            requires=_extents_fit,
            workspace=_slice_sums,
        ),
    ),
    peers=(
        Peer("cuBLAS fp32", _matrix_product(tf32=False), libraries.cublas("torch.mv; torch.mm for a batch", "fp32")),
        # TF32 rounds each factor to 11 bits: a relative error of 2^-11 for each product, and they average out.
        Peer(
            "cuBLAS TF32",
            _matrix_product(tf32=True),
            libraries.cublas("torch.mm", "TF32"),
            tolerance=lambda size: 2.0**-10,
        ),
    ),
)
