"""The limit: the least time in which a GPU whose ceilings were measured can do some work, from a cold cache.

    limit = floor + max(memory, pipes)

*floor* is the time of a kernel that reads one line and writes one: launch, first bytes and back; where nothing is read,
the time of a launch. *memory* takes
``2 * min(read, written)`` bytes at the rate of copying, and the rest at the rate of reading or of writing, whichever is
left. The L2 cache may still hold some modified bytes when a kernel ends (``kept_mb``); those are not counted. *pipes*
is the time of the slowest pipe of the SMs: FMA, integer, shared memory, issue slots, tensor cores.

Rates are slopes: the time of the floor is subtracted before bytes or operations are divided by time
(``climb.bench.ceilings``), so that it counts once. Work is the least that a problem needs, whatever a kernel moves.
The roofline itself is from Williams, Waterman, Patterson: "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from climb.bench.problem import Problem, Rung, Size
from climb.bench.records import Ceilings, Point
from climb.bench.work import Work, ceiling_of, pipe_name

#: A problem that writes less than this share of its bytes is drawn under the slope for reading.
READ_ONLY_SHARE = 0.01

#: The unit of each kind of ceiling, by the end of its name: bytes, operations or instructions a second, seconds, bytes.
_UNITS = {
    "_gb_s": 1e9,
    "_tb_s": 1e12,
    "_tflop_s": 1e12,
    "_top_s": 1e12,
    "_ginst_s": 1e9,
    "_us": 1e-6,
    "_mb": 1e6,
}


class MissingCeiling(LookupError):
    """A ceiling that the limit needs was not measured; the message names it and how to measure it."""


@dataclass(frozen=True)
class Limit:
    """The least time of some work, in its parts.

    ``pending`` names the ceilings that belong to it but are not measured yet: without them it may be too low, but never
    too high. ``least_s``: the same limit with each ceiling that it uses at the fast end of its spread; None where the
    ceilings have no spreads.
    """

    memory_s: float
    pipes: Mapping[str, float] = field(default_factory=dict)
    floor_s: float = 0.0
    pending: tuple[str, ...] = ()
    least_s: float | None = None

    @property
    def arithmetic_s(self) -> float:
        """The time of the slowest pipe."""
        return max(self.pipes.values(), default=0.0)

    @property
    def seconds(self) -> float:
        return self.floor_s + max(self.memory_s, self.arithmetic_s)

    @property
    def bound(self) -> Literal["memory", "arithmetic"]:
        """The resource that takes longer: memory or the slowest pipe."""
        return "memory" if self.memory_s >= self.arithmetic_s else "arithmetic"

    @property
    def pipe(self) -> str:
        """The slowest pipe, "" if no pipe has work."""
        return max(self.pipes, key=lambda pipe: self.pipes[pipe], default="")

    @property
    def limited_by(self) -> str:
        """The largest part of the limit, in words: the floor, memory, or the slowest pipe."""
        if self.floor_s > max(self.memory_s, self.arithmetic_s):
            return "floor"
        return "memory" if self.bound == "memory" else pipe_name(self.pipe)

    def share(self, point: Point) -> float:
        """Return the share of the limit that a point reaches: 1 is the speed of light.

        A median may fall below the limit by less than the scatter of the times. If the upper quartile of the samples is
        not below ``least_s``, the two cannot be told apart, and the share is 1.
        """
        found = self.seconds / point.median_s
        least = self.seconds if self.least_s is None else self.least_s
        return 1.0 if found > 1 and least <= point.p75_s else found


def unit(ceiling: str) -> float:
    """Return one unit of a ceiling, 1e9 bytes a second for ``copy_gb_s``. Raises ValueError for an unknown suffix."""
    for suffix, factor in _UNITS.items():
        if ceiling.endswith(suffix):
            return factor
    raise ValueError(f"a ceiling's name ends in {' or '.join(_UNITS)}; got '{ceiling}'")


def bandwidth_ceiling(problem: Problem, size: Size) -> str:
    """Return the ceiling for the slope of a problem's roofline: ``read_gb_s`` if it writes next to nothing."""
    return "read_gb_s" if problem.written(size) < READ_ONLY_SHARE * problem.bytes(size) else "copy_gb_s"


