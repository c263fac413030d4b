"""ldmatrix: rows of matrices from shared memory, spread over the lanes of a warp."""

from __future__ import annotations

import numpy as np

from ...simt.groups import Group
from ...simt.lanes import WARP, take
from ...simt.site import Site
from ...simt.warps import from_rows, to_rows
from ..accesses import subgroup
from ..shared_memory import load_shared
from .warps import Registers, require_full_warps


def transpose_blocks(block: np.ndarray) -> np.ndarray:
    """Transpose matrices of 8 x 8 halves, held in registers (warps, 32)."""
    halves = np.ascontiguousarray(block).view(np.uint16).reshape(-1, 8, 8)
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(-1, 64).view(np.uint32)


def load_rows(group: Group, site: Site, count: int, transposed: bool, address: np.ndarray) -> Registers:
    """ldmatrix: `count` matrices of 8 x 8 halves, each transposed if `transposed`.

    Lanes 8 i to 8 i + 7 hold the addresses of the rows of matrix i; the access counts as a 16-byte load by those lanes.
    """
    require_full_warps(group, site)
    lanes, readers = group.lanes, group
    if count < 4:
        readers, selection = subgroup(group, np.broadcast_to(lanes.thread % WARP < 8 * count, lanes.shape))
        address = take(address, selection, lanes.shape)
    value = load_shared(readers, site, address)
    words = to_rows(readers.lanes, *(value[:, :, index] for index in range(4)))
    rows = np.stack(words, axis=-1)  # (warps, 32 rows, 4 words)
    out = []
    for index in range(count):
        block = np.ascontiguousarray(rows[:, 8 * index : 8 * index + 8]).reshape(-1, WARP)
        out.append(from_rows(lanes, transpose_blocks(block) if transposed else block))
    return tuple(out)


RUNTIME = {"matrix_rows": load_rows}
