"""3D convolution of a volume that is cut into slabs, one on each GPU; applied once, or several times in a row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.problem import Size
from climb.bench.references import correlate
from climb.distributed.ladder import SharedLadder, SharedProblem, SharedRung
from climb.distributed.plan import Arrays, Place
from kernels.many_gpus.halo3d import plans
from kernels.many_gpus.halo3d.plans import Cut

FLOAT = 4
#: The weights' edge: odd, so that they have a middle; the loops over it are unrolled.
EDGES = (3, 5, 7, 9, 11)


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    planes, n, k = size["planes"], size["n"], size["k"]
    # Divided by the square root of their number, the weights leave sums as large as what they add.
    weights = rng.standard_normal((k, k, k), dtype=np.float32) / np.float32(k**1.5)
    return {"volume": rng.standard_normal((planes, n, n), dtype=np.float32), "weights": weights}


def _arrays(place: Place, size: Size) -> Arrays:
    """The slab with the planes of a halo before and after it, the weights, and the slab of outputs."""
    cut, n, k = Cut(place, size), size["n"], size["k"]
    return {
        "source": ((cut.held + 2 * cut.reach, n, n), "float32"),
        "weights": ((k, k, k), "float32"),
        "target": ((cut.held, n, n), "float32"),
    }


def _share(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    cut = Cut(place, size)
    source = np.full((cut.held + 2 * cut.reach, size["n"], size["n"]), np.nan, np.float32)
    source[cut.reach : cut.reach + cut.held] = inputs["volume"][cut.own.start : cut.own.stop]
    return {"source": source, "weights": inputs["weights"]}


def _reference(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    """The filtered slab: of its planes with a halo for all filters, whose own edges are then cut off."""
    own, reach = Cut(place, size).own, size["k"] // 2 * size["filters"]
    start, stop = max(0, own.start - reach), min(size["planes"], own.stop + reach)
    filtered: Any = inputs["volume"][start:stop]
    for _ in range(size["filters"]):
        filtered = correlate(filtered, inputs["weights"])
    return {"target": filtered[own.start - start : own.stop - start]}


def _spots(inputs: Mapping[str, np.ndarray], size: Size) -> tuple[list[int], dict[str, np.ndarray]]:
    """Planes at both ends and around the middle, where two slabs meet."""
    planes, reach = size["planes"], size["k"] // 2 * (size["filters"] - 1)
    middle = planes // 2
    rows = sorted({0, 1, *range(max(0, middle - 5), min(planes, middle + 5)), planes // 4, planes - 2, planes - 1})
    wide = size["k"] // 2 + reach
    parts = []
    for row in rows:
        start, stop = max(0, row - wide), min(planes, row + wide + 1)
        filtered: Any = inputs["volume"][start:stop]
        for _ in range(size["filters"] - 1):
            filtered = correlate(filtered, inputs["weights"])
        parts.append(_plane(filtered, inputs["weights"], row - start))
    return rows, {"target": np.stack(parts)}


def _plane(volume: np.ndarray, weights: np.ndarray, row: int) -> np.ndarray:
    """One plane of a filtered volume."""
    first = row - len(weights) // 2
    pairs = [(first + d, each) for d, each in enumerate(weights) if 0 <= first + d < len(volume)]
    return sum((correlate(volume[z], each) for z, each in pairs), np.zeros(volume.shape[1:]))


problem = SharedProblem(
    name="halo3d",
    title="3D convolution of a volume in slabs, float32",
    size_keys=("planes", "n", "k", "filters"),
    make_inputs=_inputs,
    arrays=_arrays,
    share=_share,
    reference=_reference,
    spots=_spots,
    # As conv3d: a sum of k^3 terms rounds k^3 times, and the errors add up like a random walk; so do those of filters.
    tolerance=lambda size: 4 * 2.0**-24 * size["k"] ** 1.5 * size["filters"],
    flops=lambda size: 2 * size["k"] ** 3 * size["planes"] * size["n"] ** 2 * size["filters"],
    bytes=lambda size: FLOAT * (2 * size["planes"] * size["n"] ** 2 + size["k"] ** 3),
    # A cube that fits one GPU; twice the cube, for weak scaling; a small volume, filtered eight times.
    headline=(
        {"planes": 512, "n": 512, "k": 9, "filters": 1},
        {"planes": 1024, "n": 512, "k": 9, "filters": 1},
        {"planes": 128, "n": 128, "k": 3, "filters": 8},
    ),
    check=(
        {"planes": 12, "n": 8, "k": 3, "filters": 1},
        {"planes": 13, "n": 5, "k": 3, "filters": 3},
        {"planes": 3, "n": 4, "k": 5, "filters": 1},
        {"planes": 1, "n": 4, "k": 3, "filters": 2},
    ),
)


def size_is_taken(size: Size, ranks: int) -> str | None:
    """Return why the kernels do not take a size, or None if they do."""
    if size["k"] not in EDGES:
        return f"k may be one of {', '.join(map(str, EDGES))}, because the loops over the weights are unrolled"
    if size["filters"] < 1:
        return "filters must be at least 1"
    return None


def slabs_reach(size: Size, ranks: int) -> str | None:
    """The kernel reads the memory of the ranks before and after, and of no others."""
    if ranks > 1 and size["planes"] // ranks < size["k"] // 2:
        return f"a slab must be at least {size['k'] // 2} planes thick, as the halo is"
    return size_is_taken(size, ranks)


def _filters_repeat(size: Size, ranks: int) -> str | None:
    """With one filter there is no next exchange that could be earlier, or left out."""
    return size_is_taken(size, ranks) or ("it needs several filters" if size["filters"] < 2 else None)


def _blocks_are_long(size: Size, ranks: int) -> str | None:
    """Return why the rung refuses a size, or None: if blocks are short already, the plan is that of two_streams."""
    short = None if plans.has_long_blocks(size, ranks) else f"its blocks have at most {plans.SHORT} planes already"
    return size_is_taken(size, ranks) or short


def _buffers(place: Place, size: Size) -> Arrays:
    """The buffers that filters before the last write: two in turn, laid out like the source."""
    cut = Cut(place, size)
    shape = ((cut.held + 2 * cut.reach, size["n"], size["n"]), "float32")
    return {f"buffer{i}": shape for i in range(min(2, size["filters"] - 1))}


def _deep_buffers(place: Place, size: Size) -> Arrays:
    """The source once more with a deeper halo, and buffers like it."""
    cut = Cut(place, size, deep=True)
    shape = ((cut.held + 2 * cut.reach, size["n"], size["n"]), "float32")
    return {"deep": shape} | {f"buffer{i}": shape for i in range(min(2, size["filters"] - 1))}


def _gather_buffers(place: Place, size: Size) -> Arrays:
    if place.rank != 0:
        return {}
    whole = ((size["planes"], size["n"], size["n"]), "float32")
    return dict.fromkeys(("whole", "result", *(f"buffer{i}" for i in range(min(2, size["filters"] - 1)))), whole)


SOURCE = "slab.cu"

shared_ladder = SharedLadder(
    problem,
    Path(__file__).parent,
    rungs=(
        SharedRung(
            "one_gpu", "the whole volume on one GPU", plans.exchange, SOURCE, _buffers, size_is_taken, alone=True
        ),
        SharedRung("gather", "all slabs to one GPU and back", plans.gather, SOURCE, _gather_buffers, size_is_taken),
        SharedRung("exchange", "exchange halos, then compute", plans.exchange, SOURCE, _buffers, size_is_taken),
        SharedRung("overlap", "the interior while halos travel", plans.overlap, SOURCE, _buffers, size_is_taken),
        SharedRung(
            "two_streams", "the boundary beside the interior", plans.two_streams, SOURCE, _buffers, size_is_taken
        ),
        SharedRung(
            "short_blocks",
            "the interior in blocks that make room",
            plans.short_blocks,
            SOURCE,
            _buffers,
            _blocks_are_long,
        ),
        SharedRung(
            "boundary_first",
            "send new halos before the interior",
            plans.boundary_first,
            SOURCE,
            _buffers,
            _filters_repeat,
        ),
        SharedRung(
            "graph", "all of it as one CUDA graph", plans.boundary_first, SOURCE, _buffers, size_is_taken, graph=True
        ),
        SharedRung(
            "deep", "one exchange for all filters", plans.deep, SOURCE, _deep_buffers, _filters_repeat, graph=True
        ),
        SharedRung(
            "copy_engine",
            "halos by the copy engine, which needs no SM",
            plans.copy_engine,
            SOURCE,
            _buffers,
            slabs_reach,
            graph=True,
            shared=("source", "buffer0", "buffer1"),
        ),
        SharedRung(
            "peer_loads",
            "the kernel reads the neighbours' planes",
            plans.peer_loads,
            SOURCE,
            _buffers,
            slabs_reach,
            graph=True,
            shared=("source", "buffer0", "buffer1"),
        ),
    ),
)
