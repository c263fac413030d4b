"""The addresses of an access as patterns of warps, with results remembered from earlier accesses.

Most warps of an access share one pattern: the distance of each lane's address from that of its warp's first lane.
Unrolled loops access the same addresses with other offsets, and other loops move a pointer, or an index, by the same
number for all lanes. Then the pattern is that of the earlier access, moved: `moved_by` adds the number and remembers
the origin of the sum; `scaled` does so for an index that becomes an offset in bytes. Then only the sum is computed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np

from ..simt.lanes import Lanes
from ..simt.warp_layout import INACTIVE, WARP

MOST_PARTS = 4
SHARED = 4  # a part has few first addresses if at least this many warps share each, on average
FEWEST = 0.125  # the share of the remaining warps that must have one pattern for it to become a part
_MOST = 256  # the number of arrays of addresses that are remembered
_SIGN = 1 << 63
_INDICES = 1 << 32
_LIMITS = {"i": (-(1 << 31), (1 << 31) - 1), "u": (0, _INDICES - 1)}
_WIDE = {"i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
_ZEROS = np.zeros((1, WARP), np.int64)
_CONSECUTIVE = np.arange(WARP)


class Part:
    """The addresses of some warps, without the offset of the access's site.

    `first` (rows,): the addresses of the first lanes of the warps. `relative` (rows, 32): the lanes' distances from
    them, INACTIVE for absent lanes; (1, 32) if it is the same for all warps; `near`: the same with 0 for absent lanes.
    `masked`: for `masked_cost`.
    """

    __slots__ = ("_few", "_low_bits", "_residues", "_step", "_uses", "first", "masked", "near", "relative")

    def __init__(self, first: np.ndarray, relative: np.ndarray, near: np.ndarray) -> None:
        self.first, self.relative, self.near = first, relative, near
        self._residues: dict[int, list[tuple[int, int]]] = {}
        self.masked: dict[tuple[int, int, int], tuple[int, int]] = {}
        self._low_bits: tuple[int, int] | None = None
        self._step: int | None = None
        self._uses = 0
        self._few: tuple[np.ndarray, np.ndarray] | None = None

    def few(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The different elements of `first`, and the place of each warp's among them; None unless many warps share
        them. The first use also returns None, because finding out takes as long as several accesses."""
        self._uses += 1
        if self._uses == 2:
            first, place = np.unique(self.first, return_inverse=True)
            if SHARED * first.size <= place.size:
                self._few = first, place
        return self._few

    def consecutive(self, width: int) -> bool:
        """Return whether all warps share a pattern in which each lane accesses the `width` bytes right behind the lane
        before."""
        if self._step is None:
            step = int(self.relative[0, 1] - self.relative[0, 0])
            self._step = step if self.relative.shape[0] == 1 and (self.relative[0] == _CONSECUTIVE * step).all() else 0
        return self._step == width

    def residues(self, modulus: int) -> list[tuple[int, int]]:
        """The residues of `first`, and how many warps have each."""
        found = self._residues.get(modulus)
        if found is None:
            counts = np.bincount(self.first & (modulus - 1)) if modulus > 1 else np.array([self.first.size])
            there = np.flatnonzero(counts)
            found = self._residues[modulus] = list(zip(there.tolist(), counts[there].tolist(), strict=True))
        return found

    def span(self) -> tuple[int, int]:
        """Return the lowest and the highest address."""
        if self.near.shape[0] == 1:
            first, near = self.first, self.near
            return int(first.min()) + int(near.min()), int(first.max()) + int(near.max())
        absolute = self.near + self.first.reshape(-1, 1)
        return int(absolute.min()), int(absolute.max())

    def misaligned(self, offset: int, width: int) -> bool:
        """Return whether an address, plus `offset`, is not a multiple of `width`, a power of 2 up to 16."""
        if self._low_bits is None:
            self._low_bits = self._find_low_bits()
        base, differ = self._low_bits
        return bool((base + offset | differ) & width - 1)

    def _find_low_bits(self) -> tuple[int, int]:
        """Return the low four bits of one address, and those in which any address differs from it."""
        if self.near.shape[0] == 1:
            base = int(self.first[0]) & 15
            differ = int(np.bitwise_or.reduce(self.first ^ base)) | int(np.bitwise_or.reduce(self.near[0]))
        else:
            base = int(self.first[0]) + int(self.near[0, 0]) & 15
            differ = int(np.bitwise_or.reduce((self.near + self.first.reshape(-1, 1)) ^ base, axis=None))
        return base, differ & 15


