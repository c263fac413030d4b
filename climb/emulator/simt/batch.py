"""The state of a batch of blocks that run together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from ..memory.device_memory import Allocation, DeviceMemory, buffer, distance
from ..memory.footprint import Footprint
from ..memory.stack import Stack
from .async_access import CommitGroups
from .asynchronous import Asynchronous
from .block_order import BlockOrder
from .changed_places import ChangedPlaces
from .cluster_barrier import ClusterBarrier
from .code import TranslatedKernel
from .journal import Journal
from .lanes import Lanes
from .launch_counts import LaunchCounts
from .matrix_products import ProductGroups
from .observers import (
    BatchSchedule,
    Clock,
    Dependence,
    GlobalShadow,
    InFlight,
    LateLoads,
    Parked,
    RegisterPool,
    SharedShadow,
    Trace,
)


class Batch:
    """Blocks `start` to `start + blocks` of the grid, in the order that `order` numbers them, running together.

    `shared` is uint8 (blocks, bytes), `local` uint8 (blocks * threads, bytes), both with rows rounded up to 16 bytes;
    `extents` tells which bytes of each space belong to a variable. `recent` maps sites to the allocation they last
    accessed. `exited` lists the lanes that have left the kernel. `clock` and the shadows are None unless a check needs
    them; `in_flight` is None until the first asynchronous operation, `late_loads` where the kernel has none, and
    `dependence` where no launch starts early.
    `local_written`, the shape of `local`, is 1 for each byte of local memory that has been written. `schedule` is None
    for the usual order. `copies` are cp.async's, `products` wgmma's, `asynchronous` holds mbarriers and the bulk
    operations; `registers` is None until a warpgroup changes its own. `parked`: the groups that wait at a barrier, by
    basic block. `grid_barrier`: the workspace of a cooperative launch. `stack`: made by the first call that needs one.
    `changes` counts the operations that have changed memory, and `journal` has their places, from the time when the
    scheduler is `watching` on. `footprint`: the batches' accesses to global memory while workers run others. `tick` is
    called before each basic block; None for nothing.
    """

    def __init__(
        self,
        kernel: TranslatedKernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        start: int,
        blocks: int,
        parameters: np.ndarray,
        memory: DeviceMemory,
        dynamic_bytes: int,
        counts: LaunchCounts,
        trace: Trace | None,
        cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> None:
        self.kernel, self.grid, self.block, self.start, self.blocks = kernel, grid, block, start, blocks
        self.threads = block[0] * block[1] * block[2]
        self.order = BlockOrder(grid, cluster)
        self.memory, self.counts, self.trace = memory, counts, trace
        self.dynamic_bytes = dynamic_bytes
        self.shared_bytes = kernel.layout.shared_span + dynamic_bytes
        self.local_bytes = kernel.layout.local_bytes
        self.extents = {
            "shared": kernel.layout.extents("shared", dynamic_bytes), "local": kernel.layout.extents("local"),
            "param": kernel.layout.extents("param"),
        }  # fmt: skip
        self.shared = _rows(blocks, self.shared_bytes)
        self.local = _rows(blocks * self.threads, self.local_bytes)
        self.parameters = parameters
        self.recent: dict[int, Allocation] = {}
        self.exited: list[Lanes] = []
        self.copies = CommitGroups(blocks * self.threads, ("cp.async.commit_group", "cp.async.wait_group"))
        self.products = ProductGroups(blocks * self.threads)
        self.asynchronous = Asynchronous()
        self.cluster_barrier = ClusterBarrier(blocks, self.threads, self.order.size)
        self.registers: RegisterPool | None = None
        self.parked: dict[int, Parked] = {}
        self.timer = 0
        self.watching, self.changes, self.journal = False, 0, Journal()
        self.places: ChangedPlaces | None = None  # made when the launch takes long
        self.strict_masks = False
        self.grid_barrier: Allocation | None = None
        self.stack: Stack | None = None
        self.check_uninitialised = self.check_in_flight = False
        self.local_written: np.ndarray | None = None
        self.clock: Clock | None = None
        self.shared_shadow: SharedShadow | None = None
        self.global_shadow: GlobalShadow | None = None
        self.in_flight: InFlight | None = None
        self.late_loads: LateLoads | None = None
        self.dependence: Dependence | None = None
        self.schedule: BatchSchedule | None = None
        self.footprint: Footprint | None = None
        self.tick: Callable[[Batch], None] | None = None
        self._values: dict[tuple[int, str], np.ndarray] = {}

    def parameter(self, offset: int, dtype: str) -> np.ndarray:
        """Return the parameter at a byte offset, as a (1,1) value."""
        found = self._values.get((offset, dtype))
        if found is None:
            size = np.dtype(dtype).itemsize
            found = np.frombuffer(self.parameters[offset : offset + size].tobytes(), dtype).reshape(1, 1)
            self._values[offset, dtype] = found
        return found

    @cached_property
    def parameter_memory(self) -> np.ndarray:
        """Return the parameters as a kernel that takes their address finds them: uint8, with the gaps between them."""
        layout, out = self.kernel.layout, buffer(self.kernel.layout.param_span)
        for name, offset in layout.parameters.items():
            place, size = layout.addresses[name][1], layout.sizes[name]
            out[place : place + size] = self.parameters[offset : offset + size]
        return out

    def shared_view(self, dtype: np.dtype) -> np.ndarray:
        """Return shared memory of all blocks, flat, as elements of `dtype`."""
        return self.shared.reshape(-1).view(dtype)

    def local_view(self, dtype: np.dtype) -> np.ndarray:
        """Return local memory of all threads, flat, as elements of `dtype`."""
        return self.local.reshape(-1).view(dtype)

    def note_change(self, data: np.ndarray, index: np.ndarray, old: np.ndarray | None = None) -> None:
        """Note that elements of a view of memory are about to change, or have changed from `old`; called while
        `watching`."""
        self.changes += 1
        self.journal.write(data, index, old)
        if self.places is not None:
            self.places.note(data, index)

    def find(self, address: int, nbytes: int) -> Allocation | None:
        """Return the allocation that holds the bytes, in the caller's memory or among the module's variables; or
        None."""
        return self.memory.find(address, nbytes) or self.kernel.variables.find(address, nbytes)

    def nearest(self, address: int) -> Allocation | None:
        """Return the allocation nearest to an address, live or freed; None if there is none."""
        found = [m.nearest(address) for m in (self.memory, self.kernel.variables)]
        return min((a for a in found if a is not None), key=lambda a: distance(a, address), default=None)

    def block_index(self, block: int) -> tuple[int, int, int]:
        """Return the position (x, y, z) in the grid of a block of this batch."""
        return self.order.index(self.start + block)

    def thread_index(self, thread: int) -> tuple[int, int, int]:
        """Return the position (x, y, z) in its block of a linear thread index."""
        return (
            thread % self.block[0],
            thread // self.block[0] % self.block[1],
            thread // (self.block[0] * self.block[1]),
        )

    def alive(self) -> np.ndarray:
        """Return the threads that have not left the kernel: bool (blocks, threads)."""
        alive = np.ones(self.blocks * self.threads, np.bool_)
        for lanes in self.exited:
            alive[lanes.linear()] = False
        return alive.reshape(self.blocks, self.threads)


def _rows(rows: int, nbytes: int) -> np.ndarray:
    """Return zeroed uint8 (rows, nbytes rounded up to a multiple of 16), aligned to 16 bytes."""
    width = -(-nbytes // 16) * 16
    return buffer(rows * width).reshape(rows, width)
