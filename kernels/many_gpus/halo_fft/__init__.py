"""3D convolution of a volume in slabs, by transforms of planes: where a GPU needs a fifth of the time, messages count.

The volume, the slabs and the halos are those of ``halo3d``; the kernel is ``tma`` of ``fft_conv3d``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from climb.bench.problem import Size
from climb.distributed.ladder import SharedLadder, SharedRung
from climb.distributed.plan import Arrays, Place, Plan
from kernels.many_gpus import halo3d
from kernels.many_gpus.halo_fft import plans
from kernels.other_algorithms import fft_conv3d

problem = replace(
    halo3d.problem,
    name="halo_fft",
    title="3D convolution of a volume in slabs by transforms, float32",
    # As fft_conv3d: a transform rounds at each of its stages, relative to the largest value of the tile.
    tolerance=lambda size: max(halo3d.problem.tolerance(size), 2.0**-20),
    # Two planes go through one transform, and which two depends on where slabs and blocks begin.
    same_bits=False,
    # The cube of halo3d; twice the cube, for weak scaling; a cube that is an eighth of it.
    headline=(
        {"planes": 512, "n": 512, "k": 9, "filters": 1},
        {"planes": 1024, "n": 512, "k": 9, "filters": 1},
        {"planes": 256, "n": 256, "k": 9, "filters": 1},
    ),
    check=(
        {"planes": 13, "n": 8, "k": 3, "filters": 1},
        {"planes": 9, "n": 28, "k": 5, "filters": 1},
        {"planes": 3, "n": 4, "k": 5, "filters": 1},
        {"planes": 1, "n": 4, "k": 3, "filters": 1},
    ),
)


def _size_is_taken(size: Size, ranks: int) -> str | None:
    if size["n"] % fft_conv3d.QUAD:
        return "n must be a multiple of 4: the rows of a tensor map start at multiples of 16 bytes"
    if size["filters"] != 1:
        return "filters must be 1"
    return halo3d.size_is_taken(size, ranks)


def _slabs_reach(size: Size, ranks: int) -> str | None:
    return _size_is_taken(size, ranks) or halo3d.slabs_reach(size, ranks)


def _workspace(place: Place, size: Size) -> Arrays:
    return fft_conv3d.plane_spectra(size)


def _rung(name: str, idea: str, plan: Callable[[Place, Size], Plan], alone: bool = False, **how: object) -> SharedRung:
    requires = _slabs_reach if how.get("shared") else _size_is_taken
    return SharedRung(name, idea, plan, "slab.cu", _workspace, requires, alone, **how)  # type: ignore[arg-type]


shared_ladder = SharedLadder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("one_gpu", "the whole volume on one GPU", plans.exchange, alone=True),
        _rung("exchange", "exchange halos, then compute", plans.exchange),
        _rung("two_streams", "the boundary beside the interior", plans.two_streams),
        _rung("graph", "all of it as one CUDA graph", plans.two_streams, graph=True),
        _rung("copy_engine", "halos by the copy engine", plans.copy_engine, graph=True, shared=("source",)),
        _rung("peer_loads", "boxes from the neighbours' memory", plans.peer_loads, graph=True, shared=("source",)),
    ),
)
