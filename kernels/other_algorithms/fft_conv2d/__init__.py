"""2D convolution with a large filter by transforms of small tiles, beside the best direct rung of ``conv2d``.

The limit counts the definition's K x K multiply-adds per output. A rung's own ``work`` counts what its algorithm does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from climb import load_ladder
from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size, ceil_div
from climb.bench.work import Work

OF_IMAGES = load_ladder("conv2d")
#: Side of a tile and warps of a block, the kernels' kEdge and kWarps.
EDGE, WARPS = 32, 4
#: Threads of a block of the kernel that makes the filter's spectrum.
SPECTRUM_THREADS = 256
#: Multiply-adds and additions of a transform of 32 complex numbers: 34 butterflies of 6, 46 of 4 (``fft32.cuh``).
FFT32 = 34 * 6 + 46 * 4
COMPLEX = 8


def _square(side: int, k: int) -> dict[str, object]:
    return {"rows": side, "cols": side, "k": k, "k_cols": k, "border": "zero"}


problem = replace(
    OF_IMAGES.problem,
    name="fft_conv2d",
    title="2D convolution by tiles of transforms, float32",
    headline=(_square(8192, 11),),
    sweep=tuple(_square(8192, k) for k in (5, 7, 9)),
    check=(
        {**_square(0, 5), "cols": 5},
        _square(1, 5),
        {**_square(37, 5), "cols": 44},
        {**_square(60, 5), "cols": 45},
    ),
)


def _tiles(size: Size) -> tuple[int, int]:
    """Columns of tiles, and rows of pairs of tiles."""
    kept = EDGE - size["k"] + 1
    return ceil_div(size["cols"], kept), ceil_div(size["rows"], 2 * kept)


def _launches(name: str) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        k, (across, down) = size["k"], _tiles(size)
        extents = (np.int32(size["rows"]), np.int32(size["cols"]))
        bins = EDGE * EDGE // SPECTRUM_THREADS
        return (
            Launch(f"fft_conv2d_spectrum<{k}>", (bins,), (SPECTRUM_THREADS,), ("filter", "spectrum")),
            Launch(
                f"fft_conv2d_{name}<{k}>",
                (max(1, ceil_div(across, WARPS)), max(1, down)),
                (WARPS * EDGE,),
                ("image", "filter", "spectrum", "result", *extents),
            ),
        )

    return launches


def _requires(size: Size) -> str | None:
    if size["border"] != "zero":
        return "border must be zero, as in all rungs of this ladder"
    if size["k"] != size["k_cols"]:
        return "the filter must be square, as in all rungs of this ladder"
    return OF_IMAGES["prefetched"].rung.requires(size)


def tile_work(size: Size) -> Work:
    """The work of the tiles of a warp: four transforms of each row or column of a pair, and the product of spectra.

    Two exchanges write and read each point of a pair; the spectrum is counted as read from global memory once.
    """
    across, down = _tiles(size)
    pairs, bins, kept = across * down, EDGE * EDGE, EDGE - size["k"] + 1
    single = pairs * (4 * EDGE * FFT32 + 4 * bins)
    return replace(
        problem.work(size), fma=0, fp32=single, shared=pairs * COMPLEX * (2 * bins + EDGE * kept + kept * EDGE)
    )


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        replace(
            OF_IMAGES["prefetched"].rung,
            idea="the best direct rung of conv2d",
            source="../../conv2d/conv2d/10_prefetched.cu",
            requires=_requires,
            swept=True,
        ),
        Rung(
            "warp_tiles",
            "a warp transforms two tiles as one",
            _launches("warp_tiles"),
            requires=_requires,
            workspace=lambda size: {"spectrum": ((EDGE * EDGE, 2), "float32")},
            shortcut=True,
            work=tile_work,
        ),
        Rung(
            "one_transform",
            "one transform's code for all four passes",
            _launches("one_transform"),
            requires=_requires,
            workspace=lambda size: {"spectrum": ((EDGE * EDGE, 2), "float32")},
            shortcut=True,
            work=tile_work,
        ),
    ),
    peers=tuple(
        replace(peer, swept=False) for peer in OF_IMAGES.peers if peer.tolerance is None or peer.name == "cuFFT"
    ),
)
