"""A block's march through the planes of a volume, read from the events that the emulator recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from climb.emulator import Event

WORD = 4


@dataclass
class MarchStep:
    """One step: the plane whose load begins, its distinct words, the plane that is read from shared memory, the planes
    of outputs that are stored. None for an absent plane."""

    loads: int | None = None
    words: set[int] = field(default_factory=set)
    reads: int | None = None
    stores: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class March:
    """The march of a block through a cube of edge ``n``.

    ``tile`` (the stored part) and ``loaded`` are ranges of x, y and z, ends included.
    """

    n: int
    steps: tuple[MarchStep, ...]
    tile: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
    loaded: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]


def march(events: Sequence[Event], n: int, source: str = "source", target: str = "target") -> March:
    """Return the march of a block. Raises ValueError if a block does not load, read and store plane after plane."""
    steps: list[MarchStep] = []
    holds: dict[int, int] = {}
    latest, loading = None, False
    inputs: set[int] = set()
    outputs: set[int] = set()
    for event in events:
        if event.kind == "global load":
            loading = event.allocation == source
            if not loading:
                continue
            words = _words(event)
            planes = {word // (n * n) for word in words}
            if len(planes) > 1:
                raise ValueError(f"line {event.line} loads {len(planes)} planes at once: the block does not march")
            latest = planes.pop()
            if not steps or steps[-1].loads != latest:
                steps.append(MarchStep(loads=latest))
            steps[-1].words |= words
            inputs |= words
        elif event.kind in ("shared store", "copy") and loading and latest is not None:
            holds.update(dict.fromkeys(_words(event), latest))
        elif event.kind == "shared load" and steps:
            planes = {holds[word] for word in _words(event) if word in holds}
            if len(planes) == 1:
                plane = planes.pop()
                if steps[-1].reads not in (None, plane):
                    steps.append(MarchStep())
                steps[-1].reads = plane
        elif event.kind == "global store" and event.allocation == target and steps:
            words = _words(event)
            outputs |= words
            for plane in sorted({word // (n * n) for word in words}):
                if steps[-1].stores and plane not in steps[-1].stores:
                    steps.append(MarchStep())
                if plane not in steps[-1].stores:
                    steps[-1].stores.append(plane)
    read = [step.reads for step in steps if step.reads is not None]
    if not outputs or len(read) < 2 or read != sorted(set(read)):
        raise ValueError("the block does not march: it does not read one plane after another from shared memory")
    return March(n, tuple(steps), _extents(outputs, n), _extents(inputs, n))


def _words(event: Event) -> set[int]:
    first = event.places // WORD
    return set((first[:, None] + np.arange(max(1, event.width // WORD))).ravel().tolist())


def _extents(words: set[int], n: int) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    all_words = np.fromiter(words, np.int64)
    axes = (all_words % n, all_words // n % n, all_words // (n * n))
    x, y, z = ((int(axis.min()), int(axis.max())) for axis in axes)
    return x, y, z
