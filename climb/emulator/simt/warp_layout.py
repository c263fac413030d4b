"""The arrangement of lanes in warps: from values of lanes to rows of 32 lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WARP = 32
INACTIVE = np.int64(-(2**62))  # stands for absent lanes in a matrix of warps; below any address difference


@dataclass(frozen=True)
class WarpLayout:
    """The arrangement of lanes in warps. `warps` counts (block, warp) pairs with at least one lane.

    kind "whole": full warps only; every 32 lanes of a row are one warp.
    kind "columns": a rectangle with partial warps; `index` (W, 32) holds the column of each lane, `mask` (W, 32) marks
    the lanes that are present.
    kind "ragged": `place` (L,) holds each lane's position in the flattened (W, 32) matrix, `mask` as above.
    """

    kind: str
    warps: int
    rows: int
    index: np.ndarray | None = None
    mask: np.ndarray | None = None
    place: np.ndarray | None = None
    first: np.ndarray | None = None

    def matrix(self, value: np.ndarray, shape: tuple[int, int]) -> tuple[np.ndarray, int]:
        """Return the value of lanes of `shape` as rows of 32 lanes, and the number of warps that each row represents.

        Absent lanes hold an arbitrary value; `mask` marks the present ones.
        """
        if self.kind == "ragged":
            out = np.zeros(self.rows * WARP, value.dtype)
            out[self.place] = value[0]
            return out.reshape(self.rows, WARP), 1
        repeat = shape[0] // value.shape[0]
        if value.shape[1] != shape[1]:
            value = np.broadcast_to(value, (value.shape[0], shape[1]))
        if self.kind == "whole":
            return value.reshape(-1, WARP), repeat
        return value[:, self.index].reshape(-1, WARP), repeat

    def full_mask(self, rows: int) -> np.ndarray | None:
        """Return the mask of present lanes for a matrix of `rows` rows, or None if all are present."""
        if self.mask is None or self.mask.shape[0] == rows:
            return self.mask
        return np.tile(self.mask, (rows // self.mask.shape[0], 1))

    def first_lane(self, rows: int) -> np.ndarray | None:
        """Return the first present lane of each row."""
        if self.first is None or self.first.shape[0] == rows:
            return self.first
        return np.tile(self.first, rows // self.first.shape[0])


def ragged_layout(number: np.ndarray) -> WarpLayout:
    """Return the layout of lanes with these numbers, ascending: 32 times the number of the warp, plus the lane in
    it."""
    warp = number >> 5
    first = int(warp[0]) if number.size else 0
    rows = int(warp[-1]) - first + 1 if number.size else 0
    place = number - first * WARP if first else number
    if 4 * number.size < rows * WARP:  # few lanes, so look at no others: number the warps that have one
        starts = np.ones(number.size, np.bool_)
        np.not_equal(warp[1:], warp[:-1], out=starts[1:])
        row = np.cumsum(starts) - 1
        place, rows = (row << 5) + (number & WARP - 1), int(row[-1]) + 1
    mask = np.zeros(rows * WARP, np.bool_)
    mask[place] = True
    mask = mask.reshape(rows, WARP)
    lane = mask.argmax(axis=1)
    present = mask[np.arange(rows), lane]
    if not present.all():
        place = place - (np.cumsum(~present) << 5)[warp - first]
        mask, lane = mask[present], lane[present]
    return WarpLayout("ragged", lane.size, lane.size, None, mask, place, lane)


def rectangle_layout(thread: np.ndarray, blocks: int) -> WarpLayout:
    """Return the layout of the same threads (T,), ascending, of `blocks` blocks."""
    rows = thread.size // WARP
    if thread.size % WARP == 0:
        cut = thread.reshape(rows, WARP)
        if not (cut[:, 0] % WARP).any() and (cut[:, -1] - cut[:, 0] == WARP - 1).all():
            return WarpLayout("whole", blocks * rows, rows)
    warp = thread // WARP
    _, row = np.unique(warp, return_inverse=True)
    rows = int(row.max()) + 1
    index = np.zeros((rows, WARP), np.int64)
    mask = np.zeros((rows, WARP), np.bool_)
    index[row, thread % WARP] = np.arange(thread.size)
    mask[row, thread % WARP] = True
    return WarpLayout("columns", blocks * rows, rows, index, mask, None, mask.argmax(1))
