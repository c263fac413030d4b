"""Barriers that are words of shared memory: mbarrier, as cuda::barrier uses it.

The 64 bits of one, which PTX leaves open, hold here how many arrivals its phase still waits for (bits 0 to 19), how
many each phase has (20 to 39), and the parity of the phase (63). Whoever arrives is given what the word was before, and
waits until the parity is another. An arrival makes visible what its thread wrote, a wait that succeeds takes it over.
Bytes that copies announce are not known here: expect_tx and bulk copies are refused when a kernel is translated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import access, faults
from .atomics import STEPS, _run

if TYPE_CHECKING:
    from .access import Site
    from .groups import Group

_COUNT, _EXPECTED, _PHASE = np.uint64((1 << 20) - 1), np.uint64(20), np.uint64(63)


def init(group: Group, site: Site, address: np.ndarray, count: np.ndarray) -> None:
    """mbarrier.init: a phase of `count` arrivals."""
    many = count.astype(np.uint64)
    if ((many == 0) | (many > _COUNT)).any():
        bad = np.broadcast_to((many == 0) | (many > _COUNT), group.lanes.shape)
        faults.warp(group, site, bad, f"an mbarrier of no arrival, or of more than {int(_COUNT)}")
    access.store_shared(group, site, address, many << _EXPECTED | many)


def arrive(group: Group, site: Site, address: np.ndarray, count: np.ndarray, drop: bool) -> np.ndarray:
    """mbarrier.arrive, or arrive_drop: the word before."""
    index = access._shared_index(group, site, address)
    clock, shadow = group.batch.clock, group.batch.shadow
    if clock is not None:
        clock.fence(group.lanes)
    if shadow is not None:
        shadow.atomic(group, site, address)
    how = "drop" if drop else "arrive"
    before = _run(group, group.batch.shared_view(site.element), index, how, count.astype(np.uint64), None, True)
    over = (before & _COUNT) < count
    if over.any():
        faults.warp(group, site, over, "more arrivals at an mbarrier than its phase has left")
    return before


def passed(group: Group, site: Site, address: np.ndarray, phase: np.ndarray, parity: bool) -> np.ndarray:
    """mbarrier.test_wait and try_wait: whether the phase of a word that arrive gave, or of a parity, is over."""
    index = access._shared_index(group, site, address)
    if group.batch.shadow is not None:
        group.batch.shadow.atomic(group, site, address)
    now = group.batch.shared_view(site.element).take(index) >> _PHASE
    over = now != (phase.astype(np.uint64) & np.uint64(1) if parity else phase.view(np.uint64) >> _PHASE)
    if group.batch.clock is not None and over.any():
        part, _ = access._part(group, over)
        group.batch.clock.acquire(part.lanes)
    return over


def _arrived(old: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The word after an arrival: of the next phase if it was the last one."""
    return _next(old, count, old >> _EXPECTED & _COUNT)


def _dropped(old: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The word after an arrival of threads that take no part in later phases."""
    return _next(old, count, (old >> _EXPECTED & _COUNT) - count)


def _next(old: np.ndarray, count: np.ndarray, expected: np.ndarray) -> np.ndarray:
    pending = (old & _COUNT) - count
    same = old >> _PHASE << _PHASE | expected << _EXPECTED
    return np.where(pending == 0, same ^ (np.uint64(1) << _PHASE) | expected, same | pending)


STEPS |= {"arrive": _arrived, "drop": _dropped}
RUNTIME = {"mbarrier_init": init, "mbarrier_arrive": arrive, "mbarrier_passed": passed}
