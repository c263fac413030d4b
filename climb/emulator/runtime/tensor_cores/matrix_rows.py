"""ldmatrix and stmatrix: rows of matrices in shared memory, spread over the lanes of a warp."""

from __future__ import annotations

import numpy as np

from ...simt.groups import Group
from ...simt.lanes import WARP, take
from ...simt.site import Site
from ...simt.warps import from_rows, to_rows
from ..accesses import subgroup
from ..shared_memory import load_shared, store_shared
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


def store_rows(group: Group, site: Site, transposed: bool, address: np.ndarray, values: Registers) -> None:
    """stmatrix: the inverse of `load_rows`; the access counts as a 16-byte store by the lanes that hold addresses."""
    require_full_warps(group, site)
    lanes, count, writers = group.lanes, len(values), group
    if count < 4:
        writers, selection = subgroup(group, np.broadcast_to(lanes.thread % WARP < 8 * count, lanes.shape))
        address = take(address, selection, lanes.shape)
    matrices = to_rows(lanes, *(np.broadcast_to(each, lanes.shape) for each in values))
    rows = np.zeros((matrices[0].shape[0], WARP, 4), np.uint32)
    for index, block in enumerate(matrices):
        block = transpose_blocks(block).reshape(-1, WARP) if transposed else np.ascontiguousarray(block)
        rows[:, 8 * index : 8 * index + 8] = block.reshape(-1, 8, 4)
    words = (from_rows(lanes, np.ascontiguousarray(rows[:, :, word])) for word in range(4))
    if count < 4:
        words = (take(each, selection, lanes.shape) for each in words)
    store_shared(writers, site, address, tuple(words))


RUNTIME = {"matrix_rows": load_rows, "matrix_store_rows": store_rows}