class Pattern:
    """An access split into parts; every part but the last has one address pattern. `repeat`: the warps that each row
    stands for. `lowest` and `highest`: over all addresses. `costs`: by measure, width and low bits of the offset, the
    cost of such an access, and whether it is misaligned."""

    __slots__ = ("costs", "highest", "lowest", "parts", "repeat")

    def __init__(self, parts: tuple[Part, ...], repeat: int) -> None:
        self.parts, self.repeat = parts, repeat
        lowest, highest = zip(*(part.span() for part in parts), strict=True)
        self.lowest, self.highest = min(lowest), max(highest)
        self.costs: dict[tuple, tuple[int, int, bool]] = {}

    def misaligned(self, offset: int, width: int) -> bool:
        """Return whether an address, plus `offset`, is not a multiple of `width`, a power of 2 up to 16."""
        return width > 1 and any(part.misaligned(offset, width) for part in self.parts)

    def whole(self, lanes: Lanes) -> Part | None:
        """Return the only part, if all warps are full, share one pattern and have a row each; None if not."""
        part = self.parts[0]
        if len(self.parts) > 1 or self.repeat > 1 or part.relative.shape[0] > 1 or lanes.layout.kind != "whole":
            return None
        return part if part.first.size * WARP == lanes.count else None


class _Origin:
    """The shared state of arrays that differ from each other by one number for all lanes: the pattern of the addresses
    that are `shift` less than the number `moved` of an array; None until an access has needed it.

    `scaled`: by factor and kind, the origin of 32-bit indices that are multiplied. Of such an origin, `start` is the
    number `moved` of the first indices, and `bounds` are their lowest and highest, None until others follow.
    """

    __slots__ = ("bounds", "lanes", "pattern", "scaled", "shift", "start")

    def __init__(self, start: int = 0) -> None:
        self.lanes: Lanes | None = None
        self.pattern: Pattern | None = None
        self.shift = 0
        self.start = start
        self.bounds: tuple[int, int] | None = None
        self.scaled: dict[tuple[int, str], _Origin] = {}


#: By the id of an array: the array, its origin, and the number by which it has been moved. Arrays are not kept alive.
_arrays: dict[int, tuple[weakref.ref, _Origin, int]] = {}


def _entry(array: np.ndarray) -> tuple[weakref.ref, _Origin, int]:
    base = array.base  # the same numbers, signed or not, are views of one array
    if base is not None and base.shape == array.shape and base.itemsize == array.itemsize:
        array = base if base.strides == array.strides else array
    found = _arrays.get(id(array))
    if found is None or found[0]() is not array:
        found = _remember(array, _Origin(), 0)
    return found


def _remember(array: np.ndarray, origin: _Origin, moved: int) -> tuple[weakref.ref, _Origin, int]:
    if len(_arrays) >= _MOST:
        for key, (reference, _, _) in list(_arrays.items()):
            if reference() is None:
                _arrays.pop(key, None)
        if len(_arrays) >= _MOST:
            _arrays.clear()
    found = _arrays[id(array)] = weakref.ref(array), origin, moved
    return found


def forget() -> None:
    """Forget all addresses."""
    _arrays.clear()


