"""Issue asynchronous operations and wait for them: in memory, in the commit groups, and in the search for races."""

from __future__ import annotations

from ..checks.in_flight import InFlight
from ..simt.async_access import CommitGroups, Covered, Pending
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.site import Site


def issue(batch: Batch, operation: Pending) -> None:
    """Start an operation. Raises Race and AsyncRace for accesses that conflict with it.

    It takes effect at once if the schedule says so. The caller keeps the operation until a wait covers it, in
    `CommitGroups.pending` if it completes by groups.
    """
    if batch.check_in_flight:
        if batch.in_flight is None:
            batch.in_flight = InFlight(batch)
        for access in operation.accesses:
            batch.in_flight.begin(access)
    if batch.schedule is not None and batch.schedule.lands_early():
        operation.land(operation.accesses)
        operation.landed = True


def complete(batch: Batch, covered: Covered) -> None:
    """Handle a wait that covers an operation, or a part of its lanes: move its bytes, if they have not been moved
    already."""
    if not covered.operation.landed:
        covered.operation.land(covered.done)
    if batch.in_flight is not None:
        for access, done, left in zip(covered.accesses, covered.done, covered.left, strict=True):
            batch.in_flight.end(access, done, left)


def wait(group: Group, groups: CommitGroups, number: int, site: Site) -> None:
    """Wait until at most the latest `number` commit groups of each thread are open."""
    for covered in groups.wait(group.lanes, number, site):
        complete(group.batch, covered)
