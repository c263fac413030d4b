"""Programmatic dependent launches: find accesses that a launch makes before the launches before it have ended.

The emulator runs launches one after the other. On a GPU, a dependent launch may start as soon as every block of the
launch before it has executed `griddepcontrol.launch_dependents` or has ended. That orders no accesses: those of the
dependent launch come after the launch before only in threads that have executed `griddepcontrol.wait`, or have since
synchronised with one that has (PTX ISA, "griddepcontrol"; CUDA C++ Programming Guide, "Programmatic Dependent Launch
and Synchronization").

So a launch that executes `launch_dependents` keeps its accesses (`EarlierLaunch`), and the dependent launch after it
compares its own accesses with them. A launch that does not execute it lets no launch start early, and costs nothing
here. Two accesses that are both volatile, ordered or atomic may overlap. A volatile or ordered load of a value that the
launch before wrote in such a way is taken for a wait, because the value may be a flag. A wait counts in its own block,
or cluster: if one block waits for all, the others must wait as well.

No wait covers `ld.global.nc`, which the compiler makes of loads through pointers that are `const` and `__restrict__`.
It promises that its memory is read-only as long as the kernel runs (PTX ISA, "ld.global.nc"), so it may be executed
before a wait that precedes it. NVRTC 12.9 moves such loads for sm_90.

The wait is for the launch before to end, and that launch need not have waited itself. If none of its threads has, the
launches before it may still run: `LaunchChain` keeps which launches run at the start of the next one, and which of them
even after its wait.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn
from weakref import WeakKeyDictionary

import numpy as np

from climb.toolchain.names import demangled

from ..errors import EarlyAccess
from ..memory.device_memory import Allocation, DeviceMemory
from ..simt.batch import Batch
from ..simt.block_order import BlockOrder
from ..simt.code import Code, TranslatedKernel
from ..simt.groups import Group
from ..simt.lanes import WARP
from ..simt.site import Site
from .earlier_launches import EarlierLaunch, numbers
from .faults import place_of
from .races import NOUNS, VERBS

TRIGGER = "griddepcontrol.launch_dependents"

_dependent: ContextVar[bool] = ContextVar("dependent", default=False)


@contextmanager
def dependent_launches() -> Iterator[None]:
    """Start the launches inside the `with` block as programmatic dependent launches: `with dependent_launches():
    kernel(...)`"""
    token = _dependent.set(True)
    try:
        yield
    finally:
        _dependent.reset(token)


def starts_early(chosen: bool | None) -> bool:
    """Return whether a launch may start early: `chosen`, or for None the setting made by `dependent_launches`."""
    return _dependent.get() if chosen is None else chosen


def lets_next_start(code: Code) -> bool:
    """Return whether a kernel has an instruction that lets the next launch start early."""
    return any(TRIGGER in site.ptx for site in code.sites)


class Dependence:
    """The relation of a launch to the earlier ones in its chain, shared by its batches.

    `early`: launches that may still run when this one starts; `late`: those among them that may run even after its
    wait. `record`: the launch's own accesses, for the next launch; None if it lets no launch start early.
    """

    def __init__(
        self, blocks: int, early: tuple[EarlierLaunch, ...], late: tuple[EarlierLaunch, ...],
        record: EarlierLaunch | None,
    ) -> None:  # fmt: skip
        self.early, self.late, self.record = early, late, record
        self.triggered = False
        self._waited, self._hasty = np.zeros((2, blocks), np.bool_)

    def note_wait(self, blocks: np.ndarray) -> None:
        """Record that threads of these blocks have waited."""
        self._waited[blocks] = True

    def note_trigger(self, blocks: np.ndarray) -> None:
        """Record that threads of these blocks, without a wait before, let the next launch start."""
        self._hasty[blocks] = True

    @property
    def left_at_end(self) -> tuple[EarlierLaunch, ...]:
        """The launches that may still run when this one has ended."""
        return self.late if self._waited.any() else self.early

    @property
    def left_at_trigger(self) -> tuple[EarlierLaunch, ...]:
        """The other launches that may still run when the next one starts: after every block's trigger or end. If at
        least one of these follows a wait, only those in `late`."""
        return self.late if (self._waited & ~self._hasty).any() else self.early


class LaunchChain:
    """The launches of a memory in order, as far as they may still run when the next one starts."""

    def __init__(self) -> None:
        self._early: tuple[EarlierLaunch, ...] = ()
        self._late: tuple[EarlierLaunch, ...] = ()

    def begin(
        self, kernel: TranslatedKernel, order: BlockOrder, block: tuple[int, int, int], dependent: bool, lets: bool
    ) -> Dependence | None:
        """Begin the next launch, which is `dependent`, or `lets` the one after it start early; None if neither
        matters."""
        if not dependent:
            self._early = self._late = ()
        if not lets and not self._early:
            return None
        record = EarlierLaunch(kernel, order, block) if lets else None
        return Dependence(math.prod(order.grid), self._early, self._late, record)

    def end(self, launch: Dependence | None) -> None:
        """End the launch that began last; None if it failed, or is not related to any other."""
        if launch is None:
            self._early = self._late = ()
            return
        self._early = self._late = launch.left_at_end
        if launch.triggered:
            more = [one for one in launch.left_at_trigger if one not in self._late]
            self._early = (launch.record, *more, *self._late)


_chains: WeakKeyDictionary[DeviceMemory, LaunchChain] = WeakKeyDictionary()


def chain_of(memory: DeviceMemory) -> LaunchChain:
    """Return the chain of the launches on a memory."""
    return _chains.setdefault(memory, LaunchChain())


class BatchDependence:
    """Follows the waits and the accesses to global memory of a batch."""

    def __init__(self, launch: Dependence, batch: Batch) -> None:
        self._launch, self._batch = launch, batch
        self._covered = np.zeros((batch.blocks, batch.threads), np.bool_)
        self._waits: np.ndarray | None = None  # the stamp of each warp's first wait: int64 (blocks, warps)

    def wait(self, group: Group, site: Site) -> None:
        """Record griddepcontrol.wait."""
        if self._launch.early:
            everywhere = np.ones(group.lanes.shape, np.bool_)
            self._launch.note_wait(self._batch.start + np.unique(group.lanes.block))
            self._cover(group, site, everywhere)

    def trigger(self, group: Group) -> None:
        """Record griddepcontrol.launch_dependents."""
        self._launch.triggered = True
        if self._launch.early:
            block = np.broadcast_to(group.lanes.block, group.lanes.shape)
            self._launch.note_trigger(self._batch.start + np.unique(block[~self._is_covered(group)]))

    def access(self, group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Check an access to global memory. Raises EarlyAccess."""
        launch = self._launch
        for earlier in launch.early:
            if site.strong and site.action == "load":
                seen = earlier.flags(group, site, allocation, address)
                if seen is not None:
                    self._cover(group, site, seen)
            stamps = earlier.conflicts(group, site, allocation, address)
            if stamps is None:
                continue
            waits = earlier not in launch.late
            conflicts = stamps != 0
            bad = conflicts & ~self._is_covered(group) if waits and not site.read_only else conflicts
            if bad.any():
                self._report(group, site, allocation, address, bad, earlier, stamps, waits)
        if launch.record is not None:
            launch.record.note(group, site, allocation, address)

    def _cover(self, group: Group, site: Site, where: np.ndarray) -> None:
        """Record that lanes are ordered after the launches before, from now on."""
        block, thread = (np.broadcast_to(each, where.shape)[where] for each in (group.lanes.block, group.lanes.thread))
        self._covered[block, thread] = True
        if self._waits is None:
            self._waits = np.zeros((self._batch.blocks, -(-self._batch.threads // WARP)), np.int64)
        new = self._waits[block, thread // WARP] == 0
        if new.any():
            stamp = self._batch.clock.events.next(site)
            self._waits[block[new], thread[new] // WARP] = stamp | numbers(group)[where][new]

    def _is_covered(self, group: Group) -> np.ndarray:
        """Return the lanes that have waited, or have synchronised with a thread of their block or cluster that had:
        bool (blocks, threads)."""
        lanes = group.lanes
        found = np.broadcast_to(self._covered[lanes.block, lanes.thread], lanes.shape)
        if self._waits is None or found.all():
            return found
        size = self._batch.order.size  # a barrier of the cluster may lie between
        before = self._waits.reshape(len(self._waits) // size, -1)[lanes.block // size]
        ids = numbers(group)[:, :, None]
        ordered = ~self._batch.clock.unordered(before, lanes, ids, True, reads=True)
        found = found | ((before != 0) & ordered).any(axis=2)
        self._covered[lanes.block, lanes.thread] = found
        return found

    def _report(
        self, group: Group, site: Site, allocation: Allocation, address: np.ndarray, bad: np.ndarray,
        earlier: EarlierLaunch, stamps: np.ndarray, waits: bool,
    ) -> NoReturn:  # fmt: skip
        stamp = int(stamps[bad][0])
        at = int(np.broadcast_to(address + site.offset, bad.shape)[bad][0])
        before, other = earlier.place(stamp)
        where = place_of(group, site, bad)
        offset = at - allocation.address
        if waits and site.read_only and bool(self._is_covered(group)[bad][0]):
            why = (
                "an ld.global.nc promises that its memory is read-only while the kernel runs, so it may be executed "
                "before the griddepcontrol.wait that precedes it"
            )
        elif waits:
            why = "this launch may start before that one has ended, and no griddepcontrol.wait precedes this access"
        else:
            why = "a launch between the two has not waited for that one, so waiting for it is not enough"
        file = other.file.rsplit("/", 1)[-1]
        thread, block = (",".join(map(str, each)) for each in (other.thread, other.block))
        raise EarlyAccess(
            f"race between launches: this {NOUNS[site.action]} of byte {offset} of {allocation.name}, which "
            f"thread ({thread}) of block ({block}) of {demangled(other.kernel)}, a launch before, "
            f"{VERBS[before.action]} at {file}:{other.line}: {other.text.rstrip('; ')}; {why}",
            where,
            space="global",
            address=at,
            allocation=allocation,
            name=allocation.name,
            offset=offset,
            other=other,
            same_warp=False,
        )
