"""The plans of the ladder ``halo3d``: who computes which planes, and when halos travel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from climb.bench.problem import Launch, Size, ceil_div
from climb.distributed.plan import (
    COMPUTE,
    MESSAGES,
    After,
    Barrier,
    Compute,
    Copy,
    Exchange,
    Part,
    Peer,
    Place,
    Plan,
    Receive,
    Send,
    Step,
    places,
)
from kernels.conv3d.conv3d import QUAD, THREADS, TRIMMED_DOWN, Tile

#: SMs of the GPU for which a slab is cut into blocks, an H200. Results do not depend on it.
SMS = 132
#: Planes of the short blocks at the end of a column, in a slab of at least ``THICK`` planes and in a thinner one.
REST, THICK = (4, 8), 384
#: Planes at most of a block of the interior that leaves room for messages.
SHORT = 32


@dataclass(frozen=True)
class Cut:
    """One rank's slab. ``own`` are its planes in the volume; its source holds them after ``reach`` planes of halo.

    With ``deep``, the halo is wide enough for all filters.
    """

    place: Place
    size: Size
    deep: bool = False

    @cached_property
    def own(self) -> range:
        return self.place.share(self.size["planes"])

    @property
    def held(self) -> int:
        return len(self.own)

    @property
    def radius(self) -> int:
        return self.size["k"] // 2

    @property
    def reach(self) -> int:
        return self.radius * (self.size["filters"] if self.deep else 1)

    @property
    def area(self) -> int:
        return self.size["n"] ** 2

    @property
    def low(self) -> int:
        """The first plane of the source that lies in the volume."""
        return max(0, self.reach - self.own.start)

    @property
    def high(self) -> int:
        """The plane of the source after the last that lies in the volume."""
        return min(self.held + 2 * self.reach, self.size["planes"] - self.own.start + self.reach)

    def inside(self, first: int, last: int) -> range:
        """The planes from ``first`` to ``last`` - 1 of the source, as far as the volume has them."""
        return range(max(first, self.low), max(self.low, first, min(last, self.high)))

    def part(self, array: str, volume: range) -> Part:
        """Planes of the volume in an array that is laid out like the source."""
        first = volume.start - self.own.start + self.reach
        return Part(array, first * self.area, len(volume) * self.area)


def _common(a: range, b: range) -> range:
    return range(max(a.start, b.start), max(max(a.start, b.start), min(a.stop, b.stop)))


def _halos(cut: Cut) -> list[range]:
    """The planes of the volume before and after a slab that its rank needs; none for a slab without planes."""
    if not cut.held:
        return []
    planes, own, reach = cut.size["planes"], cut.own, cut.reach
    return [range(max(0, own.start - reach), own.start), range(own.stop, min(planes, own.stop + reach))]


def messages(cut: Cut, array: str, own: str = "") -> tuple[Send | Receive, ...]:
    """The messages of a rank that give every slab its halo, to and from the ranks that own the planes.

    A slab may be thinner than the halo; its planes then go further than to the next rank. Two ranks' messages are in
    the order of the planes on both sides. ``own`` is the array that is sent from, if it is not ``array``; it has
    the halo of one filter.
    """
    found: list[Send | Receive] = []
    sent_from = Cut(cut.place, cut.size, cut.deep and not own)
    for other in places(cut.place.ranks):
        if other == cut.place:
            continue
        theirs = Cut(other, cut.size, cut.deep)
        for halo in _halos(theirs):
            if planes := _common(cut.own, halo):
                found.append(Send(sent_from.part(own or array, planes), other.rank))
        for halo in _halos(cut):
            if planes := _common(theirs.own, halo):
                found.append(Receive(cut.part(array, planes), other.rank))
    return tuple(found)


def halo_exchange(cut: Cut, array: str, filter_: int = 0) -> Exchange:
    """The exchange of a slab's halos, named by the filter that needs them."""
    return Exchange(f"halos of filter {filter_}", messages(cut, array))


