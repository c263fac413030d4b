"""Whole warps, which matrix instructions need, and their registers as rows of 32 lanes."""

from __future__ import annotations

import numpy as np

from ...checks import faults
from ...simt.groups import Group
from ...simt.site import Site
from ...simt.warps import from_rows, present, to_rows

Registers = tuple[np.ndarray, ...]


def require_full_warps(group: Group, site: Site) -> None:
    """Raise WarpMismatch if a warp has fewer than 32 lanes."""
    lanes = group.lanes
    if lanes.layout.kind == "whole":
        return
    here = present(lanes, lanes.layout.rows)
    if not here.all():
        partial = here & ~here.all(axis=1, keepdims=True)
        faults.warp_mismatch(
            group, site, from_rows(lanes, partial), "a matrix instruction needs all 32 lanes of the warp"
        )


def rows_of(group: Group, *registers: Registers) -> list[list[np.ndarray]]:
    """Return several operands, each a tuple of registers, as lists of matrices (warps, 32)."""
    flat = to_rows(group.lanes, *(each for many in registers for each in many))
    ends = np.cumsum([len(many) for many in registers]).tolist()
    return [flat[end - len(many) : end] for many, end in zip(registers, ends, strict=True)]


def count_products(group: Group, site: Site, instructions: int) -> None:
    """Count products that warps or warpgroups have issued."""
    group.batch.counts.products[site.index] = group.batch.counts.products.get(site.index, 0) + instructions
