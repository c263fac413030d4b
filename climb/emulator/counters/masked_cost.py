"""The cost of an access by the lanes that a mask marks, where all warps share one pattern of addresses."""

from __future__ import annotations

import numpy as np

from ..simt.masks import MaskedLanes
from ..simt.warp_layout import INACTIVE, WARP
from .access_cost import remembered
from .address_patterns import Part
from .cost_model import SECTOR, sectors

MOST = 64  # the number of different warps of one access that are examined one by one
_LANES = np.arange(WARP)


def masked_sectors(part: Part, lanes: MaskedLanes, offset: int, width: int) -> tuple[int, int] | None:
    """Return the sectors of an access at the addresses of `part` plus `offset`, and the fewest possible; None if the
    warps differ too much."""
    residues = part.residues(SECTOR)
    if len(residues) == 1:
        kinds, number = lanes.kinds
        keys = zip(kinds.tolist(), [residues[0][0] + offset & SECTOR - 1] * kinds.size, number.tolist(), strict=True)
    else:
        both = lanes.bits.astype(np.uint64) << 5 | (part.first + offset & SECTOR - 1).astype(np.uint64)
        kinds, number = np.unique(both[lanes.bits != 0], return_counts=True)
        keys = zip((kinds >> 5).tolist(), (kinds & 31).tolist(), number.tolist(), strict=True)
    if kinds.size > MOST:
        return None
    achieved = ideal = 0
    for bits, residue, warps in keys:
        each = part.masked.get((bits, residue, width))
        if each is None:
            each = part.masked[bits, residue, width] = _of_warp(part.relative[0], bits, residue, width)
        achieved += each[0] * warps
        ideal += each[1] * warps
    return achieved, ideal


def _of_warp(relative: np.ndarray, bits: int, residue: int, width: int) -> tuple[int, int]:
    """Return the cost of a warp whose lanes are given by `bits`; the address of its lane 0 has this residue."""
    there = bits >> _LANES & 1 == 1
    first = int(relative[there.argmax()])
    return remembered(sectors, np.where(there, relative - first, INACTIVE), residue + first & SECTOR - 1, width)
