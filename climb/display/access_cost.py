"""Compute the content of the access picture: the bytes that one warp requests, and the cost of the access.

Global memory moves whole 32-byte sectors, four to a line of 128 bytes. Shared memory has 32 banks, and each serves one
4-byte word in a wavefront. The emulator's cost model gives the cost of an access and the lanes that are served
together; ``access_figure.py`` draws the pictures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from climb.emulator.counters.cost_model import LINE, SECTOR, SHARED_MEASURES
from climb.emulator.counters.serving import global_cost, sectors_of, shared_cost, shared_words, turns

LANES = 32
WORD = 4


@dataclass(frozen=True)
class GlobalPicture:
    """One global request.

    ``words`` maps ``(row, word)`` to the lanes that request that word of the row; ``sectors`` holds ``(row, sector)``.
    A row is a line in one turn, ``(turn, line)``; lines are numbered by address / 128, and ``rows`` holds them in
    order. Loads and stores have one turn. ``used`` is the number of distinct bytes requested, ``moved`` the number of
    sectors that move, ``least`` the fewest sectors that could hold the bytes.
    """

    kind: str
    words: Mapping[tuple[tuple[int, int], int], tuple[int, ...]]
    sectors: frozenset[tuple[tuple[int, int], int]]
    rows: tuple[tuple[int, int], ...]
    lanes: tuple[int, ...]
    used: int
    moved: int
    least: int

    @property
    def fetched(self) -> int:
        """Bytes that move: 32 per sector."""
        return SECTOR * self.moved

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines that are touched, in order."""
        return tuple(sorted({line for _, line in self.rows}))

    @property
    def turns(self) -> int:
        """The number of turns in which memory serves the lanes; 1 for loads and stores."""
        return 1 + max(turn for turn, _ in self.rows)


@dataclass(frozen=True)
class SharedPicture:
    """One shared request.

    ``served`` maps ``(wavefront, bank)`` to the lanes that get their word there; ``words`` maps it to the word's number
    (address / 4). ``least`` is the number of wavefronts that the same lanes would take without conflict.
    """

    kind: str
    served: Mapping[tuple[int, int], tuple[int, ...]]
    words: Mapping[tuple[int, int], int]
    wavefronts: int
    least: int
    lanes: tuple[int, ...]

    @property
    def conflicts(self) -> int:
        """Wavefronts beyond the least."""
        return self.wavefronts - self.least


def _arrays(access: Any) -> tuple[np.ndarray, np.ndarray, int]:
    addresses = np.asarray(access.addresses, dtype=np.int64)
    active = np.asarray(access.active, dtype=bool)
    width = int(access.width)
    if addresses.shape != (LANES,) or active.shape != (LANES,):
        raise ValueError(
            f"an access has one address per lane; expected {LANES} addresses and {LANES} active flags, "
            f"got shapes {addresses.shape} and {active.shape}"
        )
    if not active.any():
        raise ValueError(f"no lane is active in this {access.kind}; there is nothing to draw")
    if width not in (1, 2, 4, 8, 16):
        raise ValueError(f"an access is 1, 2, 4, 8 or 16 bytes wide; got width {width}")
    if (addresses[active] % width).any():
        bad = int(np.flatnonzero(active & (addresses % width != 0))[0])
        raise ValueError(f"lane {bad} has the address {addresses[bad]:#x}, which is no multiple of the width {width}")
    return addresses, active, width


