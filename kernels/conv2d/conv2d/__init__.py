"""2D convolution of one image with a small filter: each output is the weighted sum of the pixels under the filter.

As in cuDNN and PyTorch, the filter is not flipped (a cross-correlation) and is centred on the output's pixel.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cudnn, cufft, cufft_callbacks, npp
from climb.bench.problem import Argument, ByValue, Launch, Peer, Problem, Rung, Size, Textured, ceil_div
from climb.bench.references import correlate, sum_of_magnitudes

FLOAT = 4
#: Side of the square of outputs of one block, in the rungs with a tile in shared memory.
TILE = 32
#: Rows of threads in a block, in the rungs without a tile.
ROWS = 8
#: Neighbouring outputs of one thread in a row, in the rungs that load float4.
OUT = 4
#: Rows of threads in a block of register_tile, and rows of outputs of each; the kernel's kRows and kHigh.
HIGH_ROWS, HIGH = 2, 8
#: The rung streamed: threads of a block, rows of a strip of outputs.
STREAM_THREADS, STRIP = 128, 128
#: The rung prefetched: threads of a block, columns of each thread.
PREFETCH_THREADS, PREFETCH_OUT = 64, 8
#: SMs of an H200, and blocks per SM by rows of the filter: 8, or fewer if the registers hold fewer. Strips of any
#: height give the right result; with these, all blocks run at once and none has to wait for the last few.
SMS, RESIDENT = 132, {9: 6, 11: 4}
MAX_FILTER = 11
MAX_GRID_Y = 65535
#: A texture's largest extents (CUDA C++ Programming Guide, table of technical specifications).
MAX_TEXTURE = {"cols": 131072, "rows": 65536}
#: Rows and columns are ints in the kernels, and a tile with its halo may reach past the edge.
MAX_EXTENT = (1 << 31) - 4096
#: What is beyond the edge of the image: zeros, the nearest pixel, or the image mirrored about that pixel's centre.
BORDERS = {"zero": "kZero", "clamp": "kClamp", "reflect": "kReflect"}


def beyond(position: np.ndarray, n: int, border: str) -> np.ndarray:
    """The elements read for positions of an axis of n elements, -1 for a zero. Clamp is the ``edge`` of ``numpy.pad``;
    reflect is its ``reflect``, repeated if the filter is larger than the image."""
    if border == "zero":
        return np.where((position < 0) | (position >= n), -1, position)
    if border == "clamp":
        return np.clip(position, 0, n - 1)
    period = max(2 * (n - 1), 1)
    folded = np.abs(position) % period
    return np.minimum(folded, period - folded)


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    image, weights, border = inputs["image"], inputs["filter"], size["border"]
    if border == "zero" or image.size == 0:
        return {"result": correlate(image, weights)}
    down, across = size["k"] // 2, size["k_cols"] // 2
    rows = beyond(np.arange(-down, size["rows"] + down), size["rows"], border)
    cols = beyond(np.arange(-across, size["cols"] + across), size["cols"], border)
    wide = correlate(np.ascontiguousarray(image[np.ix_(rows, cols)]), weights)
    return {"result": wide[down : down + size["rows"], across : across + size["cols"]]}


def _size(rows: int, cols: int, k: int, k_cols: int | None = None, border: str = "zero") -> dict[str, Any]:
    return {"rows": rows, "cols": cols, "k": k, "k_cols": k_cols or k, "border": border}


problem = Problem(
    name="conv2d",
    title="2D convolution, float32",
    size_keys=("rows", "cols", "k", "k_cols", "border"),
    arguments=(
        Argument("image", "float32", ("rows", "cols")),
        Argument("filter", "float32", ("k", "k_cols")),
        Argument("result", "float32", ("rows", "cols"), role="output"),
    ),
    make_inputs=lambda size, rng: {
        "image": rng.random((size["rows"], size["cols"]), dtype=np.float32),
        "filter": rng.random((size["k"], size["k_cols"]), dtype=np.float32),
    },
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # All terms are positive, so each of k x k_cols steps rounds a partial sum that does not exceed the result.
    tolerance=lambda size: 2.0**-24 * (size["k"] * size["k_cols"] + 1),
    flops=lambda size: 2 * size["k"] * size["k_cols"] * size["rows"] * size["cols"],
    bytes=lambda size: FLOAT * (2 * size["rows"] * size["cols"] + size["k"] * size["k_cols"]),
    headline=tuple(_size(8192, 8192, k) for k in (3, 5, 11)),
    sweep=(
        _size(8192, 8192, 7),
        _size(8192, 8192, 9),
        _size(8192, 8192, 3, border="clamp"),
        _size(8192, 8192, 3, border="reflect"),
        _size(8192, 8192, 3, 9),
        _size(8191, 8191, 3),
        _size(1024, 1024, 3),
    ),
    check=(
        _size(0, 5, 3),
        _size(1, 1, 3, border="reflect"),
        _size(3, 70, 5, border="reflect"),
        _size(67, 2, 5, border="clamp"),
        _size(64, 128, 3),
        _size(37, 44, 3, 9, border="clamp"),
        _size(45, 136, 5),
    ),
    parameters=("border",),
    kinds={"border": tuple(BORDERS)},
    accepts_empty=True,
)


def _border(size: Size) -> str:
    """The kernels' name for the border. Mirroring once is enough unless half the filter exceeds the image."""
    small = size["rows"] <= size["k"] // 2 or size["cols"] <= size["k_cols"] // 2
    return "kReflectOften" if size["border"] == "reflect" and small else BORDERS[size["border"]]


