"""The special registers: %tid, %ctaid, %laneid and the like."""

from __future__ import annotations

import numpy as np

from ..isa.move import SPECIAL_TYPES
from ..isa.types import DTYPES
from ..memory.device_memory import BLOCK_WINDOW
from ..memory.layout import RESERVED, RESERVED_BYTES
from ..simt.batch import Batch
from .cooperative import MULTIPROCESSORS


def special_registers(batch: Batch) -> dict[str, np.ndarray]:
    """Return the special registers that the kernel reads, by name."""
    kernel, out = batch.kernel, {}
    linear = np.arange(batch.start, batch.start + batch.blocks).reshape(-1, 1)
    thread = np.arange(batch.threads).reshape(1, -1)
    out["%ctaid.x"], out["%ctaid.y"], out["%ctaid.z"] = batch.order.index(linear)
    out["%tid.x"], out["%tid.y"] = thread % batch.block[0], thread // batch.block[0] % batch.block[1]
    out["%tid.z"] = thread // (batch.block[0] * batch.block[1])
    for name, value in (("%ctaid.", batch.grid), ("%tid.", batch.block)):
        for axis, extent in zip("xyz", value, strict=True):
            if extent == 1:
                out[name + axis] = np.zeros((1, 1), np.uint32)
    for index, axis in enumerate("xyz"):
        out[f"%ntid.{axis}"] = np.array([[batch.block[index]]])
        out[f"%nctaid.{axis}"] = np.array([[batch.grid[index]]])
    out.update(_cluster_registers(batch, linear))
    out.update(_reserved_shared_memory(batch))
    lane = thread % 32
    out["%laneid"], out["%warpid"] = lane, thread // 32
    out["%nwarpid"] = np.array([[-(-batch.threads // 32)]])
    out["%smid"], out["%nsmid"] = linear % MULTIPROCESSORS, np.array([[MULTIPROCESSORS]])
    one = np.ones((), np.uint64)
    bit = one << lane.astype(np.uint64)
    full = np.uint64(0xFFFFFFFF)
    out["%lanemask_eq"], out["%lanemask_lt"], out["%lanemask_le"] = bit, bit - one, 2 * bit - one
    out["%lanemask_ge"], out["%lanemask_gt"] = full & ~(bit - one), full & ~(2 * bit - one)
    workspace = batch.grid_barrier.address if batch.grid_barrier is not None else 0
    out["%envreg1"], out["%envreg2"] = np.array([[workspace >> 32]]), np.array([[workspace & 0xFFFFFFFF]])
    wanted = {name: value for name, value in out.items() if name in kernel.special_registers}
    registers = {name: value.astype(DTYPES[SPECIAL_TYPES[name]]) for name, value in wanted.items()}
    # The compiler may read a register that no path has written; its value does not matter.
    for name in kernel.code.blocks[0].live:
        registers.setdefault(name, kernel.zeros[name])
    return registers


def _reserved_shared_memory(batch: Batch) -> dict[str, np.ndarray]:
    """Return the registers about the part of shared memory that the system keeps: its ends, and the offset of each
    use."""
    _, start = batch.kernel.layout.addresses.get(RESERVED, ("shared", 0))
    end = start + RESERVED_BYTES
    offsets = {"begin": start, "end": end, "cap": end, "0": start, "1": start}
    ranks = np.arange(batch.start, batch.start + batch.blocks).reshape(-1, 1) % batch.order.size * BLOCK_WINDOW
    if batch.order.size == 1:
        ranks = ranks[:1]
    return {f"{RESERVED}_{what}": ranks + offset for what, offset in offsets.items()}


def _cluster_registers(batch: Batch, linear: np.ndarray) -> dict[str, np.ndarray]:
    """Return the registers about clusters; without clusters, each block is its own cluster. `linear`: (blocks, 1)."""
    order = batch.order
    out = {
        "%cluster_ctarank": linear % order.size,
        "%cluster_nctarank": np.array([[order.size]]),
        "%is_explicit_cluster": np.array([[order.size > 1]]),
        "%dynamic_smem_size": np.array([[batch.dynamic_bytes]]),
    }
    position, inside = order.cluster_index(linear), order.index_in_cluster(linear)
    for number, axis in enumerate("xyz"):
        out[f"%clusterid.{axis}"], out[f"%cluster_ctaid.{axis}"] = position[number], inside[number]
        out[f"%nclusterid.{axis}"] = np.array([[order.clusters[number]]])
        out[f"%cluster_nctaid.{axis}"] = np.array([[order.cluster[number]]])
    return out
