"""2D convolution with a 3 x 3 filter over the size of the image, around the 2048 x 2048 pixels of the source's code.

Five rungs: four of the ladder conv2d, and ``im2col``, which unfolds the image and multiplies matrices. Zeros lie beyond
the border.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from climb import load_ladder
from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size, ceil_div

OF_IMAGES = load_ladder("conv2d")
#: Threads of a block of im2col, the kernel's kThreads.
THREADS = 256
#: Side of the source's image, and of the others.
SIDE, OTHERS = 2048, (512, 1024, 4096, 8192)
#: The unfolded image may be this many times as large as the image.
MOST_TAPS = 25


def _square(side: int) -> dict[str, object]:
    return {"rows": side, "cols": side, "k": 3, "k_cols": 3, "border": "zero"}


problem = replace(
    OF_IMAGES.problem,
    name="conv2d_sizes",
    title="2D convolution over the size of the image, float32",
    headline=(_square(SIDE),),
    sweep=tuple(_square(side) for side in OTHERS),
    check=(
        {**_square(0), "cols": 5},
        _square(1),
        {**_square(37), "cols": 44},
        {**_square(5), "cols": 129},
    ),
)


def _requires(size: Size) -> str | None:
    if size["k"] * size["k_cols"] > MOST_TAPS:
        return f"k x k_cols may be at most {MOST_TAPS}, because the unfolded image is that many times the image"
    if size["border"] != "zero":
        return "border must be zero, as in all rungs of this ladder"
    return OF_IMAGES["register_tile"].rung.requires(size)


def _taken(name: str) -> Rung:
    return replace(OF_IMAGES[name].rung, requires=_requires, swept=True)


def _im2col(size: Size) -> tuple[Launch, ...]:
    pixels, taps = size["rows"] * size["cols"], size["k"] * size["k_cols"]
    blocks, extents = max(1, ceil_div(pixels, THREADS)), (np.int32(size["rows"]), np.int32(size["cols"]))
    unfold = f"conv2d_unfold<{size['k']}, {size['k_cols']}, kZero>"
    return (
        Launch(unfold, (blocks, taps), (THREADS,), ("image", "unfolded", *extents)),
        Launch(
            f"conv2d_filter_row<{taps}>", (blocks,), (THREADS,), ("unfolded", "filter", "result", np.uint64(pixels))
        ),
    )


def _unfolded(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    taps = size["k"] * size["k_cols"]
    return {"unfolded": ((taps, max(1, size["rows"] * size["cols"])), "float32")}


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        *(_taken(name) for name in ("constant", "tiled", "shuffle", "register_tile")),
        Rung("im2col", "unfold the image, multiply matrices", _im2col, requires=_requires, workspace=_unfolded),
    ),
    peers=tuple(peer for peer in OF_IMAGES.peers if peer.name == "cuDNN"),
)