def _kernel(name: str, size: Size, *more: int) -> str:
    values = (size["k"], size["k_cols"], _border(size), *more)
    return f"conv2d_{name}<{', '.join(str(value) for value in values)}>"


def _args(size: Size, image: str | Textured = "image") -> tuple[Any, ...]:
    return (image, ByValue("filter"), "result", np.int32(size["rows"]), np.int32(size["cols"]))


def _grid(size: Size, across: int, down: int) -> tuple[int, int]:
    return (max(1, ceil_div(size["cols"], across)), max(1, ceil_div(size["rows"], down)))


def _naive(size: Size) -> tuple[Launch, ...]:
    args = ("image", "filter", *_args(size)[2:])
    return (Launch(_kernel("naive", size), _grid(size, TILE, ROWS), (TILE, ROWS), args),)


def _texture(size: Size) -> tuple[Launch, ...]:
    # The kernel computes reflected positions itself, so it reads nothing beyond the edge.
    args = _args(size, image=Textured("image", "border" if size["border"] == "zero" else "clamp"))
    return (Launch(_kernel("texture", size), _grid(size, TILE, ROWS), (TILE, ROWS), args),)


def _one_each(name: str, rows: int) -> Callable[[Size], tuple[Launch, ...]]:
    """One launch of blocks of TILE x ``rows`` threads, one output per thread."""

    def launches(size: Size) -> tuple[Launch, ...]:
        return (Launch(_kernel(name, size), _grid(size, TILE, rows), (TILE, rows), _args(size)),)

    return launches


def _width(size: Size, columns: int = OUT) -> int:
    """Floats per access in the rungs that load float4: 4 if every thread has all of its ``columns``."""
    return 4 if size["cols"] % columns == 0 else 1


def _quads(name: str, rows: int, high: int) -> Callable[[Size], tuple[Launch, ...]]:
    """One launch of blocks of TILE x ``rows`` threads, each with ``high`` rows of OUT outputs."""

    def launches(size: Size) -> tuple[Launch, ...]:
        kernel = _kernel(name, size, _width(size))
        return (Launch(kernel, _grid(size, TILE * OUT, rows * high), (TILE, rows), _args(size)),)

    return launches


def _streamed(size: Size) -> tuple[Launch, ...]:
    grid = _grid(size, STREAM_THREADS * OUT, STRIP)
    args = (*_args(size), np.int32(STRIP))
    return (Launch(_kernel("streamed", size, _width(size)), grid, (STREAM_THREADS,), args),)


