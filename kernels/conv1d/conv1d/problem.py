"""One-dimensional convolution, a layer of a network at batch 1: many channels and short rows, so the bytes are weights.

``output[o, p] = bias[o] + sum over c, t of weight[o, c, t] * input[c, p + t - k // 2]``, with zeros outside the rows.
"""

from __future__ import annotations

import numpy as np

from climb.bench.problem import Argument, Problem, Size
from climb.bench.references import sum_of_magnitudes

FLOAT = 4
WARP = 32
MAX_THREADS = 1024
#: Positions of a block, where a row has more: the kernels' kMaxTile.
MAX_TILE = 16
MAX_TAPS = 63
MAX_GRID_Y = 65535
#: Shared memory that every GPU gives a block unasked, less the 4 KB of the first rungs' tree.
STAGED_BYTES = (48 << 10) - FLOAT * MAX_THREADS
#: Channels and positions are ints in the kernels.
MAX_EXTENT = 1 << 30


def layer(i: int, o: int, l: int, k: int) -> dict[str, int]:  # noqa: E741
    """A size: ``i`` channels in, ``o`` channels out, rows of ``l``, ``k`` taps."""
    return {"i": i, "o": o, "l": l, "k": k}


#: The convolutions with stride 1 of Diffusion Policy's ConditionalUnet1D (github.com/real-stanford/diffusion_policy,
#: conditional_unet1d.py: down_dims 256, 512, 1024, kernel size 5), for 16 steps of an action of two numbers: how often
#: the network has each shape. Its two strided and two transposed convolutions are other problems.
UNET_COUNTS = (
    (layer(2, 256, 16, 5), 1),
    (layer(2, 256, 16, 1), 1),
    (layer(256, 256, 16, 5), 4),
    (layer(256, 512, 8, 5), 1),
    (layer(256, 512, 8, 1), 1),
    (layer(512, 512, 8, 5), 3),
    (layer(512, 1024, 4, 5), 1),
    (layer(512, 1024, 4, 1), 1),
    (layer(1024, 1024, 4, 5), 7),
    (layer(2048, 512, 4, 5), 1),
    (layer(2048, 512, 4, 1), 1),
    (layer(512, 512, 4, 5), 3),
    (layer(1024, 256, 8, 5), 1),
    (layer(1024, 256, 8, 1), 1),
    (layer(256, 256, 8, 5), 3),
    (layer(256, 2, 16, 1), 1),
)
UNET = tuple(size for size, _ in UNET_COUNTS)
#: The layer that the worklog tunes, and one with twice the channels in, as a decoder's concatenation has them.
HEADLINE = (layer(1024, 1024, 4, 5),)
DOUBLE = layer(2048, 1024, 4, 5)


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    i, o, l, k = (size[key] for key in "iolk")  # noqa: E741
    return {
        "input": rng.standard_normal((i, l), dtype=np.float32),
        "weight": rng.standard_normal((o, i, k), dtype=np.float32),
        "bias": rng.standard_normal(o, dtype=np.float32),
    }


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    reach = size["k"] // 2
    rows = np.pad(inputs["input"].astype(np.float64), ((0, 0), (reach, reach)))
    total = np.repeat(inputs["bias"].astype(np.float64)[:, None], size["l"], axis=1)
    for t in range(size["k"]):
        total += inputs["weight"][:, :, t].astype(np.float64) @ rows[:, t : t + size["l"]]
    return {"output": total}


problem = Problem(
    name="conv1d",
    title="1D convolution of a U-Net layer, float32",
    size_keys=("i", "o", "l", "k"),
    arguments=(
        Argument("input", "float32", ("i", "l")),
        Argument("weight", "float32", ("o", "i", "k")),
        Argument("bias", "float32", ("o",)),
        Argument("output", "float32", ("o", "l"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # A sum of i * k products rounds as often, by at most 2^-24 of a partial sum; the errors add up like a random walk.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, (size["i"] * size["k"]) ** 0.5),
    flops=lambda size: 2 * size["i"] * size["o"] * size["l"] * size["k"],
    bytes=lambda size: FLOAT * (size["o"] * size["i"] * size["k"] + (size["i"] + size["o"]) * size["l"] + size["o"]),
    headline=HEADLINE,
    sweep=(DOUBLE, *(size for size in UNET if size not in HEADLINE)),
    check=(
        layer(0, 3, 4, 5),
        layer(3, 0, 4, 5),
        layer(3, 2, 0, 5),
        layer(1, 1, 1, 1),
        layer(2, 5, 16, 5),
        layer(70, 3, 19, 5),
        layer(1100, 2, 4, 5),
        layer(131, 5, 4, 5),
        layer(136, 6, 4, 5),
    ),
    accepts_empty=True,
)
