"""Convolution layer on a batch of images, float32: the course report compares one image with a library's batch of 64.

``direct`` and ``winograd_2d`` run the kernels of the ladder ``convlayer`` unchanged. These sum a part of the input maps
in each slice of the grid. To them a batch is one image of batch x c_in input maps, whose parts are the images; a first
launch repeats the weights for each part. The repeated weights are batch times the weights, little beside the images.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes
from climb.bench.work import Work
from kernels.conv_layers.convlayer.cuts import DIRECT
from kernels.conv_layers.convlayer.layer import CLEAR_BLOCKS, CONV1, CONV2, ELEMENT, MAX_MAPS, PIECE
from kernels.conv_layers.convlayer.layer import reference as one_image
from kernels.conv_layers.convlayer.layer import requires as one_image_requires
from kernels.conv_layers.convlayer.planes import WIDE
from kernels.conv_layers.convlayer_batch.peers import PEERS

#: Threads of a block of the launch that repeats the weights.
REPEAT_THREADS = 256
#: Input maps of a stage of ``winograd_2d``; ``direct`` has half as many.
STAGE_MAPS = 8
#: The batch of the course report's table.
IMAGES = 64


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    n, c_in, c_out, k = (size[key] for key in ("n", "c_in", "c_out", "k"))
    return {
        "input": rng.standard_normal((size["batch"], c_in, n, n), dtype=np.float32),
        "weights": rng.standard_normal((c_out, c_in, k, k), dtype=np.float32),
    }


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    """The layer in float64, image by image, so that only one image is held in float64 at a time."""
    output = np.empty((size["batch"], size["c_out"], size["n"], size["n"]))
    for image, out in zip(inputs["input"], output, strict=True):
        out[...] = one_image({"input": image, "weights": inputs["weights"]}, size)["output"]
    return {"output": output}


def _count(size: Size) -> int:
    n, c_in, c_out, k = (size[key] for key in ("n", "c_in", "c_out", "k"))
    return size["batch"] * n * n * (c_in + c_out) + c_in * c_out * k * k


def _sized(layer: Size, batch: int) -> dict[str, int]:
    return {**layer, "batch": batch}


problem = Problem(
    name="convlayer_batch",
    title="Convolution layer on a batch, float32",
    size_keys=("n", "c_in", "c_out", "k", "batch"),
    arguments=(
        Argument("input", "float32", ("batch", "c_in", "n", "n")),
        Argument("weights", "float32", ("c_out", "c_in", "k", "k")),
        Argument("output", "float32", ("batch", "c_out", "n", "n"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # c_in k^2 terms round as often, by at most 2^-24 of a partial sum; the errors add up like a random walk.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, (size["c_in"] * size["k"] ** 2) ** 0.5),
    flops=lambda size: 2 * size["batch"] * size["n"] ** 2 * size["c_in"] * size["c_out"] * size["k"] ** 2,
    bytes=lambda size: ELEMENT * _count(size),
    headline=(_sized(CONV1, IMAGES), _sized(CONV2, IMAGES)),
    sweep=tuple(_sized(CONV1, batch) for batch in (1, 4, 16)),
    check=(
        {"n": 0, "c_in": 8, "c_out": 3, "k": 3, "batch": 2},
        {"n": 5, "c_in": 8, "c_out": 2, "k": 3, "batch": 0},
        {"n": 1, "c_in": 8, "c_out": 1, "k": 3, "batch": 2},
        {"n": 5, "c_in": 3, "c_out": 4, "k": 1, "batch": 2},
        {"n": 29, "c_in": 8, "c_out": 17, "k": 3, "batch": 3},
        {"n": 14, "c_in": 16, "c_out": 20, "k": 3, "batch": 2},
    ),
    accepts_empty=True,
)


def _requires(size: Size) -> str | None:
    if size["batch"] > MAX_MAPS:
        return f"batch may be at most {MAX_MAPS}, because a grid has at most {MAX_MAPS} blocks in z"
    return one_image_requires(size)


def _parts_require(size: Size) -> str | None:
    if size["k"] != 3:
        return "k must be 3, because these transforms and windows are made for three taps"
    if size["c_in"] % STAGE_MAPS or size["c_in"] == 0:
        return f"c_in must be a multiple of {STAGE_MAPS}, because an image is a part of whole stages"
    return _requires(size)


def _map_atomics(size: Size) -> tuple[Launch, ...]:
    threads = PIECE**2
    count = size["batch"] * size["c_out"] * size["n"] ** 2
    clear = Launch(
        f"convlayer_clear<float, {threads}>",
        (min(CLEAR_BLOCKS, max(1, ceil_div(count, threads))),),
        (threads,),
        ("output", np.uint64(count)),
    )
    grid = (max(1, ceil_div(size["n"], PIECE) ** 2), max(1, size["c_in"]), max(1, size["batch"]))
    extents = (np.int32(size[key]) for key in ("n", "c_in", "c_out"))
    kernel = f"convlayer_batch_map_atomics<{size['k']}>"
    return (clear, Launch(kernel, grid, (threads,), ("input", "weights", "output", *extents)))


def _repeat(size: Size) -> Launch:
    row = size["c_in"] * size["k"] ** 2
    count = row * size["c_out"]
    grid = (max(1, ceil_div(count, REPEAT_THREADS)), max(1, size["batch"]))
    args = ("weights", "repeated", np.int32(row), np.uint64(count))
    return Launch(f"convlayer_repeat<{REPEAT_THREADS}>", grid, (REPEAT_THREADS,), args)


def _of_parts(size: Size, kernel: str, grid: tuple[int, int, int], threads: int, shared: int) -> tuple[Launch, ...]:
    """A kernel on all images as one image of batch x c_in input maps, in ``batch`` parts of c_in maps each."""
    maps = np.int32(size["batch"] * size["c_in"])
    args = ("input", "repeated", "output", np.int32(size["n"]), maps, np.int32(size["c_out"]), np.int32(size["c_in"]))
    return (_repeat(size), Launch(kernel, grid, (threads,), args, shared))


def _direct(size: Size) -> tuple[Launch, ...]:
    beside, outs = DIRECT.tiles(size)
    grid = (beside, outs, max(1, size["batch"]))
    whole = {**size, "c_in": max(1, size["batch"]) * size["c_in"]}
    name = f"convlayer_direct<{DIRECT.arguments(whole, max(1, size['batch']))}>"
    return _of_parts(size, name, grid, DIRECT.threads, DIRECT.shared_bytes(size["k"]))


def _winograd_2d(size: Size) -> tuple[Launch, ...]:
    name = f"convlayer_winograd_2d<{WIDE.arguments(size)}>"
    return _of_parts(size, name, WIDE.grid(size, max(1, size["batch"])), WIDE.threads, WIDE.shared_bytes)


def _repeated(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    k = size["k"]
    return {"repeated": ((size["c_out"], max(1, size["batch"]), size["c_in"], k, k), "float32")}


_MAP_ATOMICS = Rung("map_atomics", "conv1 of the report, corrected, on every image", _map_atomics, requires=_requires)
_DIRECT = Rung(
    "direct",
    "windows in registers; an image is a part of the input maps",
    _direct,
    alignment={"output": 16},
    requires=_parts_require,
    workspace=_repeated,
)


def _sixteen_products(size: Size) -> Work:
    """The work of winograd_2d: 16 products for the definition's 36; transforms are not counted."""
    whole = problem.work(size)
    return replace(whole, fma=whole.fma * 16 // 36)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _MAP_ATOMICS,
        _DIRECT,
        replace(
            _DIRECT,
            name="winograd_2d",
            idea="two by two outputs from sixteen products",
            launches=_winograd_2d,
            alignment={"weights": 16, "output": 16},
            shortcut=True,
            work=_sixteen_products,
        ),
    ),
    peers=PEERS,
)
