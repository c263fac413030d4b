"""The asynchronous copies of a block, read from the events that the emulator recorded: groups, stages, rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from climb.emulator import Event

WORD = 4


@dataclass
class Group:
    """One group of copies: the source of the copied ``words`` of shared memory, and the rounds of its life.

    A round begins where the block waits; round 0 comes before the first wait. ``started`` and ``arrived`` are the
    rounds in which the copies begin and in which the block has waited for them, None for never; ``read`` has the rounds
    in which the block reads the words; ``stage`` numbers the part of shared memory.
    """

    number: int
    started: int
    words: frozenset[int]
    stage: int = 0
    arrived: int | None = None
    read: list[int] = field(default_factory=list)


def groups(events: Sequence[Event]) -> tuple[tuple[Group, ...], int]:
    """Return the groups of copies that copy anything, in order, and the number of rounds.

    Raises ValueError if the block starts no asynchronous copy, or reads words of a group before it has waited for it.
    """
    committed: list[Group] = []
    opened: set[int] = set()
    holder: dict[int, Group] = {}
    rounds, started, waited = 0, 0, False
    for event in events:
        if event.kind == "copy":
            if not opened:
                started = rounds
            opened |= _words(event)
        elif event.kind == "commit":
            committed.append(Group(len(committed), started if opened else rounds, frozenset(opened)))
            opened = set()
        elif event.kind == "wait":
            if not waited:
                rounds += 1
            for group in committed[: len(committed) - event.number]:
                if group.arrived is None:
                    group.arrived = rounds
                    holder.update(dict.fromkeys(group.words, group))
        elif event.kind == "shared load":
            for group in {id(g): g for g in map(holder.get, _words(event)) if g is not None}.values():
                if rounds not in group.read:
                    group.read.append(rounds)
        waited = event.kind in ("wait", "commit") and (waited or event.kind == "wait")
    found = [group for group in committed if group.words]
    if not found:
        raise ValueError("the block starts no asynchronous copy, so there is no pipeline to show")
    stages: list[set[int]] = []
    for number, group in enumerate(found):
        group.number = number
        group.stage = next((n for n, words in enumerate(stages) if words & group.words), len(stages))
        if group.stage == len(stages):
            stages.append(set())
        stages[group.stage] |= group.words
    return tuple(found), rounds + 1


def _words(event: Event) -> set[int]:
    first = event.places // WORD
    return set((first[:, None] + np.arange(max(1, event.width // WORD))).ravel().tolist())
