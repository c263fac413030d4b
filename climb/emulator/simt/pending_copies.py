"""Asynchronous copies that threads have started and not yet waited for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .lanes import Lanes, Selection, take
from .site import Site


@dataclass(frozen=True)
class Copy:
    """One copy of some lanes: `address` in shared memory, `value` in containers, `number` of the commit group."""

    site: Site
    lanes: Lanes
    address: np.ndarray
    value: np.ndarray
    number: np.ndarray

    def part(self, where: np.ndarray) -> Copy:
        """The copy restricted to the lanes for which `where`, bool (lanes,), holds."""
        flat, shape = np.flatnonzero(where), self.lanes.shape
        selection = Selection(columns=flat) if self.lanes.ragged else Selection(flat=flat)
        address, value = (take(each, selection, shape) for each in (self.address, self.value))
        return Copy(self.site, selection.lanes(self.lanes), address, value, self.number[flat])


class PendingCopies:
    """The copies of a batch. `commits`, int64 (threads,), counts the groups that each thread has committed; the count
    is the number of the group that is still open."""

    def __init__(self, threads: int) -> None:
        self.commits = np.zeros(threads, np.int64)
        self.copies: list[Copy] = []
