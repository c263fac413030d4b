"""What one warp asks of memory, and what memory has to do for it: the content of the access picture.

Global memory moves whole 32-byte sectors, four to a line of 128 bytes; shared memory has 32 banks, each of which serves
one 4-byte word in a wavefront. ``access_drawing.py`` draws what is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

LANES = 32
WORD = 4
SECTOR = 32
LINE = 128
BANKS = 32


@dataclass(frozen=True)
class GlobalPicture:
    """One global request. ``words`` maps ``(line, word)`` to the lanes that ask for it, ``sectors`` holds
    ``(line, sector)``; lines are numbered by address / 128. ``used`` counts bytes asked for, each once."""

    kind: str
    words: Mapping[tuple[int, int], tuple[int, ...]]
    sectors: frozenset[tuple[int, int]]
    lines: tuple[int, ...]
    lanes: tuple[int, ...]
    used: int

    @property
    def fetched(self) -> int:
        """Bytes that move: 32 per sector."""
        return SECTOR * len(self.sectors)


@dataclass(frozen=True)
class SharedPicture:
    """One shared request. ``served`` maps ``(wavefront, bank)`` to the lanes that get their word there; ``words`` maps
    it to the word's number (address / 4). ``least`` is how many wavefronts the same bytes would take without conflict.
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
    return addresses, active, width


def global_picture(access: Any) -> GlobalPicture:
    """Which words each lane asks for, and which sectors move. Raises ValueError for an access that is malformed."""
    addresses, active, width = _arrays(access)
    words: dict[tuple[int, int], tuple[int, ...]] = {}
    touched: set[int] = set()
    for lane in np.flatnonzero(active):
        start = int(addresses[lane])
        touched.update(range(start, start + width))
        for word in range(start // WORD, (start + width - 1) // WORD + 1):
            cell = (word * WORD // LINE, word % (LINE // WORD))
            words[cell] = (*words.get(cell, ()), int(lane))
    sectors = frozenset((b // LINE, b % LINE // SECTOR) for b in touched)
    lines = tuple(sorted({line for line, _ in sectors}))
    return GlobalPicture(access.kind, words, sectors, lines, tuple(map(int, np.flatnonzero(active))), len(touched))


def shared_picture(access: Any) -> SharedPicture:
    """Which bank serves which lane in which wavefront. Raises ValueError for an access that is malformed.

    Lanes that ask for the same word are served together. A warp's 8-byte accesses go in two halves and 16-byte
    accesses in four quarters, since 32 banks of 4 bytes give 128 bytes at a time.
    """
    addresses, active, width = _arrays(access)
    group = LANES * WORD // max(width, WORD)
    served: dict[tuple[int, int], tuple[int, ...]] = {}
    placed: dict[tuple[int, int], int] = {}
    wavefronts = least = 0
    for first in range(0, LANES, group):
        lanes = [int(lane) for lane in range(first, first + group) if active[lane]]
        if not lanes:
            continue
        queues: dict[int, list[int]] = {}
        for lane in lanes:
            start = int(addresses[lane])
            for word in range(start // WORD, (start + width - 1) // WORD + 1):
                queue = queues.setdefault(word % BANKS, [])
                if word not in queue:
                    queue.append(word)
                cell = (wavefronts + queue.index(word), word % BANKS)
                served[cell] = (*served.get(cell, ()), lane)
                placed[cell] = word
        wavefronts += max(len(queue) for queue in queues.values())
        least += -(-sum(len(queue) for queue in queues.values()) // BANKS)
    return SharedPicture(access.kind, served, placed, wavefronts, least, tuple(map(int, np.flatnonzero(active))))


def pick(trace: Any, kind: str, nth: int = 0, *, line: int | None = None, of: str | None = None) -> Any:
    """The ``nth`` access of one kind in a trace, perhaps only of one source line or of one allocation (by name).

    Raises ValueError that says which accesses there are.

    >>> access_figure(pick(trace(transpose["tiled"], size), "shared load"))                  # doctest: +SKIP
    """
    found = [a for a in trace.accesses if a.kind == kind and line in (None, a.line) and of in (None, str(a.allocation))]
    if not 0 <= nth < len(found):
        known = dict.fromkeys(f"{a.kind} of {a.allocation} in line {a.line}" for a in trace.accesses)
        raise ValueError(
            f"{len(found)} such accesses, none is number {nth}; the trace has {'; '.join(known) or 'none'}"
        )
    return found[nth]


def picture_of(access: Any) -> GlobalPicture | SharedPicture:
    if access.kind.startswith("global"):
        return global_picture(access)
    if access.kind.startswith("shared"):
        return shared_picture(access)
    raise ValueError(f"the access picture draws global and shared accesses; this one is a '{access.kind}'")


def headline(picture: GlobalPicture | SharedPicture) -> str:
    """What the request costs, and what it could cost, in one line."""
    if isinstance(picture, GlobalPicture):
        count, least = len(picture.sectors), -(-picture.used // SECTOR)
        noun, verb = "sector", ("moves" if count == 1 else "move")
    else:
        count, least, noun, verb = picture.wavefronts, picture.least, "wavefront", "in a row"
        verb = "" if count == 1 else verb
    cost = f"{plural(count, noun)} {verb}".rstrip()
    return f"{cost}, the least there is" if count == least else f"{cost}; {least} would do"


def describe(picture: GlobalPicture | SharedPicture) -> str:
    lanes = plural(len(picture.lanes), "lane")
    if isinstance(picture, GlobalPicture):
        return (
            f"{lanes} use {picture.used} bytes in {plural(len(picture.sectors), 'sector')} of 32 bytes on "
            f"{plural(len(picture.lines), 'line')} of 128 bytes; {picture.fetched - picture.used} bytes move unused."
        )
    banks = len({bank for _, bank in picture.served})
    return (
        f"{lanes} reach {plural(len(set(picture.words.values())), 'word')} in {plural(banks, 'bank')}; "
        f"this takes {plural(picture.wavefronts, 'wavefront')} where {picture.least} would do."
    )


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