def global_picture(access: Any) -> GlobalPicture:
    """Return the words that each lane requests, and the sectors that move in each turn.

    Raises ValueError for an access that is malformed.
    """
    addresses, active, width = _arrays(access)
    atomic = access.kind.endswith("atomic")
    turn_of = turns(addresses, active) if atomic else np.where(active, 0, -1)
    words: dict[tuple[tuple[int, int], int], tuple[int, ...]] = {}
    for lane in np.flatnonzero(active).tolist():
        start = int(addresses[lane])
        for word in range(start // WORD, (start + width - 1) // WORD + 1):
            cell = ((int(turn_of[lane]), word * WORD // LINE), word % (LINE // WORD))
            words[cell] = (*words.get(cell, ()), lane)
    sectors = frozenset(
        ((int(turn_of[lane]), line), sector) for lane, (line, sector) in sectors_of(addresses, active, width)
    )
    cost = global_cost(addresses, active, width, atomic)
    return GlobalPicture(
        access.kind,
        words,
        sectors,
        tuple(sorted({row for row, _ in sectors})),
        tuple(np.flatnonzero(active).tolist()),
        width * np.unique(addresses[active]).size,
        cost.achieved,
        cost.ideal,
    )


def shared_picture(access: Any) -> SharedPicture:
    """Return the lanes that each bank serves in each wavefront. Raises ValueError for a malformed access.

    ``access.carried_out`` says how shared memory carries out an atomic; without it, the atomic counts as native.
    """
    addresses, active, width = _arrays(access)
    action = access.kind.split()[1]
    carried_out = getattr(access, "carried_out", "") or ("native" if action == "atomic" else action)
    if carried_out not in SHARED_MEASURES:
        raise ValueError(f"a shared access is carried out as {', '.join(SHARED_MEASURES)}; got '{carried_out}'")
    cost = shared_cost(addresses, active, width, carried_out)
    words = shared_words(addresses, active, width, carried_out)
    return SharedPicture(
        access.kind,
        {(one.wavefront, one.bank): one.lanes for one in words},
        {(one.wavefront, one.bank): one.number for one in words},
        cost.achieved,
        cost.ideal,
        tuple(np.flatnonzero(active).tolist()),
    )


def pick(trace: Any, kind: str, nth: int = 0, *, line: int | None = None, of: str | None = None) -> Any:
    """Return the ``nth`` access of a kind in a trace, optionally of one source line or of one allocation (by name).

    Raises ValueError, which lists the accesses of the trace, if there is no such access.

    >>> access_figure(pick(trace(transpose["tiled"], size), "shared load"))                  # doctest: +SKIP
    """
    found = [a for a in trace.accesses if a.kind == kind and line in (None, a.line) and of in (None, str(a.allocation))]
    if not 0 <= nth < len(found):
        known = dict.fromkeys(f"{a.kind} of {a.allocation} in line {a.line}" for a in trace.accesses)
        raise ValueError(
            f"{len(found)} such accesses, none is number {nth}; the trace has {'; '.join(known) or 'none'}"
        )
    return found[nth]


def runs(columns: Iterable[int]) -> list[tuple[int, int]]:
    """Neighbouring columns as ``(first, how many)``."""
    found: list[tuple[int, int]] = []
    for column in sorted(columns):
        if found and sum(found[-1]) == column:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((column, 1))
    return found


def picture_of(access: Any) -> GlobalPicture | SharedPicture:
    """Return the picture of a global or a shared access. Raises ValueError for any other."""
    if access.kind.startswith("global"):
        return global_picture(access)
    if access.kind.startswith("shared"):
        return shared_picture(access)
    raise ValueError(f"the access picture draws global and shared accesses; this one is a '{access.kind}'")


def headline(picture: GlobalPicture | SharedPicture) -> str:
    """Return the cost of the request and the least possible cost, in one line."""
    if isinstance(picture, GlobalPicture):
        count, least = picture.moved, picture.least
        noun, verb = "sector", ("moves" if count == 1 else "move")
    else:
        count, least, noun, verb = picture.wavefronts, picture.least, "wavefront", "in a row"
        verb = "" if count == 1 else verb
    cost = f"{plural(count, noun)} {verb}".rstrip()
    return f"{cost}, the least there is" if count == least else f"{cost}; {least} would do"


def describe(picture: GlobalPicture | SharedPicture) -> str:
    """Describe the picture in a sentence, for its alt text."""
    lanes = plural(len(picture.lanes), "lane")
    if isinstance(picture, GlobalPicture):
        in_turns = f", in {plural(picture.turns, 'turn')}" if picture.kind.endswith("atomic") else ""
        return (
            f"{lanes} use {picture.used} bytes in {plural(picture.moved, 'sector')} of 32 bytes on "
            f"{plural(len(picture.lines), 'line')} of 128 bytes{in_turns}; "
            f"{picture.fetched - picture.used} bytes move unused."
        )
    banks = len({bank for _, bank in picture.served})
    return (
        f"{lanes} reach {plural(len(set(picture.words.values())), 'word')} in {plural(banks, 'bank')}; "
        f"this takes {plural(picture.wavefronts, 'wavefront')} where {picture.least} would do."
    )


def plural(count: int, noun: str) -> str:
    """Format a number with its noun: ``1 sector``, ``2 sectors``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
