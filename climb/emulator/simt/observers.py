"""Interfaces of what may observe or steer a batch of blocks while it runs: a trace, the clock and shadow memory of the
checks, and an adverse schedule.

The classes live in `counters`, `checks` and `execution`, above this package; a batch only holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

import numpy as np

from ..memory.device_memory import Allocation
from .async_access import AsyncAccess
from .lanes import Lanes
from .site import Site


class Events(Protocol):
    """The accesses of a launch in order; see `checks.happens_before`."""

    @property
    def now(self) -> int:
        """The stamp that separates all earlier accesses from all later ones."""

    def next(self, site: Site) -> int:
        """Return the stamp of an access that happens now."""

    def site(self, stamp: int) -> Site:
        """Return the instruction of an access."""


class Clock(Protocol):
    """When the threads of a batch last synchronised; see `checks.happens_before`. `shape`: (blocks, threads)."""

    events: Events
    shape: tuple[int, int]

    def unordered(self, before: np.ndarray, lanes: Lanes, ids: np.ndarray, launch_wide: bool) -> np.ndarray:
        """Return which accesses stamped `before` are not ordered before one by `lanes`: bool."""

    def synchronize(self, gate: str, lanes: Lanes) -> bool:
        """Record that all of `lanes` have waited for each other."""

    def synchronize_masks(self, lanes: Lanes, mask: np.ndarray, writes: bool) -> None:
        """Record that lanes have waited for the lanes that their masks name."""

    def arrive_at(self, lanes: Lanes, barriers: np.ndarray) -> None:
        """Record that lanes have arrived at named barriers without waiting."""

    def synchronize_warps(
        self, blocks: np.ndarray, waiting: np.ndarray, arrived: np.ndarray, barriers: np.ndarray
    ) -> None:
        """Record that some warps of blocks have met at named barriers."""

    def exchange(self, lanes: Lanes) -> None:
        """Record that lanes have exchanged values by a warp operation that orders no accesses."""

    def fence(self, lanes: Lanes, wide: bool = True) -> None:
        """Record that lanes have executed a fence; a `wide` one also for threads of other blocks."""

    def acquire(self, lanes: Lanes) -> None:
        """Record that lanes have executed an acquiring access."""

    def complete_relaxed_loads(self, lanes: Lanes, wide: bool) -> None:
        """Record that lanes have executed a fence, after which their relaxed loads acquire."""

    def load_relaxed(self, lanes: Lanes) -> None:
        """Record that lanes have executed a relaxed or volatile load."""

    def hand_over(self, lanes: Lanes, address: np.ndarray, gives: bool, takes: bool, acquires: bool = True) -> None:
        """Record that lanes have used a place in global memory through which blocks order their accesses."""


class SharedShadow(Protocol):
    """The accesses to shared memory so far; see `checks.shared_shadow`."""

    def synchronize(self, gate: str, lanes: Lanes) -> None:
        """Record that all of `lanes` have waited for each other."""

    def read(self, group: object, site: Site, address: np.ndarray) -> None:
        """Enter a load."""

    def write(self, group: object, site: Site, address: np.ndarray, changed: Callable[[], np.ndarray]) -> np.ndarray:
        """Enter a store."""

    def begins(self, group: object, site: Site, address: np.ndarray) -> None:
        """Enter the start of an asynchronous access."""

    def atomic(self, group: object, site: Site, address: np.ndarray) -> None:
        """Enter an atomic operation."""


class InFlight(Protocol):
    """The asynchronous accesses in flight; see `checks.in_flight`."""

    def begin(self, access: AsyncAccess) -> None:
        """Enter an asynchronous operation that starts to access memory."""

    def end(self, access: AsyncAccess, done: AsyncAccess, left: AsyncAccess | None = None) -> None:
        """Handle a wait that covers an access, or a part of it."""

    def check_shared(self, group: object, site: Site, address: np.ndarray) -> None:
        """Check an ordinary access to shared memory."""

    def check_global(self, group: object, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Check an ordinary access to global memory."""


class LateLoads(Protocol):
    """`checks.late_loads.LateLoads`."""

    def load(self, group: object, site: Site, start: np.ndarray, number: int) -> None:
        """Record that lanes issue a load."""

    def end(self, group: object, numbers: tuple[int, ...]) -> None:
        """Record that loads have ended."""

    def release(self, group: object, numbers: tuple[int, ...]) -> None:
        """Record that lanes arrive at a barrier while loads are in flight."""

    def begins(self, group: object, site: Site, address: np.ndarray, *where: np.ndarray) -> None:
        """Check the start of a write by the asynchronous proxy."""


class Dependence(Protocol):
    """The launches that may still run beside this one; see `checks.dependent_launches`."""

    def wait(self, group: object, site: Site) -> None:
        """Record that lanes wait for the launch before."""

    def trigger(self, group: object) -> None:
        """Record that lanes let the next launch start."""

    def access(self, group: object, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Check an access to global memory."""


class GlobalShadow(Protocol):
    """The accesses to global memory so far; see `checks.global_shadow`."""

    thorough: set[int]

    def keep(self, allocation: Allocation) -> None:
        """Copy an allocation before the launch first changes it."""

    def load(self, group: object, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Enter a load."""

    def see_atomics(self, group: object, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Enter a volatile or ordered load."""

    def store(
        self, group: object, site: Site, allocation: Allocation, address: np.ndarray, changed: Callable[[], np.ndarray]
    ) -> np.ndarray:
        """Enter a store."""

    def begins(self, group: object, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Enter the start of an asynchronous write."""

    def atomic(self, group: object, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Enter an atomic operation."""


class Parked(Protocol):
    """A group of lanes that waits."""

    lanes: Lanes


class RegisterPool(Protocol):
    """The registers that the warps of each block hold; see `runtime.warpgroups`."""

    held: np.ndarray
    changes: np.ndarray
    sites: dict[tuple[int, int], Site]


class BatchSchedule(Protocol):
    """The choices of an adverse schedule; see `execution.schedules`."""

    random: Random

    def lands_early(self) -> bool:
        """Return whether the operation issued now takes effect at once."""


class Trace(Protocol):
    """Records the accesses of one warp, see `counters.trace`, or the events of a block, see `counters.events`."""

    def record(self, group: object, site: Site, space: str, address: np.ndarray, allocation: str) -> None:
        """Record an access if the traced warp takes part in it."""

    def note(self, group: object, kind: str, site: Site | None, places: np.ndarray | None, number: int) -> None:
        """Note something other than an access: see `counters.events`."""
