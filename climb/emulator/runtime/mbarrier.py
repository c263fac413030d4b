"""mbarrier: barriers that are 64-bit words of shared memory, as `cuda::barrier` uses them.

PTX leaves the bits of the word open. Here they hold how many arrivals the current phase still waits for (bits 0 to 19),
how many arrivals each phase has (20 to 39), and the parity of the phase (63). An arrival returns the word from before;
a thread waits until the parity has changed. An arrival publishes the thread's writes, and a successful wait acquires
those of the others. Transaction bytes are not supported: expect_tx and bulk copies are refused when a kernel is
translated.
"""

from __future__ import annotations

import numpy as np

from ..checks import faults
from ..simt.groups import Group
from ..simt.site import Site
from .accesses import subgroup
from .atomics import apply_by_lane
from .shared_memory import shared_index, store_shared

_COUNT, _EXPECTED, _PHASE = np.uint64((1 << 20) - 1), np.uint64(20), np.uint64(63)


def init(group: Group, site: Site, address: np.ndarray, count: np.ndarray) -> None:
    """mbarrier.init: a phase of `count` arrivals."""
    many = count.astype(np.uint64)
    if ((many == 0) | (many > _COUNT)).any():
        bad = np.broadcast_to((many == 0) | (many > _COUNT), group.lanes.shape)
        faults.warp_mismatch(group, site, bad, f"an mbarrier must expect 1 to {int(_COUNT)} arrivals")
    store_shared(group, site, address, many << _EXPECTED | many)


def arrive(group: Group, site: Site, address: np.ndarray, count: np.ndarray, drop: bool) -> np.ndarray:
    """mbarrier.arrive, or arrive_drop if `drop`. Returns the word from before the arrival."""
    index = shared_index(group, site, address)
    clock, shadow = group.batch.clock, group.batch.shared_shadow
    if clock is not None:
        clock.fence(group.lanes)
    if shadow is not None:
        shadow.atomic(group, site, address)
    step = _dropped if drop else _arrived
    memory = group.batch.shared_view(site.element)
    before = apply_by_lane(group, memory, index, step, count.astype(np.uint64), None, True)
    over = (before & _COUNT) < count
    if over.any():
        faults.warp_mismatch(group, site, over, "more arrivals at an mbarrier than its phase has left")
    return before


def passed(group: Group, site: Site, address: np.ndarray, phase: np.ndarray, parity: bool) -> np.ndarray:
    """mbarrier.test_wait and try_wait: whether a phase is over. `phase`: a word that arrive returned, or a parity."""
    index = shared_index(group, site, address)
    if group.batch.shared_shadow is not None:
        group.batch.shared_shadow.atomic(group, site, address)
    now = group.batch.shared_view(site.element).take(index) >> _PHASE
    over = now != (phase.astype(np.uint64) & np.uint64(1) if parity else phase.view(np.uint64) >> _PHASE)
    if group.batch.clock is not None and over.any():
        part, _ = subgroup(group, over)
        group.batch.clock.acquire(part.lanes)
    return over


def _arrived(old: np.ndarray, count: np.ndarray, _: None) -> np.ndarray:
    """The word after an arrival; the last arrival of a phase begins the next one."""
    return _next(old, count, old >> _EXPECTED & _COUNT)


def _dropped(old: np.ndarray, count: np.ndarray, _: None) -> np.ndarray:
    """The word after an arrival of threads that will not take part in later phases."""
    return _next(old, count, (old >> _EXPECTED & _COUNT) - count)


def _next(old: np.ndarray, count: np.ndarray, expected: np.ndarray) -> np.ndarray:
    pending = (old & _COUNT) - count
    same = old >> _PHASE << _PHASE | expected << _EXPECTED
    return np.where(pending == 0, same ^ (np.uint64(1) << _PHASE) | expected, same | pending)


RUNTIME = {"mbarrier_init": init, "mbarrier_arrive": arrive, "mbarrier_passed": passed}
