"""The cost model: the sectors of global memory, or the wavefronts of shared memory, for the addresses of a warp.

Sectors: a request touches distinct aligned 32-byte sectors. It needs at least ceil(bytes / 32) sectors to carry its
distinct bytes. Wavefronts: shared memory has 32 banks of 4 bytes. Accesses of up to 4 bytes serve 32 lanes together,
8 bytes a half-warp, 16 bytes a quarter-warp (loads serve twice as many lanes if neighbours read the same address, see
`load_wavefronts`). Each of these parts costs as many wavefronts as the busiest bank has distinct 4-byte words to
deliver; equal words are broadcast. Shared-memory atomics get no broadcast (`atomic_wavefronts`).

Both costs depend only on the addresses relative to the warp's first lane and on a few low bits of that lane's address.
`access_cost` sums them over the warps of an access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..simt.warp_layout import INACTIVE, WARP

SECTOR = 32
LINE = 128
BANKS = 32

Measure = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


def sectors(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """For each row of 32 lanes, count the distinct sectors and the fewest that could hold the distinct bytes: (rows,
    2).

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
    """Count the sectors that an H200 counts for 16-byte copies that bypass the L1 cache: (rows,).

    `lines` (rows, 32): the cache lines that the lanes read from, INACTIVE for absent lanes; `target` (rows, 32): the
    shared addresses that they write to. Each sector of shared memory counts once per cache line that it is filled from.
    """
    wanted = np.where(lines == INACTIVE, INACTIVE, (lines << 20) + (target >> 5))
    wanted.sort(axis=1)
    fresh = wanted != INACTIVE
    fresh[:, 1:] &= wanted[:, 1:] != wanted[:, :-1]
    return fresh.sum(axis=1)


def distinct(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """Count the distinct addresses in each row, in both columns of (rows, 2); arguments as for `sectors`."""
    wanted = np.sort(np.where(relative == INACTIVE, 0, relative), axis=1)
    number = 1 + np.count_nonzero(np.diff(wanted, axis=1), axis=1)
    return np.stack([number, number], axis=1)


#: Each bit of a cache line's set is the parity of these bits of the line's number, which are bits 7 to 17 of its
#: address. Measured on an H200; the influence of higher bits is unknown.
SET_BITS = (0b01010110101, 0b10111011010)
#: Bytes after which the sets are assumed to repeat.
PERIOD = LINE << 11


def _sets(line: np.ndarray) -> np.ndarray:
    """Return the set of each line, 0 to 3."""
    out = np.zeros(line.shape, np.int64)
    for number, bits in enumerate(SET_BITS):
        each = line & bits
        for shift in (8, 4, 2, 1):
            each = each ^ each >> shift
        out |= (each & 1) << number
    return out


def atomic_sectors(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """Like `sectors`, for atomic operations on global memory; residue modulo `PERIOD`.

    A sector counts once per turn in which it is served (`atomic_turns`), hence at least as often as its most requested
    address occurs.
    """
    out = sectors(relative, residue & SECTOR - 1, width)
    out[:, 0] = sum(_population_count(touched) for touched, _, _ in atomic_turns(relative, residue))
    return out


def atomic_turns(relative: np.ndarray, residue: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the turns in which global memory serves the atomics of each row of 32 lanes; arguments as for
    `atomic_sectors`.

    Cache lines fall into four sets. In each turn, each bank of a set offers its first remaining lane, and the set
    serves those offers that hit the same line as the first remaining lane of the set. An H200 agrees in sectors, turns
    and lines per turn on every table of random addresses.

    Yields for each turn `touched` (rows,), a bit for each sector that is served; `served` (rows, 32) bool; and `order`
    (rows, 32), the same in every turn: `served[:, n]` belongs to lane `order[:, n]`.
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
    """Count the bits set among the lowest 16."""
    out = np.zeros(value.shape, np.int64)
    for bit in range(16):
        out += value >> bit & 1
    return out


def local_sectors(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """Count the sectors of local memory, and the fewest possible: (rows, 2); arguments as for `sectors`, residue modulo
    4.

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
    """Count the wavefronts of a store, and the fewest possible, for each row of 32 lanes: (rows, 2).

    Arguments as for `sectors`, residue modulo 4.
    """
    return _wavefronts(relative, residue, store_parts(width))


def store_parts(width: int) -> int:
    """Return the number of parts in which a warp is served: 32 banks of 4 bytes deliver 128 bytes at a time."""
    return {8: 2, 16: 4}.get(width, 1)


def load_wavefronts(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """Like `wavefronts`, for loads.

    If every lane reads the same address as its neighbour (the lane whose number differs in bit 0; or, for all lanes, in
    bit 1), twice as many lanes are served together. Source: an answer in NVIDIA's developer forum, "Unexpected shared
    memory bank conflict" (thread 77228), about 16 bytes on compute capability 7; the rungs of matmul on an H200 agree.
    Accesses of 8 bytes, and absent partners, have not been measured.
    """
    if width < 8:
        return _wavefronts(relative, residue, 1)
    parts = load_parts(relative, width)
    out = np.zeros((relative.shape[0], 2), np.int64)
    for number in np.unique(parts):
        mine = parts == number
        out[mine] = _wavefronts(relative[mine], residue[mine], int(number))
    return out


def load_parts(relative: np.ndarray, width: int) -> np.ndarray:
    """Return the number of parts in which the loads of each row are served: (rows,). See `load_wavefronts`."""
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
    """Like `wavefronts`, for atomics: each part costs as many wavefronts as the busiest bank has lanes to serve, even
    if they share an address. All patterns of 32-bit operations agree with an H200."""
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
    """Return the number of parts in which the atomics of a warp are served."""
    return {8: 2}.get(width, 1)


def swap_wavefronts(relative: np.ndarray, residue: np.ndarray, width: int) -> np.ndarray:
    """Like `atomic_wavefronts`, for compare-and-swap: twice as many, as on an H200.

    ptxas turns an atomic that shared memory lacks, such as a float sum, into a loop of compare-and-swap; this is the
    cost of one iteration.
    """
    return 2 * atomic_wavefronts(relative, residue, width)


def _wavefronts(relative: np.ndarray, residue: np.ndarray, parts: int) -> np.ndarray:
    """Count the wavefronts, and the fewest possible, of a warp that is served in `parts` parts."""
    rows = relative.shape[0]
    lanes = WARP // parts
    out = np.zeros((rows, 2), np.int64)
    for part in range(parts):
        address = relative[:, part * lanes : (part + 1) * lanes]
        active = address != INACTIVE
        word = (address + residue.reshape(-1, 1)) >> 2
        # The first word stands for a whole vector: vectors are aligned, so its other banks are as busy as its first.
        word = np.sort(np.where(active, word, INACTIVE), axis=1)
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
