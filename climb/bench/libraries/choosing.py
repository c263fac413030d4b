"""Choose among the ways in which a library can do the same work: the fastest of them is the peer.

Candidates are timed as records are, with an L2 cache that holds none of their data, but only a few times each. It needs
a GPU and imports CuPy when called.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from climb.bench.libraries.description import Description
from climb.bench.problem import PeerUnavailable

#: Launches of each candidate that are timed.
TIMED = 5
#: Bytes written before each launch: several L2 caches, and a write long enough for the launch to be queued meanwhile.
FLUSH = 512 << 20
#: A later candidate must take less than this share of an earlier one's time: a smaller gain is noise.
BETTER = 0.98

Enqueue = Callable[[], None]


@dataclass
class Prepared:
    """A peer's launch with the choice made for it: fields that replace those of the peer's description.

    A peer that writes its result in another layout has ``deliver``, which brings it into the problem's array. Only the
    first call does that: it is verified, and the timed calls follow.
    """

    enqueue: Enqueue
    chosen: Description = field(default_factory=dict)
    deliver: Enqueue | None = None

    def __call__(self) -> None:
        self.enqueue()
        if self.deliver is not None:
            self.deliver()
            self.deliver = None


def fastest(
    candidates: Iterable[Callable[[], Prepared]],
    seconds: Callable[[Enqueue], float] | None = None,
) -> Prepared:
    """Prepare and time each candidate, and keep the fastest; on a tie within 2 %, the earlier one.

    A candidate that raises an exception is left out. ``seconds`` times a launch (:func:`cold_seconds` by default).
    Raises :class:`PeerUnavailable` with the last reason if none is left.
    """
    seconds = seconds or cold_seconds
    best: tuple[float, Prepared] | None = None
    reason = "no candidate"
    for make in candidates:
        try:
            candidate = make()
            candidate.enqueue()
            taken = seconds(candidate.enqueue)
        except Exception as error:  # a library refuses a size in its own way, and other candidates may take it
            reason = f"{type(error).__name__}: {error}"
            continue
        if best is None or taken < BETTER * best[0]:
            best = taken, candidate
        del candidate
    if best is None:
        raise PeerUnavailable(f"no candidate runs: {reason}")
    return best[1]


def cold_seconds(enqueue: Enqueue, launches: int = TIMED) -> float:
    """Return the median GPU time of a launch on the current stream, by events, each after L2 was overwritten."""
    import cupy

    flush = cupy.empty(FLUSH // 4, dtype=cupy.float32)
    times = []
    for _ in range(launches):
        flush.fill(0)
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        enqueue()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) * 1e-3)
    return statistics.median(times)
