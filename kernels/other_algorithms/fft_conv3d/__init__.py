"""3D convolution by discrete Fourier transforms of tiles that never leave an SM, beside the direct sums of ``conv3d``.

Every rung takes the weights and transforms them itself, in a first launch; cuFFT's peers have their spectrum before.
A transform spreads a NaN over its tile; the rungs compute such outputs again, term by term, so that results are those
of the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size, Tensor, ceil_div
from climb.bench.work import Work
from kernels.conv3d import conv3d

#: Edge of a tile, and complex numbers between its rows in shared memory.
EDGE, PITCH = 32, 33
#: Threads that own a plane's frequencies: k and -k, which are conjugates for real data.
OWNERS = 512
COMPLEX, FLOAT, BARRIER = 8, 4, 8
#: Threads of a block of planes and boxes, and planes that it transforms in one step.
THREADS, STEP = 256, 16
#: SMs of the GPU for which columns are cut, an H200. Results do not depend on it.
SMS = 132
#: Shared memory of which an SM has not twice as much. Blocks that start beside those of another launch are not spread
#: evenly over the SMs; where there are fewer blocks than SMs, asking for so much keeps them apart.
ALONE = 116 * 1024
CUBE_THREADS = 512
QUAD = 4


def butterfly_operations(points: int = EDGE) -> int:
    """Operations of the FMA pipe of one complex transform in registers (``fft32``): 4 of a butterfly whose factor is 1
    or i, 6 of any other."""
    total, half = 0, 1
    while half < points:
        groups = points // (2 * half)
        trivial = 1 if half == 1 else 2
        total += groups * (4 * trivial + 6 * (half - trivial))
        half *= 2
    return total


@dataclass(frozen=True)
class Box:
    """A box of two planes in shared memory, as ``Box`` of boxes.cuh: four columns wider than a tile where tiles do not
    begin at multiples of 16 bytes and memory allows, else with fewer columns kept."""

    k: int

    @property
    def wider(self) -> bool:
        return (EDGE - self.k + 1) % QUAD != 0 and self.k <= 7

    @property
    def wide(self) -> int:
        """Columns of a tile that are kept."""
        kept = EDGE - self.k + 1
        return kept if self.wider else kept // QUAD * QUAD

    @property
    def lead(self) -> int:
        """Columns of a tile before its first output, and up to three that are not kept."""
        return self.k // 2 if self.wider else ceil_div(self.k // 2, QUAD) * QUAD

    @property
    def columns(self) -> int:
        return EDGE + QUAD * self.wider

    @property
    def pair_bytes(self) -> int:
        """From one pair of planes to the next: the box, or its spectrum."""
        return max(2 * FLOAT * EDGE * self.columns, COMPLEX * EDGE * PITCH)


@dataclass(frozen=True)
class Cut:
    """The cut of a volume into columns of tiles, and of a column into blocks of ``planes`` output planes.

    The volume has ``depth`` output planes of n x n. A tile keeps ``kept`` rows and ``wide`` columns; tiles start
    ``lead`` columns before the first output.
    """

    n: int
    k: int
    wide: int
    lead: int
    depth: int

    @classmethod
    def closest(cls, size: Size) -> Cut:
        """Tiles that keep all valid columns."""
        return cls(size["n"], size["k"], EDGE - size["k"] + 1, size["k"] // 2, size["n"])

    @classmethod
    def boxed(cls, size: Size, depth: int | None = None) -> Cut:
        """Tiles from boxes of the copy engine, which begin at multiples of 16 bytes in their rows; of a cube, or of a
        volume of another depth."""
        box = Box(size["k"])
        return cls(size["n"], size["k"], box.wide, box.lead, size["n"] if depth is None else depth)

    @property
    def kept(self) -> int:
        return EDGE - self.k + 1

    @property
    def tiles(self) -> tuple[int, int]:
        """Tiles of a plane, across and down."""
        return max(1, ceil_div(self.n + self.lead - self.k // 2, self.wide)), max(1, ceil_div(self.n, self.kept))

    @property
    def planes(self) -> int:
        """Output planes of a block: of all numbers of whole steps the one that should take least time.

        Estimated as trials on an H200 suggest: steps of a block, times its turns on the busiest SM (as they are, and
        rounded up, on average), and one turn more for the first and the last blocks, which run alone.
        """
        across, down = self.tiles

        def estimate(steps: int) -> float:
            planes = STEP * steps - self.k + 1
            blocks = across * down * ceil_div(max(1, self.depth), planes)
            pairs = across * down * (self.depth + ceil_div(self.depth, planes) * (self.k - 1)) / 2
            turns = pairs / (STEP // 2 * steps) / SMS
            return steps * ((1 if blocks <= SMS else (turns + ceil(turns)) / 2) + 1)

        fewest = ceil_div(self.k, STEP)
        return STEP * min(range(fewest, ceil_div(self.depth + self.k, STEP) + 1), key=estimate) - self.k + 1

    @property
    def grid(self) -> tuple[int, int, int]:
        return (*self.tiles, max(1, ceil_div(self.depth, self.planes)))

    @property
    def pairs(self) -> int:
        """Pairs of planes that all blocks transform."""
        across, down, deep = self.grid
        return across * down * ceil_div(self.depth + deep * (self.k - 1), 2)

    @property
    def pairs_back(self) -> int:
        """Pairs of planes that all blocks transform back."""
        across, down, _ = self.grid
        return across * down * ceil_div(self.depth, 2)


#: Bytes of a pair of planes as complex numbers, and operations of its transform in both directions.
PAIR_BYTES, PAIR_OPERATIONS = COMPLEX * EDGE**2, 2 * EDGE * butterfly_operations()
#: How often a pair passes shared memory before the sums along z and after them, the sums' own passes among them.
PASSES_THERE, PASSES_BACK = 4, 4


def _planes_work(cut: Cut) -> Work:
    """The sums: four multiply-adds for each weight plane and frequency; a pair's spectra are untangled and tangled."""
    whole = problem.work({"n": cut.n, "k": cut.k})
    there, back = cut.pairs, cut.pairs_back
    return replace(
        whole,
        fma=back * 2 * OWNERS * 4 * cut.k,
        fp32=(there + back) * PAIR_OPERATIONS + (there + back) * 4 * OWNERS,
        shared=PAIR_BYTES * (there * PASSES_THERE + back * PASSES_BACK),
    )