def moved_by(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a + b, integers, one of which may be a single number. Later accesses at the sum reuse the pattern of the
    array."""
    out = a + b
    if a.size == 1:
        a, b = b, a
    if b.size == 1 and a.size > 1:
        _, origin, moved = _entry(a)
        _remember(out, origin, moved + b.item())
    return out


def scaled(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the 64-bit product of 32-bit integers of one sign, one of which may be a single number; see `moved_by`."""
    out = np.multiply(a, b, dtype=_WIDE[a.dtype.kind])
    if a.size == 1:
        a, b = b, a
    if b.size == 1 and a.size > 1:
        _, origin, moved = _entry(a)
        factor = b.item()
        key = factor, a.dtype.kind
        found = origin.scaled.get(key)
        if found is None:
            found = origin.scaled[key] = _Origin(moved)
        by = 0 if moved == found.start else _moved_since(found, a, moved)
        if by is not None:
            _remember(out, found, factor * by)
    return out


def _moved_since(origin: _Origin, index: np.ndarray, moved: int) -> int | None:
    """Return the difference of all indices from the first ones scaled; None if only some have wrapped since."""
    least, most = _LIMITS[index.dtype.kind]
    by = moved - origin.start
    if origin.bounds is None:
        low, high = int(index.min()), int(index.max())
        start = (low - by - least) % _INDICES + least
        origin.bounds = start, start + high - low
    low, high = origin.bounds
    by = (low + by - least) % _INDICES + least - low
    return by if max(high, high + by) <= most else None


def _signed(value: int) -> int:
    """Return a number modulo 2^64, as a signed one."""
    return (value + _SIGN & 2 * _SIGN - 1) - _SIGN


def pattern_of(lanes: Lanes, address: np.ndarray) -> tuple[Pattern, int]:
    """Return the pattern of addresses (int64, broadcasts to the lanes' shape), and what to add to it."""
    _, origin, moved = _entry(address)
    if origin.lanes is not lanes:
        origin.pattern, origin.lanes, origin.shift = _pattern(lanes, address), lanes, moved
    pattern, by = origin.pattern, _signed(moved - origin.shift)
    if not -_SIGN <= pattern.lowest + by <= pattern.highest + by < _SIGN:  # the sums have wrapped
        return _pattern(lanes, address), 0
    return pattern, by


def _pattern(lanes: Lanes, address: np.ndarray) -> Pattern:
    layout = lanes.layout
    if address.shape[1] == 1 and layout.kind == "whole":
        first = address[:, 0]
        return Pattern((Part(first, _ZEROS, _ZEROS),), layout.warps // first.size)
    if layout.kind == "ragged" and address.shape[1] == 1:
        address = np.broadcast_to(address, lanes.shape)
    matrix, repeat = layout.matrix(address, lanes.shape)
    rows = matrix.shape[0]
    mask = layout.full_mask(rows)
    if mask is None:
        first = matrix[:, 0]
        relative = matrix - matrix[:, :1]
    else:
        first = matrix[np.arange(rows), layout.first_lane(rows)]
        relative = np.where(mask, matrix - first.reshape(-1, 1), INACTIVE)
    return Pattern(tuple(_parts(np.ascontiguousarray(first), relative, mask is not None)), repeat)


def _parts(first: np.ndarray, relative: np.ndarray, partial: bool) -> Iterator[Part]:
    """Divide warps by their patterns, as long as many warps share one. `partial`: lanes may be absent."""
    for _ in range(MOST_PARTS - 1):
        middle = min(len(relative) // 2 | 1, len(relative) - 1)  # warps of even numbers are more often at an edge
        row = relative[middle : middle + 1]
        equal = relative == row
        if equal.all():
            relative = row
            break
        same = equal.all(axis=1)
        if np.count_nonzero(same) < FEWEST * same.size:
            break
        yield _part(first[same], row.copy(), partial)
        others = ~same
        first, relative = first[others], relative[others]
    yield _part(first, relative.copy() if relative.shape[0] == 1 else relative, partial)


def _part(first: np.ndarray, relative: np.ndarray, partial: bool) -> Part:
    return Part(first, relative, np.where(relative == INACTIVE, 0, relative) if partial else relative)


RUNTIME = {"moved_by": moved_by, "scaled": scaled}