def strip_height(size: Size) -> int:
    """Rows of a strip in the rung prefetched: enough that all blocks run at once, and at least twice the filter's."""
    across = max(1, ceil_div(size["cols"], PREFETCH_THREADS * PREFETCH_OUT))
    strips = max(1, SMS * RESIDENT.get(size["k"], 8) // across)
    return max(ceil_div(size["rows"], strips), 2 * size["k"])


def _prefetched(size: Size) -> tuple[Launch, ...]:
    height = strip_height(size)
    grid = _grid(size, PREFETCH_THREADS * PREFETCH_OUT, height)
    args = (*_args(size), np.int32(height))
    return (Launch(_kernel("prefetched", size, _width(size, PREFETCH_OUT)), grid, (PREFETCH_THREADS,), args),)


def _requires(rows_per_block: int, **most: int) -> Callable[[Size], str | None]:
    limits = {"rows": MAX_GRID_Y * rows_per_block, "cols": MAX_EXTENT, **most}

    def requires(size: Size) -> str | None:
        for key in ("k", "k_cols"):
            if size[key] % 2 == 0:
                return f"{key} must be odd, so that the filter has a centre"
            if size[key] > MAX_FILTER:
                return f"{key} may be at most {MAX_FILTER}, because the loops over taps are unrolled"
        for key, limit in limits.items():
            if size[key] > limit:
                return f"{key} may be at most {limit}, the limit of the grid, of a texture or of a 32-bit position"
        return None

    return requires


def _cudnn(tf32: bool) -> Callable[[dict[str, Any], Size], Callable[[], None]]:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        return cudnn.convolution_of_image(
            arrays["image"], arrays["filter"], arrays["result"], border=size["border"], tf32=tf32
        )

    return prepare


def _npp(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
    return npp.convolution(arrays["image"], arrays["filter"], arrays["result"], size["border"])


def _cufft(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
    forms = (cufft.with_kernels, cufft_callbacks.with_callbacks)
    return cufft.convolution(arrays["image"], arrays["filter"], arrays["result"], *forms)


def _zero_border(size: Size) -> str | None:
    return None if size["border"] == "zero" else "the transforms have zeros outside"


QUAD_ALIGNED = {"image": 16, "result": 16}

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "naive",
            "pixels and weights from global memory",
            _naive,
            requires=_requires(ROWS),
            swept=False,
        ),
        Rung(
            "constant",
            "the filter in the constant bank",
            _one_each("constant", ROWS),
            requires=_requires(ROWS),
        ),
        Rung(
            "tiled",
            "tile and halo in shared memory",
            _one_each("tiled", TILE),
            requires=_requires(TILE),
        ),
        Rung(
            "halo_second_pass",
            "the halo loaded in one more pass",
            _one_each("halo_second_pass", TILE),
            requires=_requires(TILE),
            swept=False,
        ),
        Rung(
            "shuffle",
            "a row exchanged between lanes",
            _one_each("shuffle", TILE),
            requires=_requires(TILE),
            swept=False,
        ),
        Rung(
            "texture",
            "pixels through the texture unit",
            _texture,
            requires=_requires(ROWS, **MAX_TEXTURE),
            swept=False,
        ),
        Rung(
            "vectorised",
            "four outputs per thread, 16 bytes per load",
            _quads("vectorised", ROWS, 1),
            alignment=QUAD_ALIGNED,
            requires=_requires(ROWS),
        ),
        Rung(
            "register_tile",
            "4 x 8 outputs in registers, no shared memory",
            _quads("register_tile", HIGH_ROWS, HIGH),
            alignment=QUAD_ALIGNED,
            requires=_requires(HIGH_ROWS * HIGH),
        ),
        Rung(
            "streamed",
            "down the rows, all sums in registers",
            _streamed,
            alignment=QUAD_ALIGNED,
            requires=_requires(STRIP),
        ),
        Rung(
            "prefetched",
            "eight columns, two rows in flight",
            _prefetched,
            alignment=QUAD_ALIGNED,
            requires=_requires(2),
        ),
    ),
    peers=(
        Peer("cuDNN", _cudnn(False), cudnn.cudnn(cudnn.BENCHMARKED, "fp32")),
        Peer(
            "cuDNN TF32",
            _cudnn(True),
            cudnn.cudnn(cudnn.BENCHMARKED, "TF32"),
            # TF32 keeps 10 bits of each factor: each term is off by less than 2^-9, and all terms are positive.
            tolerance=lambda size: 2.0**-9,
        ),
        Peer("NPP", _npp, npp.npp("nppiFilterBorder_32f_C1R")),
        # A transform of m^2 points rounds at each of its log2(m^2) stages, relative to the largest sum.
        Peer(
            "cuFFT",
            _cufft,
            cufft.cufft,
            tolerance=lambda size: 2.0**-18,
            requires=_zero_border,
            swept=False,
        ),
    ),
)