def _cubes_work(size: Size) -> Work:
    """Three transforms there and back, and a complex product of four operations at half of the frequencies."""
    cut = Cut.closest(size)
    tiles = max(1, ceil_div(size["n"], cut.kept)) ** 3
    back = cut.kept // 2
    return replace(
        problem.work(size),
        fma=tiles * OWNERS * EDGE * 4,
        fp32=tiles * ((STEP + back) * (PAIR_OPERATIONS + 4 * OWNERS) + 2 * OWNERS * butterfly_operations()),
        shared=tiles * PAIR_BYTES * (STEP * PASSES_THERE + back * PASSES_BACK),
    )


problem = replace(
    conv3d.problem,
    name="fft_conv3d",
    title="3D convolution by transforms of tiles, float32",
    # A transform rounds at each of its stages, relative to the largest value of the tile: less than a long sum does.
    tolerance=lambda size: max(conv3d.problem.tolerance(size), 2.0**-20),
    headline=({"n": 512, "k": 9}, {"n": 256, "k": 7}, {"n": 96, "k": 11}),
    sweep=(*({"n": 256, "k": k} for k in (3, 5, 9, 11)), {"n": 64, "k": 3}),
    check=({"n": 0, "k": 3}, {"n": 7, "k": 9}, {"n": 31, "k": 3}, {"n": 12, "k": 3}),
)  # fmt: skip


def _requires(size: Size) -> str | None:
    return conv3d.ladder["naive"].rung.requires(size)


def _boxes_require(size: Size) -> str | None:
    if size["n"] % QUAD:
        return "n must be a multiple of 4: the rows of a tensor map start at multiples of 16 bytes"
    return _requires(size)


