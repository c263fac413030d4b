"""The order in which the lanes of one access are served: the cost model's counts, lane by lane, for pictures.

The rules are those of `cost_model`. Within a part of a warp, a bank serves its words in the order of the lanes that
request them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..simt.warp_layout import INACTIVE, WARP
from .cost_model import (
    BANKS,
    LINE,
    PERIOD,
    SECTOR,
    SHARED_MEASURES,
    atomic_parts,
    atomic_sectors,
    atomic_turns,
    load_parts,
    sectors,
    store_parts,
)


@dataclass(frozen=True)
class Cost:
    """The cost of one access, and the least cost for its bytes: in sectors (global) or wavefronts (shared)."""

    achieved: int
    ideal: int


def _pattern(addresses: np.ndarray, active: np.ndarray, modulus: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the access as the cost model takes it: (1, 32) bytes from the first active lane, and its address mod
    `modulus`.

    `addresses` (32,) int64, `active` (32,) bool, at least one of them true.
    """
    first = int(addresses[np.flatnonzero(active)[0]])
    return np.where(active, addresses - first, INACTIVE).reshape(1, WARP), np.array([first % modulus])


def global_cost(addresses: np.ndarray, active: np.ndarray, width: int, atomic: bool = False) -> Cost:
    """Return the sectors of one global access of `width` bytes a lane; arguments as for `_pattern`."""
    measure, modulus = (atomic_sectors, PERIOD) if atomic else (sectors, SECTOR)
    achieved, ideal = measure(*_pattern(addresses, active, modulus), width)[0]
    return Cost(int(achieved), int(ideal))


def turns(addresses: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return the turn, from 0, in which global memory serves each lane of an atomic: int (32,); -1 for inactive
    lanes."""
    relative, residue = _pattern(addresses, active, PERIOD)
    found = np.full(WARP, -1)
    for number, (_, served, order) in enumerate(atomic_turns(relative, residue)):
        found[order[0, served[0]]] = number
    return found


def shared_cost(addresses: np.ndarray, active: np.ndarray, width: int, carried_out: str) -> Cost:
    """Return the wavefronts of one shared access of `width` bytes a lane, carried out as `Site.carried_out` says."""
    achieved, ideal = SHARED_MEASURES[carried_out](*_pattern(addresses, active, 4), width)[0]
    return Cost(int(achieved), int(ideal))


@dataclass(frozen=True)
class Word:
    """A word of shared memory that one bank delivers in one wavefront, and the lanes that it serves."""

    wavefront: int
    bank: int
    number: int
    lanes: tuple[int, ...]


def shared_words(addresses: np.ndarray, active: np.ndarray, width: int, carried_out: str) -> tuple[Word, ...]:
    """Return the words of one shared access, in the order of the lanes that request them first; arguments as for
    `shared_cost`.

    Loads, stores and combined atomics serve all lanes that need a word together. Other atomics serve one lane of a bank
    per wavefront, and a compare-and-swap takes two wavefronts for each.
    """
    relative, _ = _pattern(addresses, active, 4)
    if carried_out in ("native", "swapped"):
        parts = atomic_parts(width)
    else:
        parts = int(load_parts(relative, width)[0]) if carried_out == "load" else store_parts(width)
    alone, repeats = carried_out in ("native", "swapped"), 2 if carried_out == "swapped" else 1
    lanes_of: dict[tuple[int, int, int], tuple[int, ...]] = {}
    before = 0
    for part in np.arange(WARP).reshape(parts, -1):
        queues: dict[int, list[tuple[int, int]]] = {}
        for lane in part[active[part]].tolist():
            start = int(addresses[lane])
            for word in range(start // 4, (start + width - 1) // 4 + 1):
                queue = queues.setdefault(word % BANKS, [])
                ticket = (word, lane if alone else -1)
                if ticket not in queue:
                    queue.append(ticket)
                for repeat in range(repeats):
                    cell = (before + repeats * queue.index(ticket) + repeat, word % BANKS, word)
                    lanes_of[cell] = (*lanes_of.get(cell, ()), lane)
        before += repeats * max(map(len, queues.values()), default=0)
    return tuple(Word(*cell, lanes) for cell, lanes in lanes_of.items())


def sectors_of(addresses: np.ndarray, active: np.ndarray, width: int) -> list[tuple[int, tuple[int, int]]]:
    """Yield (lane, (line, sector)) for every sector that an active lane touches; a line is 128 bytes."""
    return [
        (int(lane), (at // LINE, at % LINE // SECTOR))
        for lane in np.flatnonzero(active)
        for at in range(int(addresses[lane]) // SECTOR * SECTOR, int(addresses[lane]) + width, SECTOR)
    ]
