"""malloc and free of a kernel."""

from __future__ import annotations

import numpy as np

from ..checks.heap_faults import bad_free
from ..memory.device_heap import EMPTY, LIVE, DeviceHeap, Snapshot
from ..memory.device_memory import DeviceMemory
from ..simt.groups import Group
from ..simt.launch_counts import LaunchCounts
from ..simt.site import Site


def malloc(group: Group, site: Site, nbytes: np.ndarray) -> np.ndarray:
    """Return the addresses of new blocks, int64 (blocks, threads); 0 where the heap has no room."""
    memory, lanes = group.batch.memory, group.lanes
    if memory.heap is None:
        memory.heap = DeviceHeap(memory)
    memory.heap_sites.append(site)
    sizes = np.broadcast_to(nbytes, lanes.shape).reshape(-1)
    # A size is unsigned: one with the top bit set is more than any heap has.
    sizes = np.where(sizes < 0, np.iinfo(np.int64).max // 2, sizes)
    return memory.heap.allocate(sizes, len(memory.heap_sites) - 1).reshape(lanes.shape)


def free(group: Group, site: Site, pointer: np.ndarray) -> None:
    """Free blocks; a null pointer frees nothing. Raises BadFree for a pointer that is not to the start of a block."""
    memory, lanes = group.batch.memory, group.lanes
    pointer = np.broadcast_to(pointer, lanes.shape)
    given = pointer != 0
    if not given.any():
        return
    if memory.heap is None or not memory.heap.blocks.starts.size:
        bad_free(group, site, pointer, given)
    blocks = memory.heap.blocks
    index = np.maximum(blocks.find(pointer), 0)
    bad = given & ((blocks.starts[index] != pointer) | (blocks.freed[index] != LIVE))
    chosen, counts = np.unique(index[given], return_counts=True)
    if not bad.any() and (counts > 1).any():
        bad = given & (index == chosen[counts > 1][0])
    if bad.any():
        bad_free(group, site, pointer, bad)
    memory.heap_sites.append(site)
    memory.heap.free(chosen, len(memory.heap_sites) - 1)


def note_leaks(memory: DeviceMemory, before: Snapshot | None, counts: LaunchCounts) -> None:
    """Note the blocks that a launch has allocated but not freed; `before` is the heap before the launch."""
    if memory.heap is None:
        return
    old = before.blocks.starts.size if before is not None else 0
    blocks = memory.heap.blocks
    left = np.flatnonzero(blocks.freed[old:] == LIVE) + old
    lines: dict[int, list[int]] = {}
    for event, size in zip(blocks.made[left].tolist(), blocks.sizes[left].tolist(), strict=True):
        lines.setdefault(memory.heap_sites[event].location.line, []).append(size)
    for line, sizes in sorted(lines.items()):
        many = f"{len(sizes)} blocks, {sum(sizes)} bytes," if len(sizes) > 1 else f"1 block of {sizes[0]} bytes"
        have = "have" if len(sizes) > 1 else "has"
        counts.notes.append(f"{many} allocated in line {line} {have} not been freed when the kernel ends")


def restore_heap(memory: DeviceMemory, before: Snapshot | None) -> None:
    """Go back to the heap before a launch."""
    if memory.heap is not None:
        memory.heap.restore(before if before is not None else EMPTY)


RUNTIME = {"heap_malloc": malloc, "heap_free": free}
