"""What a warp's addresses cost: sectors of global memory, wavefronts of shared memory.

Sectors: a request of a warp touches distinct aligned 32-byte sectors; fewer cannot carry the distinct bytes that it
wants than ceil(bytes / 32). Wavefronts: shared memory has 32 banks of 4 bytes; accesses of up to 4 bytes are served for
32 lanes together, 8 bytes for half-warps, 16 bytes for quarter-warps (for loads that neighbouring lanes share, twice as
many lanes: `load_wavefronts`); each part costs the largest number of distinct 4-byte words that one bank must deliver,
and equal words are broadcast. Atomics of shared memory are not (`atomic_wavefronts`).

Both depend only on the addresses relative to the warp's first lane, and on a few low bits of that lane's address. Most
warps of an access share one such pattern, so patterns are counted once and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .lanes import INACTIVE, WARP, Lanes

SECTOR = 32
LINE = 128
BANKS = 32
_LIMIT = 1 << 16

Measure = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


def sectors(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """(rows, 2): distinct sectors, and the fewest that could hold the distinct bytes, of each row of 32 lanes.

    `relative` (rows, 32): bytes from the first active lane, INACTIVE where absent. `residue` (rows,): its address
    modulo 32.
    """
    relative = np.where(relative == INACTIVE, 0, relative)
    touched = np.sort((relative + residue.reshape(-1, 1)) >> 5, axis=1)
    wanted = np.sort(relative, axis=1)
    distinct = 1 + np.count_nonzero(np.diff(touched, axis=1), axis=1)
    nbytes = width * (1 + np.count_nonzero(np.diff(wanted, axis=1), axis=1))
    return np.stack([distinct, -(-nbytes // SECTOR)], axis=1)


def copy_sectors(lines: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(rows,): what copies of 16 bytes past the first-level cache count as sectors, of rows of 32 lanes.

    `lines` (rows, 32): the lines that the lanes read from, INACTIVE where absent; `target`: the shared addresses that
    they write to. Each sector of shared memory counts once for each line from which it takes something. An H200 agrees.
    """
    wanted = np.where(lines == INACTIVE, INACTIVE, (lines << 20) + (target >> 5))
    wanted.sort(axis=1)
    fresh = wanted != INACTIVE
    fresh[:, 1:] &= wanted[:, 1:] != wanted[:, :-1]
    return fresh.sum(axis=1)


