"""The additions of a block that sums its floats, read from the events that the emulator recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from climb.emulator import Event
from climb.emulator.counters.serving import shared_cost

WARP = 32
WORD = 4


@dataclass
class Addition:
    """One step of a tree.

    ``kind``: "load" (global memory to registers, and on to shared memory), "shared" (a thread adds two words of shared
    memory), "shuffle" (a lane adds another lane's value), "keep" (sums go to shared memory), "fetch" (they come back).
    ``pairs`` has for each thread where the result lies and where the other summand comes from: words of shared memory,
    or threads for a shuffle. ``wavefronts``: of the costliest request to shared memory.
    """

    kind: str
    pairs: Mapping[int, tuple[int, int]]
    wavefronts: int = 0
    useful: set[int] = field(default_factory=set)

    @property
    def adders(self) -> set[int]:
        """Return the threads whose addition the sum needs."""
        return self.useful if self.kind == "shuffle" else set(self.pairs)


def tree(events: Sequence[Event]) -> tuple[Addition, ...]:
    """Return the steps of a block's reduction. Raises ValueError if the events show no tree."""
    steps: list[Addition] = []
    loaded: dict[int, list[int]] = {}
    cost = 0
    for event in events:
        if event.kind == "global load" and not steps:
            steps.append(Addition("load", {}))
        if event.kind == "global load" and steps[-1].kind == "load":
            steps[-1].pairs = {**steps[-1].pairs, **{int(t): (int(t), int(t)) for t in event.threads}}
        elif event.kind == "shared load":
            cost = max(cost, _wavefronts(event))
            for thread, place in zip(event.threads.tolist(), event.places.tolist(), strict=True):
                loaded.setdefault(thread, []).append(place // WORD)
        elif event.kind == "shared store":
            words = dict(zip(event.threads.tolist(), (event.places // WORD).tolist(), strict=True))
            both = {t: [w for w in loaded.get(t, ()) if w != into] for t, into in words.items()}
            if all(len(other) == 1 for other in both.values()):
                pairs = {t: (into, both[t][0]) for t, into in words.items()}
                steps.append(Addition("shared", pairs, max(cost, _wavefronts(event))))
            elif len(steps) > 1 or set(words) != set(steps[-1].pairs if steps else ()):
                steps.append(Addition("keep", {t: (into, t) for t, into in words.items()}, _wavefronts(event)))
            loaded, cost = {}, 0
        elif event.kind == "shuffle":
            if loaded:
                pairs = {t: (t, words[-1]) for t, words in loaded.items()}
                steps.append(Addition("fetch", pairs, cost))
                loaded, cost = {}, 0
            threads, sources = event.threads.tolist(), event.places.tolist()
            steps.append(Addition("shuffle", {t: (t, s) for t, s in zip(threads, sources, strict=True) if t != s}))
    if not any(step.kind in ("shared", "shuffle") for step in steps):
        raise ValueError("no tree: the block adds neither words of shared memory nor values of other lanes")
    _mark_useful(steps)
    return tuple(steps)


def replay(steps: Sequence[Addition], values: np.ndarray) -> np.ndarray:
    """Return the block's sum, float32, if each thread begins with its value of ``values`` and the steps are taken."""
    registers = np.asarray(values, np.float32).copy()
    shared: dict[int, np.float32] = {}
    if not any(step.kind == "keep" for step in steps):
        shared = dict(enumerate(registers))
    at: tuple[str, int] = ("register", 0)
    for step in steps:
        if step.kind == "shared":
            old = dict(shared)
            shared.update({into: old[into] + old[other] for into, other in step.pairs.values()})
            at = ("shared", 0)
        elif step.kind == "shuffle":
            old_registers = registers.copy()
            for thread, (_, source) in step.pairs.items():
                registers[thread] = old_registers[thread] + old_registers[source]
            at = ("register", 0)
        elif step.kind == "keep":
            shared.update({into: registers[t] for t, (into, _) in step.pairs.items()})
        elif step.kind == "fetch":
            # A lane that fetches nothing holds the zero that the kernel gives it.
            registers[:] = 0
            for thread, (_, word) in step.pairs.items():
                registers[thread] = shared[word]
    return registers[at[1]] if at[0] == "register" else shared[at[1]]


def _mark_useful(steps: Sequence[Addition]) -> None:
    """Mark the lanes of shuffles whose sums reach thread 0 in the end, from the last step back."""
    needed_lanes: set[int] = {0}
    needed_words: set[int] = set()
    for step in reversed(steps):
        if step.kind == "shuffle":
            step.useful = {t for t in step.pairs if t in needed_lanes}
            needed_lanes |= {step.pairs[t][1] for t in step.useful}
        elif step.kind == "fetch":
            needed_words = {word for t, (_, word) in step.pairs.items() if t in needed_lanes}
            needed_lanes = set()
        elif step.kind == "keep":
            needed_lanes = {t for t, (into, _) in step.pairs.items() if into in needed_words}


def _wavefronts(event: Event) -> int:
    """Return the wavefronts of the costliest warp's request."""
    worst = 0
    action = event.kind.split()[1]
    for warp in np.unique(event.threads // WARP):
        mine = event.threads // WARP == warp
        addresses, active = np.zeros(WARP, np.int64), np.zeros(WARP, np.bool_)
        addresses[event.threads[mine] % WARP] = event.places[mine]
        active[event.threads[mine] % WARP] = True
        worst = max(worst, shared_cost(addresses, active, event.width, action).achieved)
    return worst
