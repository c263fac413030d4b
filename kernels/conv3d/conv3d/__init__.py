"""3D convolution of a cube with a cube of weights, zeros outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, ByValue, Launch, Problem, Rung, Size, ceil_div
from climb.bench.references import correlate, sum_of_magnitudes
from climb.bench.work import Work
from kernels.conv3d.conv3d.peers import PEERS

FLOAT = 4
QUAD = 4
THREADS = 256
#: Edge of the cube of threads of naive, of the cube of outputs of a block of tiled.
CUBE, TILE = 8, 8
#: Outputs of a block of register_row across, and down and deep; of one thread.
ROW_ACROSS, ROW_TILE, ROW_OUT = 32, 8, 8
#: Threads of a block of the rungs that stream through the planes, and output planes of one block.
STREAM_THREADS, PLANES = 128, 64
#: SMs of the GPU for which trimmed cuts the volume, an H200. Results do not depend on it.
SMS = 132
#: Input planes of one step of grouped, by the weights' edge.
TOGETHER = {3: 2, 5: 3, 7: 3, 9: 4, 11: 2}
#: Rows of outputs of a block of trimmed, and planes of its short blocks.
TRIMMED_DOWN, REST = 64, 8
#: Blocks of karatsuba on an SM, by the weights' edge.
RESIDENT = {3: 3, 5: 3, 7: 3, 9: 3, 11: 2}
#: Rows and planes of outputs of a block of split_taps, groups of its warps, and input planes of one step.
SPLIT_DOWN, SPLIT_DEEP, SPLIT_GROUPS, SPLIT_TOGETHER = 16, 7, 3, 3
#: Threads of a block of the rung untiled; each has QUAD outputs.
UNTILED_BLOCK = (16, 16)
#: The weights' edge: odd, so that they have a middle; the loops over it are unrolled.
EDGES = (3, 5, 7, 9, 11)
#: A cube of this edge is 256 GiB; below it rows times columns fits an int.
MAX_N = 4096


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    n, k = size["n"], size["k"]
    return {
        "source": rng.standard_normal((n, n, n), dtype=np.float32),
        "weights": rng.standard_normal((k, k, k), dtype=np.float32),
    }


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"target": correlate(inputs["source"], inputs["weights"])}


problem = Problem(
    name="conv3d",
    title="3D convolution, float32",
    size_keys=("n", "k"),
    arguments=(
        Argument("source", "float32", ("n", "n", "n")),
        Argument("weights", "float32", ("k", "k", "k")),
        Argument("target", "float32", ("n", "n", "n"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # A sum of k^3 terms rounds k^3 times, by at most 2^-24 of a partial sum; the errors add up like a random walk.
    tolerance=lambda size: 4 * 2.0**-24 * size["k"] ** 1.5,
    # The zeros around the volume count as they do in every library: k^3 multiply-adds for every output.
    flops=lambda size: 2 * size["k"] ** 3 * size["n"] ** 3,
    bytes=lambda size: FLOAT * (2 * size["n"] ** 3 + size["k"] ** 3),
    # The worklog's four sizes. The largest is not for the rungs that are made for small volumes.
    headline=({"n": 256, "k": 7}, {"n": 96, "k": 11}, {"n": 64, "k": 3}),
    sweep=({"n": 512, "k": 9},),
    check=(
        {"n": 0, "k": 3},
        {"n": 2, "k": 3},
        {"n": 7, "k": 9},
        {"n": 9, "k": 7},
        {"n": 12, "k": 3},
        {"n": 8, "k": 11},
        {"n": 36, "k": 3},
        {"n": 16, "k": 5},
    ),
    accepts_empty=True,
)


def _size_is_taken(size: Size) -> str | None:
    if size["k"] not in EDGES:
        edges = f"{', '.join(map(str, EDGES[:-1]))} or {EDGES[-1]}"
        return f"k may be {edges}, because the loops over the weights are unrolled"
    if size["n"] > MAX_N:
        return f"n may be at most {MAX_N}, because n * n is a 32-bit number"
    return None


def _args(size: Size, weights: str = "weights") -> tuple[Any, ...]:
    return ("source", weights, "target", np.int32(size["n"]))


def _naive(size: Size) -> tuple[Launch, ...]:
    blocks = max(1, ceil_div(size["n"], CUBE))
    return (Launch(f"conv3d_naive<{size['k']}>", (blocks,) * 3, (CUBE,) * 3, _args(size)),)


def _numbered(kernel: str, weights: str, size: Size) -> Launch:
    grid = (max(1, ceil_div(size["n"] ** 3, THREADS)),)
    return Launch(f"{kernel}<{size['k']}>", grid, (THREADS,), _args(size, weights))


def _padded(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    """The weights with each row lengthened to whole float4."""
    k = size["k"]
    return {"padded": ((k, k, ceil_div(k, QUAD) * QUAD), "float32")}


def _vectorised(size: Size) -> tuple[Launch, ...]:
    k = size["k"]
    floats = k * k * ceil_div(k, QUAD) * QUAD
    pad = Launch(f"conv3d_pad_weights<{k}>", (ceil_div(floats, THREADS),), (THREADS,), ("weights", "padded"))
    return (pad, _numbered("conv3d_vectorised", "padded", size))


def _tiled(size: Size) -> tuple[Launch, ...]:
    k = size["k"]
    blocks = max(1, ceil_div(size["n"], TILE))
    shared = FLOAT * ((TILE + k - 1) ** 3 + ceil_div(k**3, QUAD) * QUAD)
    return (Launch(f"conv3d_tiled<{k}>", (blocks,) * 3, (TILE**3,), _args(size), shared),)


@dataclass(frozen=True)
class Tile:
    """The part of the volume that a block works on in the rungs with a row of outputs in registers.

    ``across`` x ``down`` outputs of a plane; rows in shared memory begin ``lead`` floats before the first of them.
    """

    k: int
    across: int = 32
    down: int = 32

    @property
    def lead(self) -> int:
        return ceil_div(self.k // 2, QUAD) * QUAD

    @property
    def plane(self) -> int:
        """Bytes of one input plane of the tile with its halo; an odd number of float4 in a row, as in the kernels."""
        quads = (self.across + 2 * self.lead) // QUAD
        return FLOAT * (self.down + self.k - 1) * (quads + 1 - quads % 2) * QUAD

    @property
    def weights(self) -> int:
        """Bytes of the weights, each row dy of them in whole float4."""
        return FLOAT * self.k * ceil_div(self.k**2, QUAD) * QUAD

    def grid(self, n: int, planes: int) -> tuple[int, int, int]:
        """The grid of blocks of ``planes`` output planes that covers a cube with edge ``n``."""
        return (max(1, ceil_div(n, self.across)), max(1, ceil_div(n, self.down)), max(1, ceil_div(n, planes)))


def _width(size: Size) -> int:
    """Floats per access: 4 where every row starts where a float4 may."""
    return QUAD if size["n"] % QUAD == 0 else 1


def _register_row(size: Size) -> tuple[Launch, ...]:
    n, k = size["n"], size["k"]
    high = ROW_TILE + k - 1
    quads = (ROW_ACROSS - ROW_OUT + ceil_div(ROW_OUT + k - 1, QUAD) * QUAD) // QUAD
    shared = FLOAT * QUAD * (high * high * (quads + 1 - quads % 2) + k * k * ceil_div(k, QUAD))
    grid = tuple(max(1, ceil_div(n, edge)) for edge in (ROW_ACROSS, ROW_TILE, ROW_TILE))
    return (Launch(f"conv3d_register_row<{k}>", grid, (THREADS,), _args(size), shared),)


def _streaming(kernel: str, planes_held: int) -> Callable[[Size], tuple[Launch, ...]]:
    """Launches of blocks that stream through ``PLANES`` output planes; shared memory holds ``planes_held`` of input."""

    def launches(size: Size) -> tuple[Launch, ...]:
        tile = Tile(size["k"])
        shared = tile.weights + planes_held * tile.plane
        name = f"{kernel}<{size['k']}, {_width(size)}>"
        args = (*_args(size), np.int32(PLANES))
        return (Launch(name, tile.grid(size["n"], PLANES), (STREAM_THREADS,), args, shared),)

    return launches


def _trimmed(size: Size) -> tuple[Launch, ...]:
    """The launch with as many blocks in a column as run at once on ``SMS`` SMs, each of at least k planes.

    The last ``REST`` planes are blocks of their own: they run where an SM has room for one more.
    """
    n, k = size["n"], size["k"]
    tile, width = Tile(k, down=TRIMMED_DOWN), _width(size)
    x, y, _ = tile.grid(n, 1)
    blocks = max(1, SMS * (2 if k <= 9 else 1) // (x * y))
    rest = REST if k <= 9 and n > 4 * blocks * k else 0
    planes = max(k, ceil_div(n - rest, blocks))
    whole = ceil_div(n - rest, planes)
    left = max(0, n - whole * planes)
    shared = tile.weights + 2 * tile.plane + tile.plane // width
    args = (*_args(size), np.int32(planes), np.int32(whole), np.int32(REST))
    name = f"conv3d_trimmed<{k}, {width}>"
    return (Launch(name, (x, y, max(1, whole + ceil_div(left, REST))), (THREADS,), args, shared),)


def _grouped(size: Size) -> tuple[Launch, ...]:
    """The launch of :func:`_trimmed`, with long blocks whose planes are a multiple of ``TOGETHER[k]``."""
    n, k = size["n"], size["k"]
    tile, width, step = Tile(k), _width(size), TOGETHER[k]
    x, y, _ = tile.grid(n, 1)
    blocks = max(2, SMS * 2 // (x * y))
    planes = max(k, ceil_div(n, blocks))
    if k <= 9 and planes > 4 * k:
        planes = (planes - 1) // step * step
    whole = max(1, n // planes)
    rest = max(1, n - whole * planes)
    shared = tile.weights + 2 * step * tile.plane + tile.plane // width
    args = (*_args(size), np.int32(planes), np.int32(whole), np.int32(rest))
    grid = (x, y, whole + (n > whole * planes))
    return (Launch(f"conv3d_grouped<{k}, {width}>", grid, (THREADS,), args, shared),)


def _karatsuba(size: Size) -> tuple[Launch, ...]:
    """The launch of :func:`_trimmed`, in pairs of output planes; the rest of a column is one more block."""
    n, k = size["n"], size["k"]
    tile, width = Tile(k), _width(size)
    x, y, _ = tile.grid(n, 1)
    total, even = ceil_div(n, 2), ceil_div(k, 2)
    pairs = max(even, total // max(1, SMS * RESIDENT[k] // (x * y)))
    whole = max(1, total // pairs)
    rest = max(1, total - whole * pairs)
    weights = FLOAT * k * ceil_div((k + even) * k, QUAD) * QUAD
    shared = weights + 4 * tile.plane + tile.plane // width
    args = (*_args(size), np.int32(pairs), np.int32(whole), np.int32(rest))
    grid = (x, y, whole + (total > whole * pairs))
    return (Launch(f"conv3d_karatsuba<{k}, {width}>", grid, (THREADS // 2,), args, shared),)


def _split_taps(size: Size) -> tuple[Launch, ...]:
    n, k = size["n"], size["k"]
    tile = Tile(k, down=SPLIT_DOWN)
    weights = FLOAT * k * k * ceil_div(k, QUAD) * QUAD
    sums = FLOAT * (SPLIT_GROUPS - 1) * SPLIT_DEEP * tile.across * tile.down
    planes = ceil_div(SPLIT_DEEP + k - 1, SPLIT_TOGETHER) * SPLIT_TOGETHER
    shared = max(planes * tile.plane + weights, sums)
    threads = SPLIT_GROUPS * tile.across * tile.down // ROW_OUT
    return (
        Launch(f"conv3d_split_taps<{k}, {_width(size)}>", tile.grid(n, SPLIT_DEEP), (threads,), _args(size), shared),
    )


def _untiled(size: Size) -> tuple[Launch, ...]:
    """A thread for every float4 of a plane; the weights of k = 3 by value."""
    n, k = size["n"], size["k"]
    grid = (max(1, ceil_div(n, UNTILED_BLOCK[0] * QUAD)), max(1, ceil_div(n, UNTILED_BLOCK[1])), max(1, n))
    if k == 3:
        few = ("source", ByValue("weights"), "target", np.int32(n))
        return (Launch(f"conv3d_untiled_few<{_width(size)}>", grid, UNTILED_BLOCK, few),)
    return (Launch(f"conv3d_untiled<{k}, {_width(size)}>", grid, UNTILED_BLOCK, _args(size)),)


QUAD_ALIGNED = {"source": 16, "target": 16}


def _fewer_products(size: Size) -> Work:
    """The work of karatsuba: two planes of outputs take (3 k + 1) / 2 planes of products in its three sums, not 2 k."""
    whole, k = problem.work(size), size["k"]
    return replace(whole, fma=whole.fma * (3 * k + 1) // (4 * k))


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("naive", "a thread per output, planes first", _naive, requires=_size_is_taken),
        Rung(
            "coalesced",
            "neighbouring threads have neighbouring outputs",
            lambda size: (_numbered("conv3d_coalesced", "weights", size),),
            requires=_size_is_taken,
        ),
        Rung(
            "vectorised",
            "four weights per load, from padded rows",
            _vectorised,
            requires=_size_is_taken,
            workspace=_padded,
        ),
        Rung("tiled", "tile and halo in shared memory", _tiled, requires=_size_is_taken),
        Rung(
            "register_row",
            "eight outputs in a row a thread",
            _register_row,
            requires=_size_is_taken,
        ),
        Rung(
            "streamed",
            "each plane loaded once, added to K planes of sums",
            _streaming("conv3d_streamed", 1),
            alignment=QUAD_ALIGNED,
            requires=_size_is_taken,
        ),
        Rung(
            "pipelined",
            "the next plane is copied while this one is added",
            _streaming("conv3d_pipelined", 2),
            alignment=QUAD_ALIGNED,
            requires=_size_is_taken,
        ),
        Rung(
            "trimmed",
            "no work for other blocks' planes",
            _trimmed,
            alignment=QUAD_ALIGNED,
            requires=_size_is_taken,
        ),
        Rung(
            "grouped",
            "several planes a step share each weight",
            _grouped,
            alignment=QUAD_ALIGNED,
            requires=_size_is_taken,
        ),
        Rung(
            "split_taps",
            "small volumes: groups of warps split the weights",
            _split_taps,
            alignment=QUAD_ALIGNED,
            requires=_size_is_taken,
            swept=False,
        ),
        Rung(
            "untiled",
            "small volumes: straight from the caches",
            _untiled,
            alignment=QUAD_ALIGNED,
            requires=_size_is_taken,
            swept=False,
        ),
        Rung(
            "karatsuba",
            "three sums for four: a fifth fewer products",
            _karatsuba,
            alignment=QUAD_ALIGNED,
            requires=_size_is_taken,
            shortcut=True,
            work=_fewer_products,
        ),
    ),
    peers=PEERS,
)
