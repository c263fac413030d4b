"""barrier.cluster: the barrier of all threads of a cluster. Waiting is the scheduler's part."""

from __future__ import annotations

import numpy as np

from ..checks.faults import place_of
from ..errors import BarrierDivergence
from ..simt.groups import Group
from ..simt.site import Site


def arrive(group: Group, site: Site, releases: bool) -> None:
    """barrier.cluster.arrive; unless it is relaxed, it `releases` what the thread has written."""
    batch = group.batch
    clock = batch.clock
    if clock is not None and releases:
        phase = batch.cluster_barrier.arrived[group.lanes.block, group.lanes.thread] & 1
        clock.arrive_at_cluster(group.lanes, np.broadcast_to(phase, group.lanes.shape).ravel())
    again = batch.cluster_barrier.arrive(group.lanes, clock.events.now if clock is not None and releases else 0)
    if again.any():
        raise BarrierDivergence(
            "barrier divergence: a thread arrives at the barrier of the cluster twice without waiting in between",
            place_of(group, site, again),
            waiting=0,
            exited=0,
        )


def passed(group: Group) -> None:
    """barrier.cluster.wait, when all threads of the cluster have arrived."""
    batch = group.batch
    if batch.clock is not None:
        phase = batch.cluster_barrier.phase(group.lanes)
        batch.clock.synchronize_cluster(group.lanes, batch.cluster_barrier.when(phase), phase)
    batch.cluster_barrier.passed(group.lanes)


RUNTIME = {"cluster_arrive": arrive, "cluster_passed": passed}