def limit(problem: Problem, size: Size, ceilings: Mapping[str, float], *, rung: Rung | None = None) -> Limit:
    """Return the limit at one size, from ceilings such as ``{"copy_gb_s": 4275.0, "fma_tflop_s": 65.0}``.

    With ``rung``, the limit of that rung's own work, if it declares one. Raises :class:`MissingCeiling` when a ceiling
    of memory or of the FMA pipe is needed and missing.
    """
    work = rung.work(size) if rung is not None and rung.work is not None else problem.work(size)
    return limit_of(work, ceilings)


def limit_of(work: Work, ceilings: Mapping[str, float]) -> Limit:
    """Return the limit of some work. Raises :class:`MissingCeiling` like :func:`limit`."""
    found = _limit_at(work, ceilings)
    if not isinstance(ceilings, Ceilings):
        return found
    return replace(found, least_s=_limit_at(work, ceilings.fastest).seconds)


def _limit_at(work: Work, ceilings: Mapping[str, float]) -> Limit:
    """Return the limit with the ceilings as they are."""
    start = "floor_us" if work.read else "launch_us"
    pending = [name for name in (start,) if name not in ceilings]
    memory = _memory_s(work, ceilings, pending)
    pipes = {pipe: _pipe_s(pipe, amount, ceilings, pending) for pipe, amount in work.pipes.items()}
    floor = ceilings[start] * unit(start) if start in ceilings else 0.0
    return Limit(memory, pipes, floor, tuple(pending))


def limit_s(problem: Problem, size: Size, ceilings: Mapping[str, float]) -> float:
    """Return the least time in seconds. Raises :class:`MissingCeiling`."""
    return limit(problem, size, ceilings).seconds


def arithmetic_intensity(problem: Problem, size: Size) -> float:
    """Return FLOPs per byte of the least traffic; inf for a problem that moves no bytes."""
    moved = problem.bytes(size)
    return problem.flops(size) / moved if moved else float("inf")


def _memory_s(work: Work, ceilings: Mapping[str, float], pending: list[str]) -> float:
    """Return the time of the bytes. Bytes that only writing needs take the fastest known rate until writing is
    measured."""
    kept = ceilings["kept_mb"] * unit("kept_mb") if "kept_mb" in ceilings else 0.0
    written = max(0.0, work.written - kept)
    both = min(work.read, written)
    reading = _seconds(work.read - both, "read_gb_s", ceilings)
    if written > both and "write_gb_s" not in ceilings:
        pending.append("write_gb_s")
        known = {name: ceilings[name] for name in ("copy_gb_s", "read_gb_s") if name in ceilings}
        writing = _seconds(written - both, max(known, key=known.__getitem__, default="write_gb_s"), ceilings)
    else:
        writing = _seconds(written - both, "write_gb_s", ceilings)
    return _seconds(2 * both, "copy_gb_s", ceilings) + reading + writing


def _pipe_s(pipe: str, amount: int, ceilings: Mapping[str, float], pending: list[str]) -> float:
    """Return the time of a pipe. A pipe that is not measured yet adds nothing; integers take at least as long as
    multiply-adds.

    No pipe starts more instructions than the FMA pipe, which takes one in every cycle of every scheduler.
    """
    name = ceiling_of(pipe)
    if pipe == "fma" or name in ceilings:
        return _seconds(amount, name, ceilings)
    pending.append(name)
    return _seconds(amount, "fma_tflop_s", ceilings) if pipe == "int32" else 0.0


def _seconds(work: float, ceiling: str, ceilings: Mapping[str, float]) -> float:
    if not work:
        return 0.0
    if ceiling not in ceilings:
        raise MissingCeiling(f"the ceiling {ceiling} was not measured (there are {', '.join(ceilings) or 'none'})")
    return work / (ceilings[ceiling] * unit(ceiling))
