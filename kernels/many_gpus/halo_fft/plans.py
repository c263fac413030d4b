"""The plans of the ladder ``halo_fft``: as those of ``halo3d``, with a kernel that takes a fifth of the time."""

from __future__ import annotations

import numpy as np

from climb.bench.problem import Launch, Size
from climb.distributed.plan import (
    COMPUTE,
    MESSAGES,
    After,
    Boxes,
    Compute,
    Part,
    Peer,
    Place,
    Plan,
    Receive,
    Step,
)
from kernels.many_gpus.halo3d.plans import Cut, fetched, halo_exchange, messages, regions, whole_slab
from kernels.other_algorithms import fft_conv3d
from kernels.other_algorithms.fft_conv3d import EDGE, THREADS, Box

#: What a launch reads besides its planes, and writes.
_ARRAYS = ("weights", "spectra", "target")


def _spectra(size: Size) -> Compute:
    """The weights' planes are transformed once, on every rank."""
    return Compute(fft_conv3d.spectra(size), COMPUTE, "spectra")


def _blocks(size: Size, outputs: int) -> tuple[np.int32, tuple[int, int, int]]:
    """Output planes of a block, and the grid, for a slab of ``outputs`` output planes."""
    cut = fft_conv3d.Cut.boxed(size, outputs)
    return np.int32(cut.planes), cut.grid


def _kernel(cut: Cut, outputs: range, label: str, stream: str = COMPUTE) -> list[Step]:
    """The launch that computes these planes, numbered as in the source; none where there are none.

    Its tensor map has the planes that they need and no others: other halos may be on their way.
    """
    if not outputs or not cut.held:
        return []
    n, k = cut.size["n"], cut.size["k"]
    reads = cut.inside(outputs.start - cut.radius, outputs.stop + cut.radius)
    part = Part("source", reads.start * cut.area, len(reads) * cut.area)
    planes, grid = _blocks(cut.size, len(outputs))
    where = (outputs.start - reads.start, outputs.stop - reads.start, reads.start - cut.reach)
    numbers = (np.int32(n), np.int32(len(reads)), *(np.int32(number) for number in where), planes)
    args = (Boxes(part, (len(reads), n, n), (2, EDGE, Box(k).columns)), part, *_ARRAYS, *numbers)
    launch = Launch(f"fft_slab<{k}>", grid, (THREADS,), args, fft_conv3d.boxes_shared(k))
    return [Compute(launch, stream, label)]


def exchange(place: Place, size: Size) -> Plan:
    """Halos first, then the slab. The weights are transformed meanwhile."""
    cut = Cut(place, size)
    halos = halo_exchange(cut, "source")
    return (halos, _spectra(size), After(COMPUTE, MESSAGES), *_kernel(cut, whole_slab(cut), "slab"))


def _beside(cut: Cut, halos: list[Step]) -> Plan:
    """The interior while halos come; the boundary after them, on their stream, as soon as there are spectra."""
    interior, boundary = regions(cut)
    steps: list[Step] = [*halos, _spectra(cut.size), After(MESSAGES, COMPUTE)]
    steps += _kernel(cut, interior, "interior")
    for region in boundary:
        steps += _kernel(cut, region, "boundary", MESSAGES)
    return (*steps, After(COMPUTE, MESSAGES))


def two_streams(place: Place, size: Size) -> Plan:
    """NCCL brings the halos."""
    cut = Cut(place, size)
    return _beside(cut, [halo_exchange(cut, "source")])


def copy_engine(place: Place, size: Size) -> Plan:
    """The copy engine fetches the halos from the neighbours."""
    cut = Cut(place, size)
    return _beside(cut, [fetched(cut, "source", one) for one in messages(cut, "source") if isinstance(one, Receive)])


def _owned(cut: Cut, rank: int | None) -> tuple[Boxes, str | Peer, int]:
    """The planes that a rank owns, this one or a neighbour: a map of them, the array that has them, their number."""
    one = cut if rank is None else Cut(Place(rank, cut.place.ranks), cut.size)
    n, part = one.size["n"], Part("source", one.reach * one.area, one.held * one.area)
    boxes = Boxes(part, (one.held, n, n), (1, EDGE, Box(one.size["k"]).columns), rank)
    return boxes, "source" if rank is None else Peer("source", rank), one.held


def peer_loads(place: Place, size: Size) -> Plan:
    """No message: the engine that brings planes to an SM brings those of the halo from the neighbours' memory."""
    cut, k = Cut(place, size), size["k"]
    if not cut.held:
        return ()
    before, after = (rank if 0 <= rank < place.ranks else None for rank in (place.rank - 1, place.rank + 1))
    maps, addresses, held = zip(*(_owned(cut, rank) for rank in (before, None, after)), strict=True)
    counts = (held[0] if before is not None else 0, held[1], held[2] if after is not None else 0)
    planes, grid = _blocks(size, cut.held)
    numbers = (*(np.int32(count) for count in counts), np.int32(cut.reach))
    args = (*maps, *addresses, *numbers, *_ARRAYS, np.int32(size["n"]), planes)
    launch = Launch(f"fft_slab_peers<{k}>", grid, (THREADS,), args, fft_conv3d.boxes_shared(k))
    return (_spectra(size), Compute(launch, COMPUTE, "slab"))
