"""Errors for kernels that cannot continue or never end: the waiting threads, their places, and the threads they wait
for."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ..checks.faults import place_in_block
from ..errors import BarrierDivergence, EndlessLoop
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import Lanes
from .gates import WARPGROUP, Gates, mask_of

Parked = dict[int, Group]


def check_warp_gates(gates: Gates, parked: Parked) -> None:
    """Raise WarpMismatch if a parked group waits at a warp operation and no other group can run."""
    blocks = gates.batch.kernel.code.blocks
    for at, group in parked.items():
        if blocks[at].gate == "warp":
            bad = ~np.broadcast_to(gates.ready(group, at), (group.lanes.count,))
            what = _describe_wait(gates.batch, group, at, int(np.flatnonzero(bad)[0]), parked)
            gates.mismatch(group, blocks[at].first, bad, what)
        elif blocks[at].gate == "warpgroup":
            bad = ~np.broadcast_to(gates.ready(group, at), (group.lanes.count,))
            gates.mismatch(group, blocks[at].first, bad, _describe_warpgroup(gates.batch, group, bad))


def _describe_wait(batch: Batch, group: Group, at: int, first: int, parked: Parked) -> str:
    """Describe which lanes wait at the warp operation in block `at`, for which lanes, and where those are.

    The warp is the one of the group's lane at the flat index `first`.
    """
    blocks = batch.kernel.code.blocks
    block, thread = group.lanes.at(first)
    mask = mask_of(group, blocks[at].first)
    mask = int(np.broadcast_to(mask, group.lanes.shape).reshape(-1)[first])
    here = _lanes_of_warp(group.lanes, block, thread // 32)
    missing = [lane for lane in range(32) if mask >> lane & 1 and lane not in here]
    places = []
    for other, waiting in sorted(parked.items()):
        found = [lane for lane in _lanes_of_warp(waiting.lanes, block, thread // 32) if lane in missing]
        if found and other != at:
            what = "warp operation" if blocks[other].gate == "warp" else "barrier"
            line = blocks[other].first.location.line
            places.append(f"lanes {ranges(found)} wait at the {what} in line {line}")
    others = f"; {', '.join(places)}" if places else ""
    return f"lanes {ranges(here)} wait here for lanes {ranges(missing)}, which their mask names{others}"


def _describe_warpgroup(batch: Batch, group: Group, bad: np.ndarray) -> str:
    """Describe how many threads of the first incomplete warpgroup are here."""
    lanes = group.lanes
    block, thread = lanes.at(int(np.flatnonzero(bad)[0]))
    first = thread // WARPGROUP * WARPGROUP
    blocks, threads = (np.broadcast_to(each, lanes.shape).reshape(-1) for each in (lanes.block, lanes.thread))
    here = threads[(blocks == block) & (threads // WARPGROUP == thread // WARPGROUP)]
    last = min(first + WARPGROUP, batch.threads) - 1
    has = "" if last - first == WARPGROUP - 1 else f" (the block has threads {first}-{last} of it)"
    return (
        f"a matrix product of a warpgroup needs its 128 threads, {first}-{first + WARPGROUP - 1}{has}; "
        f"{here.size} are here: {ranges(sorted(here.tolist()))}"
    )


def _lanes_of_warp(lanes: Lanes, block: int, warp: int) -> list[int]:
    """Return the lanes (0 to 31) of one warp of one block that are among `lanes`."""
    blocks, threads = (np.broadcast_to(each, lanes.shape).reshape(-1) for each in (lanes.block, lanes.thread))
    return (threads[(blocks == block) & (threads // 32 == warp)] % 32).tolist()


def check_cluster_barrier(batch: Batch, parked: Parked) -> None:
    """Raise BarrierDivergence if a parked group waits for a barrier of the cluster and no other group can run."""
    for at, group in parked.items():
        if batch.kernel.code.blocks[at].gate != "cluster":
            continue
        lanes, barrier = group.lanes, batch.cluster_barrier
        location = batch.kernel.code.blocks[at].first.location
        block, _ = lanes.at(0)
        where = place_in_block(batch, location, lanes, block, lanes.count)
        if barrier.absent(lanes).any():
            what = "threads wait at the barrier of the cluster without having arrived"
            raise BarrierDivergence(f"barrier divergence: {what}", where, waiting=lanes.count, exited=0)
        first = block - block % barrier.size
        late = batch.alive() & (barrier.arrived <= barrier.waited[block].max())
        missing = [np.count_nonzero(late[first + rank]) for rank in range(barrier.size)]
        parts = [
            f"{many} thread{'s' * (many > 1)} of the block of rank {rank}" for rank, many in enumerate(missing) if many
        ]
        have = "has" if sum(missing) == 1 else "have"
        raise BarrierDivergence(
            f"barrier divergence: {lanes.count} threads wait at the barrier of the cluster, at which "
            f"{' and '.join(parts)} {have} not arrived",
            where,
            waiting=lanes.count,
            exited=0,
        )


def barrier_divergence(batch: Batch, parked: Parked) -> NoReturn:
    """Raise BarrierDivergence for groups that wait at barriers which not all threads of their block reach."""
    blocks = batch.kernel.code.blocks
    counts = {at: group.lanes.per_block(batch.blocks) for at, group in parked.items()}
    block = min(int(np.flatnonzero(present)[0]) for present in counts.values())
    here = [(at, int(present[block])) for at, present in sorted(counts.items()) if present[block]]
    at, waiting = here[0]
    others = [f"{n} wait at line {blocks[b].first.location.line}" for b, n in here[1:]]
    exited = batch.threads - sum(n for _, n in here)
    if exited:
        others.append(f"{exited} {'has' if exited == 1 else 'have'} left the kernel")
    raise BarrierDivergence(
        f"barrier divergence: {waiting} of {batch.threads} threads of the block wait at this barrier, "
        + " and ".join(others),
        place_in_block(batch, blocks[at].first.location, parked[at].lanes, block, waiting),
        waiting=waiting,
        exited=exited,
    )


def endless_loop(batch: Batch, at: int, group: Group, parked: Parked, why: str, **details: int) -> NoReturn:
    """Raise EndlessLoop for a `group` that was about to run block `at`; the message says `why` it never ends."""
    blocks = batch.kernel.code.blocks
    instruction = blocks[at].first or blocks[at].branch
    first, _ = group.lanes.at(0)
    waits = "".join(
        f", {one.lanes.count} wait at the {'warp operation' if blocks[b].gate == 'warp' else 'barrier'} "
        f"in line {blocks[b].first.location.line}"
        for b, one in sorted(parked.items())
    )
    raise EndlessLoop(
        f"endless loop: {why}; {group.lanes.count} threads were running{waits}",
        place_in_block(batch, instruction.location, group.lanes, first, group.lanes.count),
        **details,
    )


def ranges(numbers: list[int]) -> str:
    """Format ascending numbers in short: 0-7, 9, 16-31."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in runs)
