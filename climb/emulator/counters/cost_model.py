"""The cost model: how many sectors of global memory, or wavefronts of shared memory, the addresses of a warp cost.

Sectors: a request touches distinct aligned 32-byte sectors. It needs at least ceil(bytes / 32) sectors to carry its
distinct bytes. Wavefronts: shared memory has 32 banks of 4 bytes. Accesses of up to 4 bytes serve 32 lanes together,
8 bytes a half-warp, 16 bytes a quarter-warp (loads serve twice as many lanes if neighbours read the same address, see
`load_wavefronts`). Each of these parts costs as many wavefronts as the busiest bank has distinct 4-byte words to
deliver; equal words are broadcast. Shared-memory atomics get no broadcast (`atomic_wavefronts`).

Both costs depend only on the addresses relative to the warp's first lane and on a few low bits of that lane's address.
Most warps of an access share one such pattern, so the cost of a pattern is computed once and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..simt.lanes import INACTIVE, WARP, Lanes

SECTOR = 32
LINE = 128
BANKS = 32
_LIMIT = 1 << 16

Measure = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


def sectors(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """For each row of 32 lanes, the distinct sectors and the fewest that could hold the distinct bytes: (rows, 2).

    `relative` (rows, 32): addresses relative to the first active lane, INACTIVE for absent lanes. `residue` (rows,):
    the first active lane's address modulo 32. `width`: bytes per lane.
    """
    relative = np.where(relative == INACTIVE, 0, relative)
    touched = np.sort((relative + residue.reshape(-1, 1)) >> 5, axis=1)
    wanted = np.sort(relative, axis=1)
    distinct = 1 + np.count_nonzero(np.diff(touched, axis=1), axis=1)
    nbytes = width * (1 + np.count_nonzero(np.diff(wanted, axis=1), axis=1))
    return np.stack([distinct, -(-nbytes // SECTOR)], axis=1)


def copy_sectors(lines: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The sectors that an H200 counts for 16-byte copies that bypass the L1 cache: (rows,).

    `lines` (rows, 32): the cache lines that the lanes read from, INACTIVE for absent lanes; `target` (rows, 32): the
    shared addresses that they write to. Each sector of shared memory counts once per cache line that it is filled from.
    """
    wanted = np.where(lines == INACTIVE, INACTIVE, (lines << 20) + (target >> 5))
    wanted.sort(axis=1)
    fresh = wanted != INACTIVE
    fresh[:, 1:] &= wanted[:, 1:] != wanted[:, :-1]
    return fresh.sum(axis=1)


