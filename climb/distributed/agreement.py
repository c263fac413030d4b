"""Check that the plans of all ranks fit together, before the first message.

Every rank computes all plans, so each rank refuses a wrong plan by itself, and none is left waiting. The rule for
messages is NCCL's strict one: a group is done when all its sends and receives are; a send is done when it is received.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from climb.distributed.plan import (
    Arrays,
    Barrier,
    Collective,
    Copy,
    Exchange,
    Part,
    Plan,
    Send,
    Step,
    distant_parts,
    kind_of,
    parts,
    talks,
)
from climb.rings import ring_bytes


class PlanError(ValueError):
    """The plans of the ranks do not fit together, or a plan does not fit its arrays; the message names ranks and
    step."""


@dataclass(frozen=True)
class Message:
    """A message in the plans: ``step`` is its round of communication."""

    label: str
    source: int
    target: int
    nbytes: int
    step: int


def check(plans: Sequence[Plan], arrays: Sequence[Arrays]) -> tuple[Message, ...]:
    """Check the plans of all ranks against their arrays and each other; return their messages in order.

    Raises :class:`PlanError`.
    """
    for rank, (plan, own) in enumerate(zip(plans, arrays, strict=True)):
        _check_parts(rank, plan, own, arrays)
    return _carry_out([[step for step in plan if talks(step)] for plan in plans], arrays)


def _check_parts(rank: int, plan: Plan, own: Arrays, arrays: Sequence[Arrays]) -> None:
    for number, step in enumerate(plan):
        where = f"rank {rank}, step {number} ({kind_of(step)})"
        for part in parts(step):
            _check_part(part, own, where)
        for other, part in distant_parts(step):
            _check_part(part, arrays[other], f"{where}, on rank {other}")
        if isinstance(step, Copy) and step.source.count != step.target.count:
            raise PlanError(f"{where}: {step.source.count} elements to {step.target.count}")
        if isinstance(step, Collective):
            factor = {"allGather": (len(arrays), 1), "reduceScatter": (1, len(arrays))}.get(step.kind, (1, 1))
            if step.source.count * factor[0] != step.target.count * factor[1]:
                raise PlanError(f"{where}: {step.source} to {step.target} on {len(arrays)} ranks")


def _check_part(part: Part, own: Arrays, where: str) -> None:
    if part.array not in own:
        raise PlanError(f"{where}: there is no array {part.array!r}; there are {', '.join(own)}")
    have = math.prod(own[part.array][0])
    if part.first < 0 or part.count < 0 or part.first + part.count > have:
        raise PlanError(f"{where}: {part} of an array of {have} elements")


def _dtype(own: Mapping[str, tuple[tuple[int, ...], str]], part: Part) -> str:
    return own[part.array][1]


def _carry_out(talk: list[list[Step]], arrays: Sequence[Arrays]) -> tuple[Message, ...]:
    """Match the messages in the order in which ranks can issue them, with nothing buffered."""
    ranks = len(talk)
    at = [0] * ranks
    open_: list[list[Send | object]] = [[] for _ in range(ranks)]
    issued = [False] * ranks
    found: list[Message] = []
    round_ = 0
    while any(at[rank] < len(talk[rank]) for rank in range(ranks)):
        before = (list(at), [len(one) for one in open_])
        for rank in range(ranks):
            if at[rank] < len(talk[rank]) and not issued[rank]:
                step = talk[rank][at[rank]]
                open_[rank] = list(step.messages) if isinstance(step, Exchange) else []
                issued[rank] = True
        matched = _match(open_, talk, at, arrays, round_)
        found += matched
        for rank in range(ranks):
            if issued[rank] and isinstance(talk[rank][at[rank]], Exchange) and not open_[rank]:
                at[rank] += 1
                issued[rank] = False
        if _all_at_collective(talk, at, issued):
            together = [talk[rank][at[rank]] for rank in range(ranks)]
            _check_collective(together, arrays)
            found += _ring(together, arrays, round_)
            at = [position + 1 for position in at]
            issued = [False] * ranks
        elif before == (at, [len(one) for one in open_]) and not matched:
            raise PlanError(_stuck(talk, at, open_))
        round_ += 1
    return tuple(found)


def _match(open_: list[list], talk: list[list[Step]], at: list[int], arrays: Sequence[Arrays], round_: int) -> list:
    found = []
    for source, messages in enumerate(open_):
        for send in [one for one in messages if isinstance(one, Send)]:
            if not 0 <= send.to < len(open_):
                raise PlanError(f"rank {source} sends {send.part} to rank {send.to}; there are {len(open_)}")
            receive = next((one for one in open_[send.to] if not isinstance(one, Send) and one.source == source), None)
            if receive is None:
                continue
            given = (send.part.count, _dtype(arrays[source], send.part))
            taken = (receive.part.count, _dtype(arrays[send.to], receive.part))
            if given != taken:
                raise PlanError(
                    f"rank {source} sends {given[0]} {given[1]} ({send.part}) and rank {send.to} receives "
                    f"{taken[0]} {taken[1]} ({receive.part})"
                )
            open_[source].remove(send)
            open_[send.to].remove(receive)
            nbytes = given[0] * np.dtype(given[1]).itemsize
            found.append(Message(kind_of(talk[source][at[source]]), source, send.to, nbytes, round_))
    return found


def _all_at_collective(talk: list[list[Step]], at: list[int], issued: list[bool]) -> bool:
    return all(
        issued[rank] and at[rank] < len(steps) and isinstance(steps[at[rank]], Collective | Barrier)
        for rank, steps in enumerate(talk)
    )


def _check_collective(steps: list[Step], arrays: Sequence[Arrays]) -> None:
    def what(rank: int) -> tuple:
        step = steps[rank]
        if isinstance(step, Barrier):
            return ("barrier",)
        return (step.kind, step.count, _dtype(arrays[rank], step.source), step.root)

    for rank in range(1, len(steps)):
        if what(rank) != what(0):
            texts = [", ".join(str(one) for one in what(each) if one is not None) for each in (0, rank)]
            raise PlanError(f"rank 0 calls {texts[0]}, and rank {rank} {texts[1]}")


def _ring(steps: list[Step], arrays: Sequence[Arrays], round_: int) -> list[Message]:
    """Return the messages of a collective operation, if NCCL uses a ring: each rank sends to the next."""
    ranks = len(steps)
    found = []
    for rank, step in enumerate(steps):
        if isinstance(step, Collective) and ranks > 1:
            nbytes = step.count * np.dtype(_dtype(arrays[rank], step.source)).itemsize
            last = step.root is not None and rank == (step.root - 1) % ranks
            sent = ring_bytes(step.kind, ranks, nbytes, last)
            found.append(Message(step.kind, rank, (rank + 1) % ranks, sent, round_))
    return found


def _stuck(talk: list[list[Step]], at: list[int], open_: list[list]) -> str:
    lines = ["deadlock: no rank can go on"]
    for rank, steps in enumerate(talk):
        if at[rank] == len(steps):
            lines.append(f"  rank {rank} has ended")
            continue
        step = steps[at[rank]]
        left = [
            f"send {one.part} to rank {one.to}" if isinstance(one, Send) else f"receive {one.part} from {one.source}"
            for one in open_[rank]
        ]
        lines.append(f"  rank {rank} waits in {kind_of(step)}{': ' if left else ''}{', '.join(left)}")
    return "\n".join(lines)
