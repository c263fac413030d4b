"""The roofline: how fast a problem can run on a GPU whose ceilings were measured.

The limit is ``max(bytes / bandwidth ceiling, flops / arithmetic ceiling)`` (Williams, Waterman, Patterson:
"Roofline: an insightful visual performance model for multicore architectures", CACM 52(4), 2009), where bytes
and flops are the least that the problem needs, whatever a kernel moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from climb.bench.problem import Problem, Size

#: A problem that writes less than this share of its bytes is held to the ceiling for reading.
READ_ONLY_SHARE = 0.01

#: The unit of each kind of ceiling, by the end of its name, in what it counts per second.
_UNITS = {"_gb_s": 1e9, "_tflop_s": 1e12}


class MissingCeiling(LookupError):
    """A ceiling that the limit needs was not measured; the message names it and how to measure it."""


@dataclass(frozen=True)
class Limit:
    """The least time that a problem can take, and the resource that sets it."""

    memory_s: float
    arithmetic_s: float

    @property
    def seconds(self) -> float:
        return max(self.memory_s, self.arithmetic_s)

    @property
    def bound(self) -> Literal["memory", "arithmetic"]:
        return "memory" if self.memory_s >= self.arithmetic_s else "arithmetic"


def unit(ceiling: str) -> float:
    """One unit of a ceiling, 1e9 bytes a second for ``copy_gb_s``. Raises ValueError for an unknown suffix."""
    for suffix, factor in _UNITS.items():
        if ceiling.endswith(suffix):
            return factor
    raise ValueError(f"a ceiling's name ends in {' or '.join(_UNITS)}; got '{ceiling}'")


def bandwidth_ceiling(problem: Problem, size: Size) -> str:
    """The name of the bandwidth ceiling of this problem: ``read_gb_s`` if it writes next to nothing."""
    written = sum(int(np.prod(a.extents(size), dtype=np.int64)) * np.dtype(a.dtype).itemsize for a in problem.outputs)
    return "read_gb_s" if written < READ_ONLY_SHARE * problem.bytes(size) else "copy_gb_s"


def limit(problem: Problem, size: Size, ceilings: Mapping[str, float]) -> Limit:
    """The limit at one size, from ceilings such as ``{"copy_gb_s": 4275.0, "fp32_tflop_s": 65.0}``.

    Raises :class:`MissingCeiling` when the problem needs a ceiling that is missing.
    """
    return Limit(
        _seconds(problem.bytes(size), bandwidth_ceiling(problem, size), ceilings),
        _seconds(problem.flops(size), "fp32_tflop_s", ceilings),
    )


def limit_s(problem: Problem, size: Size, ceilings: Mapping[str, float]) -> float:
    """The least time in seconds. Raises :class:`MissingCeiling`."""
    return limit(problem, size, ceilings).seconds


def arithmetic_intensity(problem: Problem, size: Size) -> float:
    """FLOPs per byte of the least traffic; inf for a problem that moves no bytes."""
    moved = problem.bytes(size)
    return problem.flops(size) / moved if moved else float("inf")


def _seconds(work: int, ceiling: str, ceilings: Mapping[str, float]) -> float:
    if not work:
        return 0.0
    if ceiling not in ceilings:
        raise MissingCeiling(f"the ceiling {ceiling} was not measured (there are {', '.join(ceilings) or 'none'})")
    return work / (ceilings[ceiling] * unit(ceiling))
