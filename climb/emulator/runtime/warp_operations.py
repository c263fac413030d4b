"""Warp operations: shuffles, votes, matches and reductions; and votes of a whole block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..checks import faults
from ..ptx.barriers import BARRIERS
from ..simt.groups import Group
from ..simt.lanes import WARP
from ..simt.site import Site
from ..simt.warps import BITS, LANE, bits_of, from_rows, names_exited, present, to_rows


def shuffle(
    group: Group, site: Site, mode: str, value: np.ndarray, by: np.ndarray, limit: np.ndarray, mask: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """shfl.sync: (the value of the source lane, whether that lane is in range). PTX ISA, section 9.7.9.6.

    Raises WarpMismatch if a source lane takes no part.
    """
    lanes = group.lanes
    if lanes.layout.kind == "whole" and by.size == limit.size == mask.size == 1:
        # One warp represents all, whatever their values: such shuffles are the most frequent ones.
        (values,), steps, limits, named = to_rows(lanes, value), by, limit, mask
        rows = lanes.shape[1] // WARP
    else:
        values, steps, limits, named = to_rows(lanes, value, by, limit, mask)
        rows = values.shape[0]
    steps, limits = steps.astype(np.int64), limits.astype(np.int64)
    steps, clamp, segment = steps & 31, limits & 31, limits >> 8 & 31
    low = LANE & segment
    high = low | (clamp & ~segment)
    if mode == "up":
        source = LANE - steps
        inside = source >= high
    else:
        source = {"down": LANE + steps, "bfly": LANE ^ steps, "idx": low | (steps & ~segment)}[mode]
        inside = source <= high
    source = np.where(inside, source, LANE)
    here = present(lanes, source.shape[0])
    bit = named >> source.astype(np.uint32) & np.uint32(1)
    valid = np.take_along_axis(here, source, axis=1) & (bit == 1)

    def spread(matrix: np.ndarray) -> np.ndarray:
        return from_rows(lanes, np.broadcast_to(matrix, (rows, WARP)))

    if not valid.all() and (here & ~valid).any():
        bad = spread(here & ~valid)
        lane = int(spread(source)[bad][0])
        _check_alive(group, site, spread(source), bad, mask)
        what = f"a lane reads the value of lane {lane}, which takes no part in the shuffle"
        faults.warp_mismatch(group, site, bad, what)
    if group.batch.trace is not None:
        first = lanes.thread - lanes.thread % WARP
        group.batch.trace.note(group, "shuffle", site, first + spread(source), 0)
    if source.shape[0] == 1:
        return from_rows(lanes, values.take(source[0], axis=1)), spread(inside)
    return from_rows(lanes, np.take_along_axis(values, source, axis=1)), spread(inside)


def _check_alive(group: Group, site: Site, source: np.ndarray, bad: np.ndarray, mask: np.ndarray) -> None:
    """Raise WarpMismatch if a lane where `bad` holds reads the value of a lane in its mask that has left the kernel."""
    batch, lanes, shape = group.batch, group.lanes, group.lanes.shape
    alive = np.zeros((batch.blocks, -(-batch.threads // WARP) * WARP), np.bool_)
    alive[:, : batch.threads] = ~batch.alive()
    gone = bits_of(alive.reshape(-1, WARP)).reshape(batch.blocks, -1)[lanes.block, lanes.thread // WARP]
    exited = np.broadcast_to(np.broadcast_to(mask, shape) & gone, shape)
    if (bad & (exited >> source.astype(np.uint32) & np.uint32(1) != 0)).any():
        faults.warp_mismatch(group, site, exited != 0, names_exited(exited))


def vote(group: Group, mode: str, flag: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """vote.sync.{all,any,uni,ballot} over the lanes that the mask names: bool, or uint32 for ballot."""
    lanes = group.lanes
    flags, named = to_rows(lanes, flag, mask)
    here = present(lanes, flags.shape[0])
    votes = bits_of(flags & here).reshape(-1, 1) & named
    named = named & bits_of(here).reshape(-1, 1)
    if mode == "ballot":
        return from_rows(lanes, votes)
    if mode == "any":
        return from_rows(lanes, votes != 0)
    if mode == "all":
        return from_rows(lanes, votes == named)
    return from_rows(lanes, (votes == 0) | (votes == named))


def active(group: Group) -> np.ndarray:
    """activemask: the lanes of the warp that are running together."""
    lanes = group.lanes
    rows = lanes.layout.rows
    here = bits_of(present(lanes, rows)).reshape(-1, 1)
    return from_rows(lanes, np.broadcast_to(here, (rows, WARP)))


def match_any(group: Group, value: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """match.any.sync: for each lane, the named lanes with an equal value, as uint32."""
    lanes = group.lanes
    values, named = to_rows(lanes, value, mask)
    here = present(lanes, values.shape[0])
    out = np.zeros(values.shape, np.uint32)
    for lane in range(WARP):
        same = (values == values[:, lane : lane + 1]) & here[:, lane : lane + 1]
        out |= np.where(same, BITS[lane], np.uint32(0))
    return from_rows(lanes, out & named)


def match_all(group: Group, value: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """match.all.sync: (the mask if all named lanes have one value, else 0; whether they have one)."""
    same = match_any(group, value, mask)
    lanes = group.lanes
    equal, named = to_rows(lanes, same, mask)
    named = named & bits_of(present(lanes, named.shape[0])).reshape(-1, 1)
    whole = equal == named
    return from_rows(lanes, np.where(whole, named, np.uint32(0))), from_rows(lanes, whole)


def elect(group: Group, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """elect.sync: (the elected lane, whether it is this lane). PTX leaves the choice open; here the lowest wins."""
    lanes = group.lanes
    (named,) = to_rows(lanes, mask)
    leader = np.argmax((named & BITS) != 0, axis=1).astype(np.uint32).reshape(-1, 1)
    leader = np.broadcast_to(leader, named.shape)
    return from_rows(lanes, leader), from_rows(lanes, leader == LANE)


REDUCE = {
    "add": (np.add, 0), "min": (np.minimum, None), "max": (np.maximum, None),
    "and": (np.bitwise_and, -1), "or": (np.bitwise_or, 0), "xor": (np.bitwise_xor, 0),
}  # fmt: skip


def reduce(group: Group, mode: str, value: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """redux.sync: reduce the values of the lanes that the mask names."""
    lanes = group.lanes
    values, named = to_rows(lanes, value, mask)
    here = present(lanes, values.shape[0])
    function, neutral = REDUCE[mode]
    bounds = np.iinfo(values.dtype)
    if neutral is None:
        neutral = bounds.max if mode == "min" else bounds.min
    fill = np.array(neutral).astype(values.dtype)
    out = np.zeros(values.shape, values.dtype)
    left = here.copy()
    while left.any():
        # Take one mask of each warp at a time; nearly always there is only one.
        lane = left.argmax(axis=1)
        mine = named[np.arange(named.shape[0]), lane].reshape(-1, 1)
        members = here & ((mine & BITS) != 0)
        result = function.reduce(np.where(members, values, fill), axis=1, dtype=values.dtype)
        takers = left & (named == mine)
        out = np.where(takers, result.reshape(-1, 1), out)
        left &= ~takers
    return from_rows(lanes, out)


def block_vote(group: Group, mode: str, flag: np.ndarray) -> np.ndarray:
    """bar.red.{popc,and,or} over all threads of each block; the group must contain all of them."""
    lanes = group.lanes
    if lanes.ragged:
        flags = np.broadcast_to(flag, lanes.shape).reshape(-1, lanes.threads)
    else:
        flags = np.broadcast_to(flag, (flag.shape[0], lanes.shape[1]))
    if mode == "popc":
        out = np.count_nonzero(flags, axis=1).astype(np.uint32)
    else:
        out = flags.all(axis=1) if mode == "and" else flags.any(axis=1)
    out = out.reshape(-1, 1)
    return np.repeat(out, lanes.threads, axis=0).reshape(1, -1) if lanes.ragged else out


def named_vote(group: Group, mode: str, number: np.ndarray, flag: np.ndarray) -> np.ndarray:
    """bar.red.{popc,and,or} over the lanes of each block at the same named barrier, whose `number` may differ."""
    lanes = group.lanes
    flags, block, numbers = (np.broadcast_to(each, lanes.shape).reshape(-1) for each in (flag, lanes.block, number))
    place = block.astype(np.int64) * BARRIERS + numbers
    size = group.batch.blocks * BARRIERS
    true, every = (np.bincount(place, weights=each, minlength=size) for each in (flags, flags | True))
    found: dict[str, Callable[[], np.ndarray]] = {
        "popc": lambda: true.astype(np.uint32),
        "and": lambda: true == every,
        "or": lambda: true > 0,
    }
    return found[mode]()[place].reshape(lanes.shape)


RUNTIME = {
    "warp_shuffle": shuffle,
    "warp_vote": vote,
    "warp_active": active,
    "warp_elect": elect,
    "warp_match_any": match_any,
    "warp_match_all": match_all,
    "warp_reduce": reduce,
    "block_vote": block_vote,
    "named_vote": named_vote,
}