def distinct(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """The number of distinct addresses in each row, in both columns of (rows, 2); arguments as for `sectors`."""
    wanted = np.sort(np.where(relative == INACTIVE, 0, relative), axis=1)
    number = 1 + np.count_nonzero(np.diff(wanted, axis=1), axis=1)
    return np.stack([number, number], axis=1)


#: Each bit of a cache line's set is the parity of these bits of the line's number, which are bits 7 to 17 of its
#: address. Measured on an H200; the influence of higher bits is unknown.
SET_BITS = (0b01010110101, 0b10111011010)
#: Bytes after which the sets are assumed to repeat.
PERIOD = LINE << 11


def _sets(line: np.ndarray) -> np.ndarray:
    """The set of each line, 0 to 3."""
    out = np.zeros(line.shape, np.int64)
    for number, bits in enumerate(SET_BITS):
        each = line & bits
        for shift in (8, 4, 2, 1):
            each = each ^ each >> shift
        out |= (each & 1) << number
    return out


def atomic_sectors(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """As `sectors`, for atomic operations on global memory; residue modulo `PERIOD`.

    A sector counts once per turn in which it is served (`atomic_turns`), hence at least as often as its most requested
    address occurs.
    """
    out = sectors(relative, residue & SECTOR - 1, width)
    out[:, 0] = sum(_population_count(touched) for touched, _, _ in atomic_turns(relative, residue))
    return out


def atomic_turns(relative: np.ndarray, residue: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The turns in which global memory serves the atomics of each row of 32 lanes; arguments as for `atomic_sectors`.

    Cache lines fall into four sets. In each turn, each bank of a set offers its first remaining lane, and the set
    serves those offers that hit the same line as the first remaining lane of the set. An H200 agrees in sectors, turns
    and lines per turn on every table of random addresses.

    Yields for each turn `touched` (rows,), a bit for each sector that is served; `served` (rows, 32) bool; and `order`
    (rows, 32), the same in every turn: `served[:, n]` is about lane `order[:, n]`.
    """
    lanes = np.arange(WARP)
    word = (relative + residue.reshape(-1, 1)) >> 2
    line = word // (LINE // 4)
    sets = _sets(line)
    queue = np.where(relative == INACTIVE, 1 << 20, (sets * BANKS + (word & BANKS - 1)) * WARP + lanes)
    order = np.argsort(queue, axis=1)
    queue, line, sets, place = (np.take_along_axis(each, order, axis=1) for each in (queue, line, sets, word >> 3 & 3))
    begins = np.ones(queue.shape, np.bool_)
    begins[:, 1:] = queue[:, 1:] // WARP != queue[:, :-1] // WARP
    left = queue < 1 << 20
    slot = np.int64(1) << (sets * (LINE // SECTOR) + place)
    mine = [sets == number for number in range(4)]
    rows = np.arange(queue.shape[0])
    while left.any():
        so_far = left.cumsum(axis=1)
        before = np.maximum.accumulate(np.where(begins, so_far - left, 0), axis=1)
        served = left & (so_far - before == 1)
        for number in range(4):
            # The first remaining lane of the set decides which line is served.
            first = np.where(left & mine[number], order, WARP).argmin(axis=1)
            served &= ~mine[number] | (line == line[rows, first].reshape(-1, 1))
        yield np.bitwise_or.reduce(np.where(served, slot, 0), axis=1), served, order
        left &= ~served


def _population_count(value: np.ndarray) -> np.ndarray:
    """The number of bits set among the lowest 16."""
    out = np.zeros(value.shape, np.int64)
    for bit in range(16):
        out += value >> bit & 1
    return out


def local_sectors(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """Sectors of local memory, and the fewest possible: (rows, 2); arguments as for `sectors`, residue modulo 4.

    Addresses are relative to each lane's own memory. Local memory is interleaved: word w of lanes 0 to 31 occupies 128
    consecutive bytes, so eight lanes that access the same word index share a sector.
    """
    active = relative != INACTIVE
    word = np.where(active, (relative + residue.reshape(-1, 1)) >> 2, INACTIVE)
    eights = np.sort(word.reshape(-1, WARP // 8, 8), axis=2)
    fresh = eights != INACTIVE
    fresh[:, :, 1:] &= eights[:, :, 1:] != eights[:, :, :-1]
    words = max(width // 4, 1)
    achieved = fresh.sum(axis=(1, 2)) * words
    ideal = (eights[:, :, -1] != INACTIVE).sum(axis=1) * words
    return np.stack([achieved, ideal], axis=1)


def wavefronts(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """Wavefronts of a store, and the fewest possible, for each row of 32 lanes: (rows, 2).

    Arguments as for `sectors`, residue modulo 4.
    """
    return _wavefronts(relative, residue, width, store_parts(width))


def store_parts(width: int) -> int:
    """The number of parts in which a warp is served: 32 banks of 4 bytes deliver 128 bytes at a time."""
    return {8: 2, 16: 4}.get(width, 1)


def load_wavefronts(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """As `wavefronts`, for loads.

    If every lane reads the same address as its neighbour (the lane whose number differs in bit 0; or, for all lanes, in
    bit 1), twice as many lanes are served together. Source: an answer in NVIDIA's developer forum, "Unexpected shared
    memory bank conflict" (thread 77228), about 16 bytes on compute capability 7; the rungs of matmul on an H200 agree.
    Accesses of 8 bytes, and absent partners, have not been measured.
    """
    if width < 8:
        return _wavefronts(relative, residue, width, 1)
    parts = load_parts(relative, width)
    out = np.zeros((relative.shape[0], 2), np.int64)
    for number in np.unique(parts):
        mine = parts == number
        out[mine] = _wavefronts(relative[mine], residue[mine], width, int(number))
    return out


def load_parts(relative: np.ndarray, width: int) -> np.ndarray:
    """The number of parts in which the loads of each row are served: (rows,). See `load_wavefronts`."""
    parts = np.full(relative.shape[0], store_parts(width))
    if width < 8:
        return parts
    lane = np.arange(WARP)
    active = relative != INACTIVE
    for bit in (1, 2):
        other = lane ^ bit
        same = (relative == relative[:, other]) | ~active | ~active[:, other]
        parts[same.all(axis=1)] = store_parts(width) // 2
    return parts


def atomic_wavefronts(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """As `wavefronts`, for atomics: each part costs as many wavefronts as the busiest bank has lanes to serve, even if
    they share an address. All patterns of 32-bit operations agree with an H200."""
    parts = atomic_parts(width)
    rows, lanes = relative.shape[0], WARP // parts
    out = np.zeros((rows, 2), np.int64)
    for part in range(parts):
        address = relative[:, part * lanes : (part + 1) * lanes]
        active = address != INACTIVE
        row, column = np.nonzero(active)
        word = (address[row, column] + residue[row]) >> 2
        number = np.zeros(rows * BANKS, np.int64)
        for each in range(max(width // 4, 1)):
            number += np.bincount(row * BANKS + (word + each & (BANKS - 1)), minlength=rows * BANKS)
        out[:, 0] += number.reshape(rows, BANKS).max(axis=1)
        out[:, 1] += active.any(axis=1)
    return out


def atomic_parts(width: int) -> int:
    """The number of parts in which the atomics of a warp are served."""
    return {8: 2}.get(width, 1)


def swap_wavefronts(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """As `atomic_wavefronts`, for compare-and-swap: twice as many, as on an H200.

    ptxas turns an atomic that shared memory lacks, such as a float sum, into a loop of compare-and-swap; this is the
    cost of one iteration.
    """
    return 2 * atomic_wavefronts(relative, residue, width)


def _wavefronts(relative: np.ndarray, residue: np.ndarray, width: int, parts: int) -> np.ndarray:
    """Wavefronts, and the fewest possible, of a warp that is served in `parts` parts."""
    rows = relative.shape[0]
    words = max(width // 4, 1)
    lanes = WARP // parts
    out = np.zeros((rows, 2), np.int64)
    for part in range(parts):
        address = relative[:, part * lanes : (part + 1) * lanes]
        active = address != INACTIVE
        word = (address + residue.reshape(-1, 1)) >> 2
        word = np.where(active, word, INACTIVE)
        if words > 1:
            word = np.where(active[:, :, None], word[:, :, None] + np.arange(words), INACTIVE).reshape(rows, -1)
        word = np.sort(word, axis=1)
        fresh = word != INACTIVE
        fresh[:, 1:] &= word[:, 1:] != word[:, :-1]
        row, column = np.nonzero(fresh)
        per_bank = np.bincount(row * BANKS + (word[row, column] & (BANKS - 1)), minlength=rows * BANKS)
        out[:, 0] += per_bank.reshape(rows, BANKS).max(axis=1)
        out[:, 1] += active.any(axis=1)
    return out


#: The measure of a shared access by `Site.carried_out`: loads, stores, and three kinds of atomics.
SHARED_MEASURES: dict[str, Measure] = {
    "load": load_wavefronts,
    "store": wavefronts,
    "combined": wavefronts,
    "native": atomic_wavefronts,
    "swapped": swap_wavefronts,
}


@dataclass(frozen=True)
class AccessCost:
    """The cost of one access by a group: sums over its warps, its lowest and highest address, and whether any address
    is misaligned."""

    achieved: int
    ideal: int
    lowest: int
    highest: int
    misaligned: bool


_known: dict[tuple, tuple[int, int]] = {}
#: Odd multipliers that hash the addresses of a warp: powers of Knuth's, modulo 2^64.
_MULTIPLIERS = np.full(WARP, 6364136223846793005, np.int64).cumprod()
_ZEROS = np.zeros(WARP, np.int64)


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


_BY_WORDS = (wavefronts, load_wavefronts, atomic_wavefronts, swap_wavefronts, local_sectors)


def access_cost(lanes: Lanes, address: np.ndarray, offset: int, width: int, measure: Measure) -> AccessCost:
    """The cost of an access of `width` bytes by `lanes` at `address + offset` (int64, broadcasts to the lanes' shape).

    `measure` is one of the functions above that count rows of 32 lanes.
    """
    if measure is atomic_sectors:
        modulus = PERIOD
    elif measure is sectors:
        modulus = SECTOR
    else:
        modulus = 4 if measure in _BY_WORDS and width < 4 else 1
    layout = lanes.layout
    low = width - 1
    if address.shape[1] == 1 and layout.kind == "whole":
        first = address[:, 0] + offset
        repeat = layout.warps // first.size
        achieved, ideal = _shared_pattern(measure, _ZEROS, first, modulus, width, repeat)
        return AccessCost(achieved, ideal, int(first.min()), int(first.max()), bool((first & low).any()))
    if layout.kind == "ragged" and address.shape[1] == 1:
        address = np.broadcast_to(address, lanes.shape)
    matrix, repeat = layout.matrix(address, lanes)
    rows = matrix.shape[0]
    mask = layout.full_mask(rows)
    if mask is None:
        first = matrix[:, 0]
        relative = matrix - matrix[:, :1]
        lowest_relative = relative
    else:
        first = matrix[np.arange(rows), layout.first_lane(rows)]
        relative = np.where(mask, matrix - first.reshape(-1, 1), INACTIVE)
        lowest_relative = np.where(mask, relative, 0)
    first = first + offset
    pattern = relative[0]
    if rows == 1 or (relative == pattern).all():
        achieved, ideal = _shared_pattern(measure, pattern, first, modulus, width, repeat)
        near = lowest_relative[0]
        return AccessCost(
            achieved,
            ideal,
            int(first.min() + near.min()),
            int(first.max() + near.max()),
            bool((first & low).any() or (near & low).any()),
        )
    residue = first & (modulus - 1)
    counts = _distinct_patterns(measure, relative, residue, width)
    absolute = lowest_relative + first.reshape(-1, 1)
    return AccessCost(
        int(counts[0]) * repeat,
        int(counts[1]) * repeat,
        int(absolute.min()),
        int(absolute.max()),
        bool(low and (np.bitwise_or.reduce(absolute, axis=None) & low)),
    )


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
