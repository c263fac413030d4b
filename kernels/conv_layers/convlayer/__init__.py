"""Convolution layer: every output map is the sum over all input maps of each convolved with weights of its own.

Maps are square, n x n, with zeros around them; a batch of one. Layouts as the course report has its maps: input and
output (map, row, column), weights (output map, input map, row, column), the NCHW and OIHW of the libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size, ceil_div
from climb.bench.work import Work
from kernels.conv_layers.convlayer.cuts import DIRECT, WINOGRAD, Cut, choose
from kernels.conv_layers.convlayer.layer import CONV1, CONV2, args, first_rungs, make_problem, requires, vgg
from kernels.conv_layers.convlayer.peers import PEERS
from kernels.conv_layers.convlayer.planes import choose_plane, maps_of_part

SIDE, OUTS = 16, 16
GEMM_OUTS, GEMM_PIXELS, GEMM_THREADS = 64, 128, 128
ADD_THREADS = 128

problem = make_problem(
    "convlayer",
    "Convolution layer, float32",
    "float32",
    (CONV1, CONV2),
    lambda rng, shape: rng.standard_normal(shape, dtype=np.float32),
    # c_in k^2 terms round as often, by at most 2^-24 of a partial sum; the errors add up like a random walk.
    lambda size: 4 * 2.0**-24 * max(1.0, (size["c_in"] * size["k"] ** 2) ** 0.5),
    sweep=tuple(size for size in vgg() if size not in (CONV1, CONV2)),
)


def _pieces(kernel: str, outs: int) -> Callable[[Size], tuple[Launch, ...]]:
    """A block for a piece of SIDE x SIDE pixels in ``outs`` output maps."""

    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (max(1, ceil_div(size["n"], SIDE) ** 2), max(1, ceil_div(size["c_out"], outs)))
        return (Launch(f"{kernel}<{size['k']}>", grid, (SIDE * SIDE,), args(size)),)

    return launches


def _product(kernel: str, wide: Callable[[Size], bool] | None = None) -> Callable[[Size], tuple[Launch, ...]]:
    """A block for a tile of the product of weights and unfolded image."""

    def launches(size: Size) -> tuple[Launch, ...]:
        width = "" if wide is None else f", {4 if wide(size) else 1}"
        grid = (max(1, ceil_div(size["n"] ** 2, GEMM_PIXELS)), max(1, ceil_div(size["c_out"], GEMM_OUTS)))
        return (Launch(f"{kernel}<{size['k']}{width}>", grid, (GEMM_THREADS,), args(size)),)

    return launches


def _direct(size: Size) -> tuple[Launch, ...]:
    return (_tiled("convlayer_direct", DIRECT, size, 1, "output"),)


def _tiled(kernel: str, cut: Cut, size: Size, parts: int, to: str, beside_ring: int = 0) -> Launch:
    """Blocks for every tile and part of a layer; each writes to ``to``."""
    name = f"{kernel}<{cut.arguments(size, parts)}>"
    shared = cut.shared_bytes(size["k"]) + beside_ring
    source, weights, _, *extents = args(size)
    arguments = (source, weights, to, *extents, np.int32(cut.maps(size, parts)))
    return Launch(name, (*cut.tiles(size), parts), (cut.threads,), arguments, shared)


def _winograd(size: Size) -> tuple[Launch, ...]:
    return (_tiled("convlayer_winograd", WINOGRAD, size, 1, "output", WINOGRAD.factor_bytes),)


def _windows(size: Size) -> str | None:
    if reason := requires(size):
        return reason
    if DIRECT.reads_past(size["k"]) or choose(size)[0].reads_past(size["k"]):
        return f"k may not be {size['k']}, because the last quad of a window would hold a float that no copy wrote"
    return None


def _three_taps(size: Size) -> str | None:
    return requires(size) or (None if size["k"] == 3 else "k must be 3, because these transforms have three taps")


def _split_k(size: Size) -> tuple[Launch, ...]:
    cut, parts = choose(size)
    if parts == 1:
        return (_tiled("convlayer_direct", cut, size, 1, "output"),)
    return (_tiled("convlayer_direct", cut, size, parts, "parts"), _add(size, parts))


def _add(size: Size, parts: int) -> Launch:
    """The second pass: the parts of every output are added."""
    count = size["c_out"] * size["n"] ** 2
    width = 4 if count % 4 == 0 else 1
    blocks = max(1, ceil_div(count, ADD_THREADS * width))
    arguments = ("parts", "output", np.uint64(count), np.int32(parts))
    return Launch(f"convlayer_add_parts<{width}>", (blocks,), (ADD_THREADS,), arguments)


def _winograd_2d(size: Size) -> tuple[Launch, ...]:
    plane, parts = choose_plane(size)
    source, weights, _, *extents = args(size)
    arguments = (source, weights, "output" if parts == 1 else "parts", *extents, np.int32(maps_of_part(size, parts)))
    name = f"convlayer_winograd_2d<{plane.arguments(size)}>"
    products = Launch(name, plane.grid(size, parts), (plane.threads,), arguments, plane.shared_bytes)
    return (products,) if parts == 1 else (products, _add(size, parts))


def _parts(
    choice: Callable[[Size], tuple[object, int]],
) -> Callable[[Size], dict[str, tuple[tuple[int, ...], str]]]:
    """Room for the parts, where ``choice`` has more than one."""

    def workspace(size: Size) -> dict[str, tuple[tuple[int, ...], str]]:
        parts = choice(size)[1]
        return {"parts": ((parts, size["c_out"], size["n"], size["n"]), "float32")} if parts > 1 else {}

    return workspace


def _products(ours: int, theirs: int) -> Callable[[Size], Work]:
    """The work of a rung that makes ``ours`` products where the definition makes ``theirs``; transforms not counted."""

    def work(size: Size) -> Work:
        whole = problem.work(size)
        return replace(whole, fma=whole.fma * ours // theirs)

    return work


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        *first_rungs("float"),
        Rung(
            "shared_inputs",
            "pieces of eight input maps in shared memory",
            _pieces("convlayer_shared_inputs", 1),
            requires=requires,
            swept=False,
        ),
        Rung(
            "output_maps",
            "sixteen output maps of a pixel in registers",
            _pieces("convlayer_output_maps", OUTS),
            requires=requires,
            swept=False,
        ),
        Rung(
            "implicit_gemm",
            "a matrix product with an image unfolded tile by tile",
            _product("convlayer_implicit_gemm"),
            requires=requires,
            swept=False,
        ),
        Rung(
            "vectorised",
            "16 bytes per access",
            _product(
                "convlayer_vectorised", lambda size: size["n"] % 2 == 0 and size["c_in"] * size["k"] ** 2 % 4 == 0
            ),
            alignment={"weights": 16, "output": 16},
            requires=requires,
            swept=False,
        ),
        Rung(
            "pipelined",
            "two tiles in flight while one is used",
            _product("convlayer_pipelined", lambda size: size["n"] % 2 == 0),
            alignment={"output": 16},
            requires=requires,
            swept=False,
        ),
        Rung(
            "direct",
            "a window of inputs in registers serves all taps",
            _direct,
            alignment={"output": 16},
            requires=_windows,
            swept=False,
        ),
        Rung(
            "split_k",
            "a cut for each layer, input maps split over blocks",
            _split_k,
            alignment={"output": 16},
            requires=_windows,
            workspace=_parts(choose),
        ),
        Rung(
            "winograd",
            "two outputs of a row from four products",
            _winograd,
            alignment={"output": 16},
            requires=_three_taps,
            swept=False,
            shortcut=True,
            work=_products(4, 6),
        ),
        Rung(
            "winograd_2d",
            "two by two outputs from sixteen products",
            _winograd_2d,
            alignment={"weights": 16, "output": 16},
            requires=_three_taps,
            workspace=_parts(choose_plane),
            shortcut=True,
            work=_products(16, 36),
        ),
    ),
    peers=PEERS,
)
