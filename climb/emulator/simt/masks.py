"""Lanes that a mask marks among those of a group.

Bounds checks often divide a group so that most lanes go one way, and all meet again a few instructions later. Such
lanes need not be gathered into a dense group: their values keep the shape of the whole group, those of the other lanes
are arbitrary, and where the lanes meet again, the mask selects the values. Branches divide lanes in this way if the
blocks up to there access memory only by plain loads (`translation.masking`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .lanes import Lanes, Selection
from .lanes import divide as divide_densely

FEWEST = 1 << 11  # the fewest lanes for which masks pay
SHARE = 0.25  # the share of the lanes that must be marked for masks to pay
ALL = np.uint32(0xFFFFFFFF)  # the bits of a warp with all lanes present


class MaskedLanes(Lanes):
    """`of`: whole warps of a rectangle of lanes; `mask` has their shape, `bits` has a number for each warp. `shape` is
    the shape of values, so it counts all lanes of the rectangle; `count` and `warps` count those that are marked."""

    __slots__ = ("__dict__", "bits", "mask", "of")
    masked = True

    def __init__(self, of: Lanes, mask: np.ndarray, bits: np.ndarray) -> None:
        self.of, self.mask, self.bits = of, mask, bits
        self.shape, self.threads, self.ragged = of.shape, of.threads, False
        self.count, self.whole, self.divisions = int(np.count_nonzero(mask)), False, None

    @cached_property
    def warps(self) -> int:
        """The number of warps with at least one of these lanes."""
        return int(np.count_nonzero(self.bits))

    @cached_property
    def flat(self) -> np.ndarray:
        """The flat indices of the lanes, ascending."""
        return np.flatnonzero(self.mask)

    @cached_property
    def dense(self) -> Lanes:
        """The same lanes as a list."""
        return Selection(flat=self.flat).lanes(self.of)

    @cached_property
    def kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """The different `bits` of warps with lanes, and how many warps have each."""
        kinds, number = np.unique(self.bits, return_counts=True)
        return (kinds[1:], number[1:]) if kinds[0] == 0 else (kinds, number)

    @property
    def many(self) -> bool:
        """Return whether enough lanes are marked that computing for all is quicker than gathering them."""
        return self.count >= SHARE * self.of.count

    def linear(self) -> np.ndarray:
        """Return `block * threads + thread` of every lane: int64 (count,), ascending."""
        return self.dense.linear()

    def divide(self, predicate: np.ndarray) -> tuple[Selection, Selection] | bool:
        """Like `lanes.divide`, for a predicate that is arbitrary outside the marked lanes."""
        hold = predicate & self.mask
        number = np.count_nonzero(hold)
        if number in (0, self.count):
            return bool(number)
        bits = warp_bits(hold)
        return MaskSelection(hold, bits), MaskSelection(self.mask & ~predicate, self.bits & ~bits)

    def divergent_warps(self, predicate: np.ndarray) -> int:
        """Return the number of warps whose lanes differ in the predicate."""
        bits = warp_bits(predicate & self.mask)
        return int(np.count_nonzero((bits != 0) & (bits != self.bits)))


class MaskSelection(Selection):
    """The lanes that a mask marks; `bits` as in `MaskedLanes`."""

    def __init__(self, mask: np.ndarray, bits: np.ndarray) -> None:
        vars(self).update(mask=mask, bits=bits)

    def lanes(self, of: Lanes) -> MaskedLanes:
        """Return the lanes selected."""
        return MaskedLanes(of, self.mask, self.bits)

    def flatten(self, shape: tuple[int, int]) -> np.ndarray:
        """Return the flat indices into the original lanes."""
        return np.flatnonzero(self.mask)


def divide(predicate: np.ndarray, lanes: Lanes, skip: tuple[bool, bool]) -> tuple[Selection, Selection] | bool:
    """Like `lanes.divide`; the parts are masks if that seems quicker.

    `skip`: whether the lanes for which the predicate holds, and the others, only go to where all meet again.
    """
    if lanes.masked:
        return lanes.divide(predicate)
    if lanes.count < FEWEST or lanes.ragged or predicate.shape[1] == 1 or lanes.layout.kind != "whole":
        return divide_densely(predicate, lanes)
    hold = np.count_nonzero(predicate) / predicate.size
    if hold in (0, 1):
        return bool(hold)
    if any(share < SHARE and not skips for share, skips in zip((hold, 1 - hold), skip, strict=True)):
        return divide_densely(predicate, lanes)
    bits = warp_bits(predicate)
    if ((bits == 0) | (bits == ALL)).all():
        blocks = bits.reshape(predicate.shape[0], -1)
        if (blocks == blocks[0]).all() or (blocks == blocks[:, :1]).all():  # whole warps, or whole blocks
            return divide_densely(predicate, lanes)
    if predicate.shape != lanes.shape:
        predicate = np.ascontiguousarray(np.broadcast_to(predicate, lanes.shape))
        bits = warp_bits(predicate)
    return MaskSelection(predicate, bits), MaskSelection(~predicate, ~bits)


def join(
    values: list[np.ndarray], selections: list[Selection], extents: list[tuple[int, int]], shape: tuple[int, int]
) -> np.ndarray:
    """Return the value of the lanes of all selections of lanes of `shape`, at least one of them a mask, from one value
    for each; `extents`: the shapes of the selected lanes."""
    first = values[0]
    if all(value is first for value in values) and selections[0].mask is not None:
        return first
    if all(value.shape == (1, 1) and value.tobytes() == first.tobytes() for value in values):
        return first
    out = np.empty(shape, first.dtype)
    for number, (value, selection) in enumerate(zip(values, selections, strict=True)):
        if selection.mask is not None:
            np.copyto(out, value, where=selection.mask if number else True)
        else:
            out.reshape(-1)[selection.flatten(shape)] = np.broadcast_to(value, extents[number]).reshape(-1)
    return out


def unite(selections: list[Selection], shape: tuple[int, int]) -> MaskSelection:
    """Return the union of disjoint selections of lanes of `shape`."""
    mask = np.zeros(shape, np.bool_)
    for selection in selections:
        if selection.mask is not None:
            mask |= selection.mask
        else:
            mask.reshape(-1)[selection.flatten(shape)] = True
    return MaskSelection(mask, warp_bits(mask))


def warp_bits(mask: np.ndarray) -> np.ndarray:
    """Return a bit for each lane of a warp, from its first: uint32 (warps,)."""
    return np.packbits(mask.reshape(-1), bitorder="little").view("<u4")
