"""What an access by a group of lanes costs: the sum of the cost model over its warps.

Most warps of an access share one pattern of addresses, relative to that of the first lane, so the cost of a pattern is
computed once and remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..simt.lanes import Lanes
from ..simt.warp_layout import INACTIVE, WARP
from .cost_model import (
    BANKS,
    PERIOD,
    SECTOR,
    Measure,
    atomic_sectors,
    atomic_wavefronts,
    load_wavefronts,
    local_sectors,
    sectors,
    swap_wavefronts,
    wavefronts,
)

_BY_WORDS = (wavefronts, load_wavefronts, atomic_wavefronts, swap_wavefronts, local_sectors)
_LIMIT = 1 << 16
MOST_PARTS = 4
FEWEST = 0.125  # the share of the warps left that must have one pattern, for it to become a part


class AccessCost(NamedTuple):
    """The cost of one access by a group: sums over its warps, its lowest and highest address, and whether any address
    is misaligned.
    """

    achieved: int
    ideal: int
    lowest: int
    highest: int
    misaligned: bool


class _Part(NamedTuple):
    """The addresses of some warps, without the offset of the access's site.

    `first` (rows,): those of the first lanes of the warps. `relative` (rows, 32): what lanes add to them, INACTIVE for
    absent lanes; (1, 32) if it is the same for all warps; `near`: the same with 0 for absent lanes.
    """

    first: np.ndarray
    relative: np.ndarray
    near: np.ndarray


class _Addresses(NamedTuple):
    """The addresses of an access: parts of its warps, of which all but the last have one pattern each. `repeat`: the
    warps that each row stands for."""

    address: np.ndarray
    lanes: Lanes
    parts: tuple[_Part, ...]
    repeat: int


_known: dict[tuple, tuple[int, int]] = {}
#: The last two: unrolled loops access the same addresses several times, with different offsets.
_last: tuple[_Addresses, ...] = ()
#: Odd multipliers that hash the addresses of a warp: powers of Knuth's, modulo 2^64.
_MULTIPLIERS = np.full(WARP, 6364136223846793005, np.int64).cumprod()
_ZEROS = np.zeros((1, WARP), np.int64)
_CONSECUTIVE = np.arange(WARP)


def access_cost(lanes: Lanes, address: np.ndarray, offset: int, width: int, measure: Measure) -> AccessCost:
    """The cost of an access of `width` bytes by `lanes` at `address + offset` (int64, broadcasts to the lanes' shape).

    `measure` is one of the functions of the cost model that count rows of 32 lanes.
    """
    global _last
    if measure is atomic_sectors:
        modulus = PERIOD
    elif measure is sectors:
        modulus = SECTOR
    else:
        modulus = 4 if measure in _BY_WORDS and width < 4 else 1
    last = _last
    found = next((each for each in last if each.address is address and each.lanes is lanes), None)
    if found is None:
        found = _addresses(lanes, address)
    if not last or found is not last[0]:
        _last = (found, *last[:1])
    costs = [_cost(part, found.repeat, offset, width, measure, modulus) for part in found.parts]
    return costs[0] if len(costs) == 1 else _sum(costs)


def runs(lanes: Lanes, address: np.ndarray, width: int) -> np.ndarray | None:
    """Where each warp starts, without the offset of the site, if all lanes of each access `width` bytes right behind
    the lane before: (warps,); None if not. The cost of the access has just been computed."""
    found = _last[0]
    if found.address is not address or found.lanes is not lanes or len(found.parts) > 1 or found.repeat > 1:
        return None
    part = found.parts[0]
    consecutive = part.relative.shape[0] == 1 and lanes.layout.kind == "whole" and part.first.size * WARP == lanes.count
    return part.first if consecutive and (part.relative[0] == _CONSECUTIVE * width).all() else None


def _sum(costs: list[AccessCost]) -> AccessCost:
    achieved, ideal, lowest, highest, misaligned = zip(*costs, strict=True)
    return AccessCost(sum(achieved), sum(ideal), min(lowest), max(highest), any(misaligned))


def _cost(part: _Part, repeat: int, offset: int, width: int, measure: Measure, modulus: int) -> AccessCost:
    low = width - 1
    first, near = part.first + offset, part.near
    if near.shape[0] == 1:
        achieved, ideal = _shared_pattern(measure, part.relative[0], first, modulus, width, repeat)
        lowest, highest = int(first.min()) + int(near.min()), int(first.max()) + int(near.max())
        misaligned = bool((first & low).any() or (near & low).any())
        return AccessCost(achieved, ideal, lowest, highest, misaligned)
    counts = _distinct_patterns(measure, part.relative, first & (modulus - 1), width)
    absolute = near + first.reshape(-1, 1)
    return AccessCost(
        int(counts[0]) * repeat,
        int(counts[1]) * repeat,
        int(absolute.min()),
        int(absolute.max()),
        bool(low and (np.bitwise_or.reduce(absolute, axis=None) & low)),
    )


def _addresses(lanes: Lanes, address: np.ndarray) -> _Addresses:
    layout = lanes.layout
    if address.shape[1] == 1 and layout.kind == "whole":
        first = address[:, 0]
        return _Addresses(address, lanes, (_Part(first, _ZEROS, _ZEROS),), layout.warps // first.size)
    given = address
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
    return _Addresses(given, lanes, tuple(_parts(first, relative, mask is not None)), repeat)


def _parts(first: np.ndarray, relative: np.ndarray, partial: bool) -> Iterator[_Part]:
    """Divide warps by their patterns, as long as many warps have one in common. `partial`: lanes may be absent."""
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
        yield _part(first[same], row, partial)
        others = ~same
        first, relative = first[others], relative[others]
    yield _part(first, relative, partial)


def _part(first: np.ndarray, relative: np.ndarray, partial: bool) -> _Part:
    return _Part(first, relative, np.where(relative == INACTIVE, 0, relative) if partial else relative)


def _distinct_patterns(measure: Measure, relative: np.ndarray, residue: np.ndarray, width: int) -> tuple[int, int]:
    """The cost summed over rows with different patterns; if distinct patterns are few, each is counted once."""
    rows = relative.shape[0]
    if rows > 8:
        key = relative @ _MULTIPLIERS + residue
        _, index, inverse, number = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        few = index.size * 4 <= rows
        # Hashes can collide, so compare each row with its representative.
        if few and (relative == relative[index][inverse]).all() and (residue == residue[index][inverse]).all():
            counts = measure(relative[index], residue[index], width)
            return tuple((counts * number.reshape(-1, 1)).sum(axis=0))
    return tuple(measure(relative, residue, width).sum(axis=0))


def _remembered(measure: Measure, row: np.ndarray, residue: int, width: int) -> tuple[int, int]:
    key = (measure, width, residue, row.tobytes())
    found = _known.get(key)
    if found is None:
        if len(_known) > _LIMIT:
            _known.clear()
        counts = measure(row.reshape(1, WARP), np.array([residue]), width)
        found = _known[key] = (int(counts[0, 0]), int(counts[0, 1]))
    return found


def _banks_collide(row: np.ndarray) -> bool:
    """Whether lanes of a warp want different words of one bank. Only then does it matter for atomics which cache lines
    share a set."""
    word = row[row != INACTIVE] >> 2
    return bool((word != word[0]).any()) and np.unique(word & BANKS - 1).size < word.size


def _shared_pattern(
    measure: Measure, row: np.ndarray, first: np.ndarray, modulus: int, width: int, repeat: int
) -> tuple[int, int]:
    """The cost summed over warps that share the pattern `row`; `first` holds the address of each warp's first lane."""
    residue = first & (modulus - 1)
    if modulus == PERIOD:
        if not _banks_collide(row):
            modulus, residue = SECTOR, residue & SECTOR - 1
        else:
            each, number = np.unique(residue, return_counts=True)
            counts = measure(np.broadcast_to(row, (each.size, WARP)), each, width)
            return tuple((counts * number.reshape(-1, 1)).sum(axis=0) * repeat)
    counts = np.bincount(residue) if modulus > 1 else (first.size,)
    achieved = ideal = 0
    for low, number in enumerate(counts):
        if number:
            each = _remembered(measure, row, low, width)
            achieved += each[0] * int(number)
            ideal += each[1] * int(number)
    return achieved * repeat, ideal * repeat