def spectra(size: Size, threads: int = THREADS) -> Launch:
    """The launch that transforms the weights' planes, in blocks of ``threads`` threads."""
    grid = (size["k"], OWNERS // threads)
    return Launch(f"fft_conv3d_spectra<{size['k']}>", grid, (threads,), ("weights", "spectra"))


def plane_spectra(size: Size) -> dict[str, tuple[tuple[int, ...], str]]:
    """The spectra of the weights' planes."""
    return {"spectra": ((size["k"], OWNERS, 2), "float32")}


def _cube_spectra(size: Size) -> dict[str, tuple[tuple[int, ...], str]]:
    """The spectrum of all weights; behind it two more columns, for frequencies that are their own opposites."""
    return {**plane_spectra(size), "cube_spectra": ((EDGE, OWNERS + 2, 2), "float32")}


def _cubes(size: Size) -> tuple[Launch, ...]:
    n, k = size["n"], size["k"]
    tiles = max(1, ceil_div(n, EDGE - k + 1))
    shared = COMPLEX * STEP * EDGE * PITCH
    args = ("source", "weights", "cube_spectra", "target", np.int32(n))
    return (
        spectra(size, CUBE_THREADS),
        Launch(f"fft_conv3d_cube_spectra<{k}>", (EDGE,), (OWNERS,), ("spectra", "cube_spectra")),
        Launch(f"fft_conv3d_cubes<{k}>", (tiles,) * 3, (CUBE_THREADS,), args, shared),
    )


def _shared(k: int, pair_bytes: int) -> int:
    """Bytes of the pairs of planes of one step, and of the weights' spectra."""
    return THREADS // EDGE * pair_bytes + COMPLEX * k * OWNERS


def boxes_shared(k: int) -> int:
    """Bytes of shared memory of a block whose planes come in boxes."""
    return _shared(k, Box(k).pair_bytes) + BARRIER * THREADS // EDGE


def _column_args(cut: Cut) -> tuple[Any, ...]:
    return ("source", "weights", "spectra", "target", np.int32(cut.n), np.int32(cut.planes))


def _planes(size: Size) -> tuple[Launch, ...]:
    cut, k = Cut.closest(size), size["k"]
    shared = _shared(k, COMPLEX * EDGE * PITCH)
    return (
        spectra(size),
        Launch(f"fft_conv3d_planes<{k}>", cut.grid, (THREADS,), _column_args(cut), shared),
    )


def _boxes(size: Size, dependent: bool = False) -> tuple[Launch, ...]:
    cut, box, n, k = Cut.boxed(size), Box(size["k"]), size["n"], size["k"]
    args = (Tensor("source", (n, n, n), (2, EDGE, box.columns), "float32"), *_column_args(cut))
    shared = boxes_shared(k)
    kernel = f"fft_conv3d_{'dependent' if dependent else 'tma'}<{k}>"
    first = spectra(size)
    if dependent:
        first = replace(first, kernel=f"fft_conv3d_spectra_first<{k}>")
        if prod(cut.grid) <= SMS:
            shared = max(shared, ALONE)
    return (first, Launch(kernel, cut.grid, (THREADS,), args, shared, pdl=dependent))


def _continued(name: str, file: str, **changed: Any) -> Rung:
    """A rung of the ladder ``conv3d``."""
    return replace(conv3d.ladder[name].rung, source=file, **changed)


def _boxed(name: str, idea: str, launches: Callable[[Size], tuple[Launch, ...]]) -> Rung:
    """A rung whose planes the copy engine brings."""
    return Rung(
        name,
        idea,
        launches,
        requires=_boxes_require,
        alignment={"source": 16},
        workspace=plane_spectra,
        shortcut=True,
        work=lambda size: _planes_work(Cut.boxed(size)),
        capability="9.0",
    )


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _continued("grouped", "../../conv3d/conv3d/09_grouped.cu"),
        _continued("karatsuba", "../../conv3d/conv3d/12_karatsuba.cu"),
        Rung(
            "cubes",
            "tiles of 32 x 32 x 32 points, transformed in an SM",
            _cubes,
            requires=_requires,
            workspace=_cube_spectra,
            shortcut=True,
            work=_cubes_work,
        ),
        Rung(
            "planes",
            "transforms of planes, direct sums along z",
            _planes,
            requires=_requires,
            workspace=plane_spectra,
            shortcut=True,
            work=lambda size: _planes_work(Cut.closest(size)),
        ),
        _boxed("tma", "the copy engine brings the planes", _boxes),
        _boxed(
            "dependent",
            "the first planes load while the weights are transformed",
            lambda size: _boxes(size, dependent=True),
        ),
    ),
    peers=tuple(
        replace(peer, swept=peer.name == "cuFFT") for peer in conv3d.ladder.peers if peer.name.startswith("cuFFT")
    ),
)