def _column(size: Size, outputs: int, most: int | None = None) -> tuple[int, int, int, tuple[int, int, int]]:
    """Planes of a block, how many such blocks a column has, planes of the others, and the grid, as trimmed has them.

    ``most`` limits the planes of a block.
    """
    n, k = size["n"], size["k"]
    x, y, _ = Tile(k, down=TRIMMED_DOWN).grid(n, 1)
    blocks = max(1, SMS * (2 if k <= 9 else 1) // (x * y))
    short = REST[outputs >= THICK]
    rest = short if k <= 9 and outputs > 4 * blocks * k else 0
    planes = max(k, min(ceil_div(outputs - rest, blocks), most or outputs))
    whole = ceil_div(outputs - rest, planes)
    left = max(0, outputs - whole * planes)
    return planes, whole, short, (x, y, max(1, whole + ceil_div(left, short)))


def _kernel(
    cut: Cut, source: str, target: str, outputs: range, peers: bool = False, most: int | None = None
) -> list[Launch]:
    """The launch that computes these planes, numbered as in the source; none where there are none."""
    if not outputs or not cut.held:
        return []
    size = cut.size
    n, k = size["n"], size["k"]
    planes, whole, rest, grid = _column(size, len(outputs), most)
    tile, width = Tile(k, down=TRIMMED_DOWN), QUAD if n % QUAD == 0 else 1
    shared = tile.weights + 2 * tile.plane + tile.plane // width
    shift = cut.reach if target in ("target", "result") else 0
    numbers = (n, cut.low, cut.high, outputs.start, outputs.stop, shift, planes, whole, rest)
    args: tuple = ("weights", target, *(np.int32(number) for number in numbers))
    if not peers:
        return [Launch(f"conv3d_slab<{k}, {width}>", grid, (THREADS,), (source, *args), shared)]
    rank, last = cut.place.rank, cut.place.ranks - 1
    before = Cut(Place(rank - 1, last + 1), size).held if rank else 0
    neighbours = (Peer(source, max(0, rank - 1)), Peer(source, min(last, rank + 1)))
    where = (np.int32(cut.reach), np.int32(cut.held), np.int32(before))
    return [Launch(f"conv3d_slab_peers<{k}, {width}>", grid, (THREADS,), (source, *neighbours, *where, *args), shared)]


def _buffer(cut: Cut, filter_: int, source: str = "source", target: str = "target") -> tuple[str, str]:
    """The names of the array that a filter reads and of the array that it writes."""
    last = cut.size["filters"] - 1
    read = source if filter_ == 0 else f"buffer{(filter_ - 1) % 2}"
    return read, target if filter_ == last else f"buffer{filter_ % 2}"


def whole_slab(cut: Cut) -> range:
    """All outputs of a slab, numbered as in the source."""
    return range(cut.reach, cut.reach + cut.held)


def regions(cut: Cut) -> tuple[range, list[range]]:
    """The outputs that need no halo, and those that do: at the low end, at the high end."""
    whole = whole_slab(cut)
    start = whole.start + (cut.radius if cut.own.start > 0 else 0)
    stop = whole.stop - (cut.radius if cut.own.stop < cut.size["planes"] else 0)
    if start >= stop:
        return range(whole.start, whole.start), [whole]
    return range(start, stop), [range(whole.start, start), range(stop, whole.stop)]


def _filters(cut: Cut) -> Iterator[tuple[int, str, str]]:
    for filter_ in range(cut.size["filters"]):
        yield (filter_, *_buffer(cut, filter_))


def _computed(launches: list[Launch], stream: str = COMPUTE, label: str = "slab") -> list[Step]:
    return [Compute(launch, stream, label) for launch in launches]


def exchange(place: Place, size: Size) -> Plan:
    """Halos first, then the slab; once for each filter."""
    cut, steps = Cut(place, size), []
    for filter_, source, target in _filters(cut):
        steps += [After(MESSAGES, COMPUTE), halo_exchange(cut, source, filter_), After(COMPUTE, MESSAGES)]
        steps += _computed(_kernel(cut, source, target, whole_slab(cut)))
    return tuple(steps)


def gather(place: Place, size: Size) -> Plan:
    """All slabs travel to rank 0, which computes alone, and back. Rank 0 copies its own slab."""
    cut = Cut(place, size)
    out, back = Part("target", 0, cut.held * cut.area), Cut(Place(0, 1), size)
    mine = Part("source", cut.reach * cut.area, cut.held * cut.area)
    if place.rank:
        if not cut.held:
            return ()
        return (Exchange("gather", (Send(mine, 0),)), Exchange("scatter", (Receive(out, 0),)))
    others = [Cut(other, size) for other in places(place.ranks)[1:]]
    parts = [(other, other.own.start * cut.area, other.held * cut.area) for other in others if other.held]
    start = cut.own.start * cut.area
    steps: list[Step] = [
        Exchange("gather", tuple(Receive(Part("whole", at, count), one.place.rank) for one, at, count in parts)),
        Copy(Part("whole", start, mine.count), mine),
        After(COMPUTE, MESSAGES),
    ]
    whole = Cut(Place(0, 1), size)
    for filter_ in range(size["filters"]):
        source, target = _buffer(whole, filter_, "whole", "result")
        steps += _computed([_unpadded(launch, back) for launch in _kernel(back, source, target, whole_slab(back))])
    steps += [
        After(MESSAGES, COMPUTE),
        Exchange("scatter", tuple(Send(Part("result", at, count), one.place.rank) for one, at, count in parts)),
        Copy(out, Part("result", start, mine.count)),
    ]
    return tuple(steps)


def _unpadded(launch: Launch, cut: Cut) -> Launch:
    """The launch for arrays without planes for a halo: all planes are numbered from the first of the volume."""
    *first, n, low, high, start, stop, shift, planes, whole, rest = launch.args
    assert shift in (0, cut.reach)
    moved = tuple(np.int32(value - cut.reach) for value in (low, high, start, stop))
    args = (*first, n, *moved, np.int32(0), planes, whole, rest)
    return Launch(launch.kernel, launch.grid, launch.block, args, launch.shared_mem)


def overlap(place: Place, size: Size) -> Plan:
    """The interior while the halos travel; then the boundary."""
    cut, steps = Cut(place, size), []
    interior, boundary = regions(cut)
    for filter_, source, target in _filters(cut):
        steps += [After(MESSAGES, COMPUTE), halo_exchange(cut, source, filter_)]
        steps += _computed(_kernel(cut, source, target, interior), label="interior")
        steps += [After(COMPUTE, MESSAGES)]
        for region in boundary:
            steps += _computed(_kernel(cut, source, target, region), label="boundary")
    return tuple(steps)


def two_streams(place: Place, size: Size, most: int | None = None) -> Plan:
    """The plan overlap, with a boundary that does not wait for the interior: the stream of the messages computes it."""
    cut, steps = Cut(place, size), []
    interior, boundary = regions(cut)
    for filter_, source, target in _filters(cut):
        steps += [After(MESSAGES, COMPUTE), halo_exchange(cut, source, filter_)]
        steps += _computed(_kernel(cut, source, target, interior, most=most), label="interior")
        for region in boundary:
            steps += _computed(_kernel(cut, source, target, region), MESSAGES, "boundary")
        steps += [After(COMPUTE, MESSAGES)]
    return tuple(steps)


def short_blocks(place: Place, size: Size) -> Plan:
    """The plan two_streams with short blocks. NCCL's kernel takes some SMs for a while; without them, shorter blocks
    have a shorter tail."""
    return two_streams(place, size, SHORT)


def has_long_blocks(size: Size, ranks: int) -> bool:
    """Return whether the blocks of a slab have more planes than ``SHORT``."""
    return _column(size, size["planes"] // ranks)[0] > SHORT


def boundary_first(place: Place, size: Size) -> Plan:
    """The boundary of a filter, then its planes travel for the next filter while the interior is computed.

    One filter has no next: its plan is that of two_streams.
    """
    if size["filters"] == 1:
        return two_streams(place, size)
    cut = Cut(place, size)
    interior, boundary = regions(cut)
    steps: list[Step] = [halo_exchange(cut, "source")]
    for filter_, source, target in _filters(cut):
        steps += [After(COMPUTE, MESSAGES)]
        for region in boundary:
            steps += _computed(_kernel(cut, source, target, region), label="boundary")
        steps += [After(MESSAGES, COMPUTE)]
        if filter_ + 1 < size["filters"] and not _thin(cut):
            steps += [halo_exchange(cut, target, filter_ + 1)]
        steps += _computed(_kernel(cut, source, target, interior), label="interior")
        if filter_ + 1 < size["filters"] and _thin(cut):
            steps += [After(MESSAGES, COMPUTE), halo_exchange(cut, target, filter_ + 1)]
    return tuple(steps)


def _thin(cut: Cut) -> bool:
    """Return whether some rank's interior must travel too, because a slab is thinner than both halos that it gives."""
    return any(Cut(place, cut.size).held < 2 * cut.radius for place in places(cut.place.ranks))


def deep(place: Place, size: Size) -> Plan:
    """One exchange, of halos wide enough for all filters; the planes of the halo are then computed by both ranks."""
    cut = Cut(place, size, deep=True)
    own = Cut(place, size)
    count = cut.held * cut.area
    steps: list[Step] = [Exchange("halos of all filters", messages(cut, "deep", own="source"))]
    if cut.held:
        steps.append(Copy(Part("deep", cut.reach * cut.area, count), Part("source", own.reach * own.area, count)))
    steps.append(After(COMPUTE, MESSAGES))
    for filter_ in range(size["filters"]):
        source, target = _buffer(cut, filter_, "deep")
        left = (size["filters"] - 1 - filter_) * cut.radius
        outputs = cut.inside(cut.reach - left, cut.reach + cut.held + left)
        # Planes that no filter before has computed are not there to be read.
        known = (size["filters"] - filter_) * cut.radius
        valid = cut.inside(cut.reach - known, cut.reach + cut.held + known)
        steps += _computed([_limited(launch, valid) for launch in _kernel(cut, source, target, outputs)])
    return tuple(steps)


def _limited(launch: Launch, valid: range) -> Launch:
    """The launch that reads these planes of the source and no others."""
    *first, n, _, _, start, stop, shift, planes, whole, rest = launch.args
    args = (*first, n, np.int32(valid.start), np.int32(valid.stop), start, stop, shift, planes, whole, rest)
    return Launch(launch.kernel, launch.grid, launch.block, args, launch.shared_mem)


def copy_engine(place: Place, size: Size) -> Plan:
    """The plan two_streams, with halos that the copy engine fetches. Filters wait for each other."""
    cut, steps = Cut(place, size), []
    interior, boundary = regions(cut)
    for filter_, source, target in _filters(cut):
        steps += [After(MESSAGES, COMPUTE)]
        steps += [Barrier()] if filter_ else []
        for message in messages(cut, source):
            if isinstance(message, Receive):
                steps.append(fetched(cut, source, message))
        steps += _computed(_kernel(cut, source, target, interior), label="interior")
        for region in boundary:
            steps += _computed(_kernel(cut, source, target, region), MESSAGES, "boundary")
        steps += [After(COMPUTE, MESSAGES)]
    return (*steps, *_at_the_end(size))


def fetched(cut: Cut, array: str, message: Receive) -> Copy:
    """The copy of what a rank would receive, from where the other rank keeps it."""
    theirs = Cut(Place(message.source, cut.place.ranks), cut.size)
    plane = message.part.first // cut.area - cut.reach + cut.own.start
    there = theirs.part(array, range(plane, plane + message.part.count // cut.area))
    return Copy(message.part, there, MESSAGES, message.source)


def _at_the_end(size: Size) -> list[Step]:
    """With several filters buffers are written again, in this run or the next: until others have read them, wait."""
    return [Barrier(COMPUTE)] if size["filters"] > 1 else []


def peer_loads(place: Place, size: Size) -> Plan:
    """No message: the kernel reads the planes of its halo where they are. Filters wait for each other."""
    cut, steps = Cut(place, size), []
    for filter_, source, target in _filters(cut):
        steps += [Barrier(COMPUTE)] if filter_ else []
        steps += _computed(_kernel(cut, source, target, whole_slab(cut), peers=True))
    return (*steps, *_at_the_end(size))
