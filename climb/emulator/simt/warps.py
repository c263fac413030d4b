"""Values as matrices of warps: one row of 32 lanes for each warp, and back."""

from __future__ import annotations

import numpy as np

from .groups import Group
from .lanes import WARP, Lanes, broadcast_to

LANE = np.arange(WARP)
BITS = np.uint32(1) << np.arange(WARP, dtype=np.uint32)


def to_rows(lanes: Lanes, *values: np.ndarray) -> list[np.ndarray]:
    """Return values as matrices (rows, 32) of warps, all with the same number of rows.

    If all blocks hold the same values, the rows of one block represent all.
    """
    blocks = max(value.shape[0] for value in values)
    columns = lanes.shape[1]
    return [lanes.layout.matrix(broadcast_to(value, (blocks, columns)), lanes.shape)[0] for value in values]


def from_rows(lanes: Lanes, matrix: np.ndarray) -> np.ndarray:
    """Invert `to_rows`."""
    layout = lanes.layout
    if layout.kind == "ragged":
        return matrix.reshape(-1)[layout.place].reshape(1, -1)
    if layout.kind == "whole":
        return matrix.reshape(-1, lanes.shape[1])
    blocks = matrix.shape[0] // layout.rows
    out = np.empty((blocks, lanes.shape[1]), matrix.dtype)
    present = layout.mask
    out[:, layout.index[present]] = matrix.reshape(blocks, layout.rows, WARP)[:, present]
    return out


def present(lanes: Lanes, rows: int) -> np.ndarray:
    """Return the lanes that are present: bool (rows, 32)."""
    mask = lanes.layout.full_mask(rows)
    return np.ones((rows, WARP), np.bool_) if mask is None else mask


def bits_of(flags: np.ndarray) -> np.ndarray:
    """Return bool (rows, 32) as bit masks, uint32 (rows,)."""
    return np.where(flags, BITS, np.uint32(0)).sum(axis=1, dtype=np.uint32)


def names_exited(exited: np.ndarray) -> str:
    """Say which lane a mask names although it has left: `exited` has the bits of such lanes, uint32."""
    lanes = int(exited[exited != 0].ravel()[0])
    return f"the mask names lane {(lanes & -lanes).bit_length() - 1}, which has left the kernel"


def missing(group: Group, mask: np.ndarray) -> np.ndarray:
    """Return for each lane the lanes that its mask names but that are not in the group: uint32 (1 or blocks, lanes)."""
    lanes = group.lanes
    if lanes.layout.kind == "whole":
        return np.zeros((1, 1), np.uint32)
    (named,) = to_rows(lanes, np.broadcast_to(mask, lanes.shape))
    here = bits_of(present(lanes, named.shape[0]))
    return from_rows(lanes, named & ~here.reshape(-1, 1))