def distinct(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """(rows, 2): distinct addresses of each row, twice; arguments as for `sectors`."""
    wanted = np.sort(np.where(relative == INACTIVE, 0, relative), axis=1)
    number = 1 + np.count_nonzero(np.diff(wanted, axis=1), axis=1)
    return np.stack([number, number], axis=1)


#: Of a line's number, the bits whose parity is a bit of its set: bits 7 to 17 of an address, as an H200 was found to
#: have them. Of higher ones nothing is known.
SET_BITS = (0b01010110101, 0b10111011010)
#: After so many bytes the sets are taken to come again.
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
    """(rows, 2): as `sectors`, for atomic operations of global memory; residue modulo `PERIOD`.

    A sector counts in each turn in which it is served (`atomic_turns`): so as often, at least, as its most wanted
    address is wanted.
    """
    out = sectors(relative, residue & SECTOR - 1, width)
    out[:, 0] = sum(_ones(touched) for touched, _, _ in atomic_turns(relative, residue))
    return out


def atomic_turns(relative: np.ndarray, residue: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The turns in which global memory serves the atomics of each row of 32 lanes; arguments as for `atomic_sectors`.

    Lines fall into four sets. In a turn, each bank of each set offers the first of its lanes that are left, and the set
    serves those that want the line which the first of all its lanes wants. An H200 agrees, in sectors, in turns and in
    lines by turn, on every table of addresses drawn at random.

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
            # The set's first lane of all that are left says which line is served.
            first = np.where(left & mine[number], order, WARP).argmin(axis=1)
            served &= ~mine[number] | (line == line[rows, first].reshape(-1, 1))
        yield np.bitwise_or.reduce(np.where(served, slot, 0), axis=1), served, order
        left &= ~served


def _ones(value: np.ndarray) -> np.ndarray:
    """How many of the lowest 16 bits are set."""
    out = np.zeros(value.shape, np.int64)
    for bit in range(16):
        out += value >> bit & 1
    return out


def local_sectors(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """(rows, 2): sectors of local memory, and the fewest possible; arguments as for `sectors`, residue modulo 4.

    Relative addresses are within the memory of each lane. Local memory is interleaved: word w of lanes 0 to 31 is 128
    bytes in a row, so that eight lanes which want one and the same word of theirs share a sector.
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
    """(rows, 2): wavefronts, and the fewest possible, of stores and atomics by each row of 32 lanes.

    Arguments as for `sectors`, residue modulo 4.
    """
    return _wavefronts(relative, residue, width, store_parts(width))


def store_parts(width: int) -> int:
    """In how many parts a warp is served: 32 banks of 4 bytes give 128 bytes at a time."""
    return {8: 2, 16: 4}.get(width, 1)


def load_wavefronts(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """(rows, 2): as `wavefronts`, for loads.

    Where every lane wants what its neighbour wants (the lane whose number differs in bit 0; or, for all lanes, in bit
    1), twice as many lanes are served together. Source: an answer in NVIDIA's developer forum, "Unexpected shared
    memory bank conflict" (thread 77228), of 16 bytes on compute capability 7; on an H200 the rungs of matmul agree.
    Of 8 bytes, and of partners that are absent, nothing has been counted.
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
    """(rows,): in how many parts the loads of each row are served (see `load_wavefronts`)."""
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
    """(rows, 2): as `wavefronts`, for atomics: each part costs the largest number of lanes that one bank must serve,
    also at one address. On an H200 all patterns of 32-bit operations agree."""
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
    """In how many parts the atomics of a warp are served."""
    return {8: 2}.get(width, 1)


def swap_wavefronts(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """(rows, 2): as `atomic_wavefronts`, for compare-and-swap: twice as many, on an H200.

    Of what shared memory does not do itself, such as sums of floats, ptxas makes a loop of them: this is one round.
    """
    return 2 * atomic_wavefronts(relative, residue, width)


def _wavefronts(relative: np.ndarray, residue: np.ndarray, width: int, parts: int) -> np.ndarray:
    """The same for a warp that is served in `parts` parts."""
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


#: The measure of a shared access: loads, stores, and atomics by `Site.carried_out`, how shared memory does them.
SHARED_MEASURES: dict[str, Measure] = {
    "load": load_wavefronts,
    "store": wavefronts,
    "combined": wavefronts,
    "native": atomic_wavefronts,
    "swapped": swap_wavefronts,
}


@dataclass(frozen=True)
class Tally:
    """Of one access by a group:

    Sums over its warps, the lowest and highest address, and whether any address is misaligned.
    """

    achieved: int
    ideal: int
    lowest: int
    highest: int
    misaligned: bool


_memory: dict[tuple, tuple[int, int]] = {}
_MULTIPLIERS = np.random.default_rng(20).integers(0, 2**63, WARP, dtype=np.int64) | 1
_ZEROS = np.zeros(WARP, np.int64)


def _one(measure: Measure, row: np.ndarray, residue: int, width: int) -> tuple[int, int]:
    key = (measure, width, residue, row.tobytes())
    found = _memory.get(key)
    if found is None:
        if len(_memory) > _LIMIT:
            _memory.clear()
        counts = measure(row.reshape(1, WARP), np.array([residue]), width)
        found = _memory[key] = (int(counts[0, 0]), int(counts[0, 1]))
    return found


def _meet(row: np.ndarray) -> bool:
    """Whether lanes of a warp want different words of one bank, so that it matters for atomics which lines share a set;
    where all want one word, or each has a bank of its own, it does not."""
    word = row[row != INACTIVE] >> 2
    return bool((word != word[0]).any()) and np.unique(word & BANKS - 1).size < word.size


def _shared_pattern(
    measure: Measure, row: np.ndarray, first: np.ndarray, modulus: int, width: int, repeat: int
) -> tuple[int, int]:
    """The sums over warps which all have the pattern `row`, `first` being the address of each one's first lane."""
    residue = first & (modulus - 1)
    if modulus == PERIOD:
        if not _meet(row):
            modulus, residue = SECTOR, residue & SECTOR - 1
        else:
            each, number = np.unique(residue, return_counts=True)
            counts = measure(np.broadcast_to(row, (each.size, WARP)), each, width)
            return tuple((counts * number.reshape(-1, 1)).sum(axis=0) * repeat)
    counts = np.bincount(residue) if modulus > 1 else (first.size,)
    achieved = ideal = 0
    for low, number in enumerate(counts):
        if number:
            each = _one(measure, row, low, width)
            achieved += each[0] * int(number)
            ideal += each[1] * int(number)
    return achieved * repeat, ideal * repeat


_BY_WORDS = (wavefronts, load_wavefronts, atomic_wavefronts, swap_wavefronts, local_sectors)


def tally(lanes: Lanes, address: np.ndarray, offset: int, width: int, measure: Measure) -> Tally:
    """Count an access of `width` bytes by `lanes` at `address + offset` (int64, broadcasting to the lanes' shape)."""
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
        return Tally(achieved, ideal, int(first.min()), int(first.max()), bool((first & low).any()))
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
        return Tally(
            achieved,
            ideal,
            int(first.min() + near.min()),
            int(first.max() + near.max()),
            bool((first & low).any() or (near & low).any()),
        )
    residue = first & (modulus - 1)
    counts = _distinct_patterns(measure, relative, residue, width)
    absolute = lowest_relative + first.reshape(-1, 1)
    return Tally(
        int(counts[0]) * repeat,
        int(counts[1]) * repeat,
        int(absolute.min()),
        int(absolute.max()),
        bool(low and (np.bitwise_or.reduce(absolute, axis=None) & low)),
    )


def _distinct_patterns(measure: Measure, relative: np.ndarray, residue: np.ndarray, width: int) -> tuple[int, int]:
    """Sums over rows which do not all share one pattern: one count for each distinct pattern, where these are few."""
    rows = relative.shape[0]
    if rows > 8:
        key = relative @ _MULTIPLIERS + residue
        _, index, inverse, number = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        few = index.size * 4 <= rows
        # A hash is no proof: rows are compared with the one that stands for them.
        if few and (relative == relative[index][inverse]).all() and (residue == residue[index][inverse]).all():
            counts = measure(relative[index], residue[index], width)
            return tuple((counts * number.reshape(-1, 1)).sum(axis=0))
    return tuple(measure(relative, residue, width).sum(axis=0))
