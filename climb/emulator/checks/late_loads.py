"""Loads of shared memory that are still on their way when their thread hands the memory back to a bulk copy.

`translation.late_loads` finds such loads and explains them. Generated code reports when one is issued, when it has
ended, and when its thread arrives at a barrier while it is in flight. It then counts as made after the arrival, in a
shadow of shared memory of its own, which only the writes of the asynchronous proxy are compared with.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import LateLoad, Race
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import WARP, Lanes, broadcast_to
from ..simt.site import Site
from .cluster_shadow import ClusterShadow
from .races import thread_text
from .shared_shadow import SharedShadow


class LateLoads:
    """The late loads of a batch that are in flight, by their numbers.

    `shadow`: those that have met an arrival. Addresses are int64 (blocks, warps * 32), -1 where no load is in flight.
    """

    def __init__(self, batch: Batch, shadow: SharedShadow | ClusterShadow) -> None:
        self._batch, self.shadow = batch, shadow
        self._warps = -(-batch.threads // WARP)
        self._addresses: dict[int, np.ndarray] = {}
        self._sites: dict[int, Site] = {}
        shadow.is_written(0, batch.shared.shape[1])  # the ordinary shadow finds reads of what nothing has written

    def load(self, group: Group, site: Site, start: np.ndarray, number: int) -> None:
        """Record that lanes issue a load from `start`, the site's offset included; -1 for lanes that do not load from
        their own block's memory."""
        if number not in self._sites:
            self._sites[number] = replace(site, offset=0)
            self._addresses[number] = np.full((self._batch.blocks, self._warps * WARP), -1, np.int64)
        self._addresses[number][group.lanes.block, group.lanes.thread] = start

    def end(self, group: Group, numbers: tuple[int, ...]) -> None:
        """Record that these loads have ended for the lanes."""
        for number in numbers:
            if number in self._addresses:
                self._addresses[number][group.lanes.block, group.lanes.thread] = -1

    def release(self, group: Group, numbers: tuple[int, ...]) -> None:
        """Enter these loads as made now, for the whole warps of the lanes: one lane may arrive for its warp."""
        lanes = group.lanes
        warps = np.unique(broadcast_to(lanes.block * self._warps + lanes.thread // WARP, lanes.shape))
        for number in numbers:
            if number not in self._addresses:
                continue
            rows = self._addresses[number].reshape(-1, WARP)[warps]
            row, lane = np.nonzero(rows >= 0)
            if row.size:
                block, warp = np.divmod(warps[row], self._warps)
                late = Lanes(block.reshape(1, -1), (warp * WARP + lane).reshape(1, -1), lanes.threads, True)
                start = rows[row, lane].reshape(1, -1)
                self.shadow.enter_read(Group(self._batch, late, {}), self._sites[number], start)

    def begins(self, group: Group, site: Site, address: np.ndarray, *where: np.ndarray) -> None:
        """Check the start of a write by the asynchronous proxy. The parameters are those of `ClusterShadow.begins`.
        Raises LateLoad."""
        try:
            self.shadow.begins(group, site, address, *where)
        except Race as race:
            other, details = race.other, race.details
            file = other.file.rsplit("/", 1)[-1]
            raise LateLoad(
                f"race in shared memory: this asynchronous {site.asynchronous} writes byte {details['offset']} of "
                f"{details['name']}, which {thread_text(other, race.where)} loads at {file}:{other.line}: "
                f"{other.text.rstrip('; ')}; the load may still be on its way, because nothing has used its value when "
                "its warp hands the memory back, and an arrival at a barrier does not wait for loads",
                race.where,
                **details,
            ) from None
