"""Sets of lanes, and how to select subsets of them; `unions` joins subsets again.

A value is a 2-D array that broadcasts to the shape of the lanes that hold it. Lanes come in two forms: a rectangle of
blocks x threads, with value shapes (1,1), (B,1), (1,T) or (B,T); or a ragged list of L lanes, with shapes (1,1) or
(1,L). A subset of a rectangle that takes whole blocks, or the same threads of every block, stays a rectangle, so
uniform values stay uniform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .warp_layout import WARP, WarpLayout, ragged_layout, rectangle_layout


def broadcast_to(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return `value` broadcast to `shape`, not to be written to. Most values have that shape already, which NumPy is
    slow to notice."""
    return value if value.shape == shape else np.broadcast_to(value, shape)


class Lanes:
    """`block` and `thread` are int64 indices (within the batch, within the block) that broadcast to `shape`.

    Lanes are in ascending order of (block, thread). `threads` is the number of threads of a whole block. `whole`: these
    are all threads of all blocks. `divisions` remembers how they have been divided; None for nothing. `masked`: these
    are `masks.MaskedLanes`.
    """

    masked = False

    __slots__ = (
        "_block", "_layout", "_linear", "_thread", "count", "divisions", "ragged", "shape", "threads", "whole",
    )  # fmt: skip

    def __init__(self, block: np.ndarray, thread: np.ndarray, threads: int, ragged: bool) -> None:
        self._block, self._thread, self.threads, self.ragged = block, thread, threads, ragged
        self.shape = (1, thread.shape[1]) if ragged else (block.shape[0], thread.shape[1])
        self.count = self.shape[0] * self.shape[1]
        self._linear: np.ndarray | None = None
        self._layout: WarpLayout | None = None
        self.whole = False
        self.divisions: Divisions | None = None

    @classmethod
    def listed(cls, linear: np.ndarray, threads: int) -> Lanes:
        """Return the ragged list of the lanes with these numbers: ascending int64 (L,), `block * threads + thread`."""
        out = cls.__new__(cls)
        out._block = out._thread = out._layout = out.divisions = None
        out._linear, out.threads, out.ragged, out.whole = linear, threads, True, False
        out.shape, out.count = (1, linear.size), linear.size
        return out

    @property
    def block(self) -> np.ndarray:
        """The block of each lane."""
        if self._block is None:
            self._block, self._thread = (each.reshape(1, -1) for each in quotients(self._linear, self.threads))
        return self._block

    @property
    def thread(self) -> np.ndarray:
        """The thread of each lane in its block."""
        if self._thread is None:
            self._block, self._thread = (each.reshape(1, -1) for each in quotients(self._linear, self.threads))
        return self._thread

    @property
    def layout(self) -> WarpLayout:
        """The way the lanes form warps."""
        if self._layout is None:
            self._layout = self._form_warps()
        return self._layout

    def _form_warps(self) -> WarpLayout:
        if not self.ragged:
            return rectangle_layout(self.thread[0], self.shape[0])
        padded = -(-self.threads // WARP) * WARP
        return ragged_layout(self.linear() if padded == self.threads else self.block[0] * padded + self.thread[0])

    @property
    def warps(self) -> int:
        """The number of (block, warp) pairs with at least one of these lanes."""
        return self.layout.warps

    def at(self, index: int) -> tuple[int, int]:
        """Return (block, thread) of the lane at a flat index."""
        block, thread = (np.broadcast_to(each, self.shape).ravel()[index] for each in (self.block, self.thread))
        return self.locate(int(block), int(thread))

    def locate(self, block: int, thread: int) -> tuple[int, int]:
        """Return the block of the batch and the thread in it; other lanes may number them differently."""
        return block, thread

    def linear(self) -> np.ndarray:
        """Return `block * threads + thread` of every lane: int64 (count,), ascending."""
        if self._linear is None:
            self._linear = (self.block * self.threads + self.thread).ravel()
        return self._linear

    def numbers(self, flat: np.ndarray) -> np.ndarray | None:
        """Return `linear()` of the lanes at ascending flat indices; None if it would have to be computed first."""
        if self.whole:
            return flat
        return None if self._linear is None else self._linear.take(flat)

    def per_block(self, blocks: int) -> np.ndarray:
        """Return the number of these lanes in each of the batch's blocks: int64 (blocks,)."""
        if self.ragged:
            return np.bincount(self.block[0], minlength=blocks)
        counts = np.zeros(blocks, np.int64)
        counts[self.block[:, 0]] = self.shape[1]
        return counts


def rectangle(blocks: int, threads: int) -> Lanes:
    """Return all threads of `blocks` blocks."""
    out = Lanes(np.arange(blocks).reshape(-1, 1), np.arange(threads).reshape(1, -1), threads, False)
    out.whole = True
    out.divisions = Divisions([KEPT * out.count])
    return out


class Divisions:
    """Earlier divisions of these lanes: the bounds checks of an unrolled loop divide them in the same way again and
    again.

    `budget`: the lanes that may still be kept; the lanes of a launch's batch, and of their parts, share it.
    """

    __slots__ = ("budget", "known", "parts", "unions")

    def __init__(self, budget: list[int]) -> None:
        self.budget = budget
        self.known: list[tuple[int, np.ndarray, tuple[Selection, Selection]]] = []
        self.parts: dict[int, tuple[Selection, Lanes]] = {}
        self.unions: list[tuple[list[Selection], Any]] = []

    def find(self, hold: int, predicate: np.ndarray) -> tuple[Selection, Selection] | None:
        """Return the two parts by an equal predicate, which holds for `hold` of its elements; None if there was
        none."""
        for number, known, parts in self.known:
            if number == hold and known.shape == predicate.shape and (known == predicate).all():
                return parts
        return None

    def keep(self, hold: int, predicate: np.ndarray, parts: tuple[Selection, Selection], lanes: int) -> None:
        """Remember a division of this number of lanes, if the budget allows."""
        if self.budget[0] >= lanes:
            self.budget[0] -= lanes
            self.known.append((hold, predicate, parts))
            for part in parts:
                part.keep()


KEPT = 32  # how many times the lanes of a batch its divisions may keep


def quotients(value: np.ndarray, divisor: int) -> tuple[np.ndarray, np.ndarray]:
    """Return value // divisor and value % divisor; by shifts if possible, which take a tenth of the time."""
    if divisor & divisor - 1:
        return np.divmod(value, divisor)
    return value >> divisor.bit_length() - 1, value & divisor - 1


@dataclass(frozen=True)
class Selection:
    """A subset of lanes: `rows` (blocks) and `columns` (threads) of a rectangle, None for all; or `flat` indices.

    All are ascending. `flat` indexes the flattened shape of the original lanes; the subset is then ragged.
    """

    rows: np.ndarray | None = None
    columns: np.ndarray | None = None
    flat: np.ndarray | None = None
    kept: ClassVar[bool] = False
    mask: ClassVar[np.ndarray | None] = None  # of a `masks.MaskSelection`

    def keep(self) -> Selection:
        """Remember the results made from this selection, because it will be used again."""
        vars(self)["kept"] = True
        return self

    def split(self, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and columns of `flat` in lanes of `width` columns; cached, since many values are taken with
        them."""
        found = self.__dict__.get("_split")
        if found is None or found[0] != width:
            found = (width, *quotients(self.flat, width))
            object.__setattr__(self, "_split", found)
        return found[1:]

    def lanes(self, of: Lanes) -> Lanes:
        """Return the lanes selected."""
        divisions = of.divisions
        if not self.kept or divisions is None:
            return self._lanes(of)
        found = divisions.parts.get(id(self))
        if found is None:
            found = divisions.parts[id(self)] = self, self._lanes(of)
            found[1].divisions = Divisions(divisions.budget)
        return found[1]

    def _lanes(self, of: Lanes) -> Lanes:
        if self.flat is not None or of.ragged:
            flat = self.columns if self.flat is None else self.flat
            numbers = None if flat is None else of.numbers(flat)
            if numbers is not None:
                return Lanes.listed(numbers, of.threads)
        if self.flat is not None:
            return Lanes(
                take(of.block, self, of.shape, spread=True),
                take(of.thread, self, of.shape, spread=True),
                of.threads,
                True,
            )
        block = of.block if self.rows is None else of.block[self.rows]
        thread = of.thread if self.columns is None else of.thread[:, self.columns]
        if of.ragged:
            return Lanes(block if self.columns is None else block[:, self.columns], thread, of.threads, True)
        return Lanes(block, thread, of.threads, False)

    def flatten(self, shape: tuple[int, int]) -> np.ndarray:
        """Return the flat indices into lanes of `shape`."""
        if self.flat is not None:
            return self.flat
        rows = np.arange(shape[0]) if self.rows is None else self.rows
        columns = np.arange(shape[1]) if self.columns is None else self.columns
        return (rows.reshape(-1, 1) * shape[1] + columns).ravel()

    def then(self, inner: Selection, shape: tuple[int, int]) -> Selection:
        """Return the subset `inner` of this subset, as a subset of lanes of `shape`."""
        if not (self.kept and inner.kept):
            return self._then(inner, shape)
        known = vars(self).setdefault("_inner", {})
        found = known.get(id(inner))
        if found is None:
            found = known[id(inner)] = inner, self._then(inner, shape).keep()
        return found[1]

    def _then(self, inner: Selection, shape: tuple[int, int]) -> Selection:
        if self.flat is not None:
            return Selection(flat=self.flat[inner.columns if inner.flat is None else inner.flat])
        if inner.flat is not None:
            return Selection(flat=self.flatten(shape)[inner.flat])
        rows = inner.rows if self.rows is None else (self.rows if inner.rows is None else self.rows[inner.rows])
        columns = (
            inner.columns
            if self.columns is None
            else (self.columns if inner.columns is None else self.columns[inner.columns])
        )
        return Selection(rows, columns)


def take(value: np.ndarray, selection: Selection, shape: tuple[int, int], spread: bool = False) -> np.ndarray:
    """Return the part of `value`, which broadcasts to `shape`, that belongs to the selected lanes.

    A value that is uniform over all lanes stays (1,1) unless `spread`.
    """
    rows, columns = value.shape
    if (rows == 1 and columns == 1 and not spread) or selection.mask is not None:
        return value
    if selection.flat is not None:
        flat = selection.flat
        if (rows, columns) == shape:
            return value.reshape(1, -1).take(flat, axis=1)
        if rows == 1 and columns == 1:
            return np.broadcast_to(value, (1, flat.size))
        if columns == 1:
            return value[:, 0].take(selection.split(shape[1])[0]).reshape(1, -1)
        return value[0].take(selection.split(shape[1])[1]).reshape(1, -1)
    if selection.rows is not None and rows > 1:
        value = value[selection.rows]
    if selection.columns is not None and columns > 1:
        value = value[:, selection.columns]
    return value


def divide(predicate: np.ndarray, lanes: Lanes) -> tuple[Selection, Selection] | bool:
    """Return the lanes for which `predicate` holds and the others; True or False if all lanes agree."""
    hold = np.count_nonzero(predicate)
    if hold == 0:
        return False
    if hold == predicate.size:
        return True
    divisions = lanes.divisions
    if divisions is None:
        return _divide(predicate, lanes)
    parts = divisions.find(hold, predicate)
    if parts is None:
        parts = _divide(predicate, lanes)
        divisions.keep(hold, predicate, parts, lanes.count)
    return parts


def _divide(predicate: np.ndarray, lanes: Lanes) -> tuple[Selection, Selection]:
    rows, columns = predicate.shape
    if lanes.ragged:
        return _columns(predicate[0])
    if columns == 1:
        return _rows(predicate[:, 0])
    if rows == 1:
        return _columns(predicate[0])
    if (predicate == predicate[0]).all():
        return _columns(predicate[0])
    if (predicate == predicate[:, :1]).all():
        return _rows(predicate[:, 0])
    flat = predicate.reshape(-1)
    return Selection(flat=np.flatnonzero(flat)), Selection(flat=np.flatnonzero(~flat))


def _rows(hold: np.ndarray) -> tuple[Selection, Selection]:
    return Selection(rows=np.flatnonzero(hold)), Selection(rows=np.flatnonzero(~hold))


def _columns(hold: np.ndarray) -> tuple[Selection, Selection]:
    return Selection(columns=np.flatnonzero(hold)), Selection(columns=np.flatnonzero(~hold))
