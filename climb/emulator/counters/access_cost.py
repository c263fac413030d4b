"""The cost of an access by a group of lanes: the sum of the cost model over its warps.

Most warps of an access share one pattern of addresses, relative to that of the first lane, so the cost of a pattern is
computed once and remembered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..simt.lanes import Lanes
from ..simt.warp_layout import INACTIVE, WARP
from .address_patterns import Part, pattern_of
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


class AccessCost(NamedTuple):
    """The cost of one access by a group: sums over its warps, its lowest and highest address, and whether any address
    is misaligned.
    """

    achieved: int
    ideal: int
    lowest: int
    highest: int
    misaligned: bool


_known: dict[tuple, tuple[int, int]] = {}
#: The cost of single lanes' accesses: by measure, width, place in the sector, and place in the warp.
_single: dict[tuple[Measure, int, int, int], AccessCost] = {}
#: Odd multipliers that hash the addresses of a warp: powers of Knuth's, modulo 2^64.
_MULTIPLIERS = np.full(WARP, 6364136223846793005, np.int64).cumprod()
WIDEST = 16  # bytes of an access


def access_cost(lanes: Lanes, address: np.ndarray, offset: int, width: int, measure: Measure) -> AccessCost:
    """Return the cost of an access of `width` bytes by `lanes` at `address + offset` (int64, broadcasts to the lanes'
    shape).

    `measure` is one of the functions of the cost model that count rows of 32 lanes.
    """
    if lanes.shape == (1, 1) and address.size == 1:
        return _of_one_lane(lanes, address, offset, width, measure)
    return _of_lanes(lanes, address, offset, width, measure)


def _of_one_lane(lanes: Lanes, address: np.ndarray, offset: int, width: int, measure: Measure) -> AccessCost:
    """Like `access_cost`, for one lane. It cannot collide with another, so only its place in a sector decides the cost.
    Single lanes use bulk copies and mbarriers, and finding a pattern would take longer than computing the cost."""
    at = address.item() + offset
    key = measure, width, at & SECTOR - 1, lanes.thread.item() % WARP
    found = _single.get(key)
    if found is None:
        found = _single[key] = _of_lanes(lanes, address, offset, width, measure)
    return AccessCost(found.achieved, found.ideal, at, at, found.misaligned)


def _of_lanes(lanes: Lanes, address: np.ndarray, offset: int, width: int, measure: Measure) -> AccessCost:
    pattern, moved = pattern_of(lanes, address)
    offset += moved
    if measure is atomic_sectors:
        modulus = PERIOD
    elif measure is sectors:
        modulus = SECTOR
    else:
        modulus = 4 if measure in _BY_WORDS and width < 4 else 1
    low = offset & max(modulus, WIDEST) - 1
    found = pattern.costs.get((measure, width, low))
    if found is None:
        counts = [_cost(part, pattern.repeat, low, width, measure, modulus) for part in pattern.parts]
        achieved, ideal = zip(*counts, strict=True)
        found = pattern.costs[measure, width, low] = sum(achieved), sum(ideal), pattern.misaligned(low, width)
    return AccessCost(found[0], found[1], pattern.lowest + offset, pattern.highest + offset, found[2])


def whole_pattern(lanes: Lanes, address: np.ndarray) -> tuple[Part, int] | None:
    """Return the pattern that all warps share, and what to add to its addresses; None if some warps are partial or
    differ."""
    pattern, moved = pattern_of(lanes, address)
    part = pattern.whole(lanes)
    return None if part is None else (part, moved)


def runs(lanes: Lanes, address: np.ndarray, width: int) -> np.ndarray | None:
    """Return the address at which each warp starts, without the offset of the site, if every lane accesses the `width`
    bytes right behind those of the lane before: (warps,); None if not."""
    found = whole_pattern(lanes, address)
    if found is None or not found[0].consecutive(width):
        return None
    return found[0].first + found[1]


def _cost(part: Part, repeat: int, offset: int, width: int, measure: Measure, modulus: int) -> tuple[int, int]:
    if part.relative.shape[0] == 1:
        return _shared_pattern(measure, part, offset, modulus, width, repeat)
    counts = _distinct_patterns(measure, part.relative, part.first + offset & (modulus - 1), width)
    return int(counts[0]) * repeat, int(counts[1]) * repeat


def _distinct_patterns(measure: Measure, relative: np.ndarray, residue: np.ndarray, width: int) -> tuple[int, int]:
    """Sum the cost over rows with different patterns; if distinct patterns are few, each is counted once."""
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


def remembered(measure: Measure, row: np.ndarray, residue: int, width: int) -> tuple[int, int]:
    """Return the cost of a warp, computed once: `row` and `residue` are a row of the arguments of `measure`."""
    key = (measure, width, residue, row.tobytes())
    found = _known.get(key)
    if found is None:
        if len(_known) > _LIMIT:
            _known.clear()
        counts = measure(row.reshape(1, WARP), np.array([residue]), width)
        found = _known[key] = (int(counts[0, 0]), int(counts[0, 1]))
    return found


def _banks_collide(row: np.ndarray) -> bool:
    """Return whether lanes of a warp need different words of one bank. Only then does it matter for atomics which cache
    lines share a set."""
    word = row[row != INACTIVE] >> 2
    return bool((word != word[0]).any()) and np.unique(word & BANKS - 1).size < word.size


def _shared_pattern(
    measure: Measure, part: Part, offset: int, modulus: int, width: int, repeat: int
) -> tuple[int, int]:
    """Sum the cost over warps that share a pattern, at their addresses plus `offset`."""
    row = part.relative[0]
    if modulus == PERIOD:
        if not _banks_collide(row):
            modulus = SECTOR
        else:
            each, number = np.unique(part.first + offset & (modulus - 1), return_counts=True)
            counts = measure(np.broadcast_to(row, (each.size, WARP)), each, width)
            return tuple((counts * number.reshape(-1, 1)).sum(axis=0) * repeat)
    achieved = ideal = 0
    for low, number in part.residues(modulus):
        each = remembered(measure, row, low + offset & modulus - 1, width)
        achieved += each[0] * number
        ideal += each[1] * number
    return achieved * repeat, ideal * repeat
