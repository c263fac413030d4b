"""Run a rung on all ranks and compare every rank's share of the outputs with the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from climb.bench.checking import WrongResult, compare
from climb.bench.cuda import backend, cp
from climb.bench.problem import Size, size_label
from climb.distributed.execution import Execution, Order
from climb.distributed.ladder import SharedLadder
from climb.distributed.peers import shareable
from climb.distributed.plan import Place
from climb.distributed.rank import connect

#: What an element holds that nothing has written yet.
NOTHING = np.nan


@dataclass(frozen=True)
class Outcome:
    """A verified run: the largest error of a rank's outputs, relative to the largest value, and what was sent."""

    name: str
    ranks: int
    error: float
    messages: int
    nbytes: int


def allocate(ladder: SharedLadder, name: str, place: Place, size: Size, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A rank's arrays on the device: its share of the inputs; NaN (or the largest integer) where it has nothing yet."""
    given = ladder.share(name, inputs, place, size)
    made = {}
    for array, (shape, dtype) in ladder.arrays(name, place, size).items():
        host = given.get(array)
        if host is not None and (host.shape != shape or host.dtype != dtype):
            raise ValueError(f"{array}: the share is {host.dtype}{host.shape}, the array {dtype}{shape}")
        made[array] = shareable(shape, dtype) if array in ladder[name].shared else cp.empty(shape, dtype=dtype)
        fill(made[array], host)
    if backend == "cupy":
        cp.cuda.Device().synchronize()
    return made


def fill(array: Any, host: np.ndarray | None) -> None:
    """Put these values into a device array, or NaN (the largest integer) if there are none."""
    if host is not None:
        array.set(np.ascontiguousarray(host))
    elif array.size:
        array.fill(NOTHING if array.dtype.kind == "f" else np.iinfo(array.dtype).max)


def check(
    ladder: SharedLadder, name: str, place: Place, size: Size, arrays: Mapping[str, Any], want: Mapping[str, np.ndarray]
) -> float:
    """Compare a rank's outputs with ``want``, its reference; return the largest error.

    Raises :class:`~climb.bench.checking.WrongResult`, which names the rank.
    """
    worst = 0.0
    tolerance = ladder.tolerance(name, size)
    for output, expected in want.items():
        out = cp.asnumpy(arrays[output]).reshape(expected.shape)
        found = compare(out, expected, tolerance)
        if found.wrong or not found.error <= tolerance:
            first = np.unravel_index(found.first_wrong or 0, expected.shape) if expected.size else ()
            raise WrongResult(
                f"{ladder.name} '{name}' at {size_label(size)}, rank {place.rank} of {place.ranks}: {output} is wrong "
                f"in {found.wrong} of {out.size} elements, first at {tuple(map(int, first))}: "
                f"{out[first] if out.size else ''} instead of {expected[first] if out.size else ''}"
            )
        worst = max(worst, found.error)
    return worst


def run(
    ladder: SharedLadder, name: str, size: Size, ranks: int = 2, seed: int = 0, order: Order = "written"
) -> Outcome:
    """Run a rung on ranks that are threads of this process, on the stand-in, and check the outputs of each.

    Raises RankFailed, which has the rank's error, Deadlock, and what ``plans`` raises. It needs no GPU, and is
    not for a process that uses one: ``python -m climb.launch`` starts a process a GPU.
    """
    from climb.fake_cupy.ranks import run_ranks

    __tracebackhide__ = True
    ranks = ladder.ranks(name, ranks)
    messages = ladder.messages(name, ranks, size)
    inputs = ladder.inputs(size, seed)

    def program(number: int) -> float:
        rank = connect()
        arrays = allocate(ladder, name, rank.place, size, inputs)
        execution = Execution(ladder, name, rank, size, arrays, order)
        execution()
        rank.barrier(execution.stream)
        execution.close()
        return check(ladder, name, rank.place, size, arrays, ladder.reference(name, inputs, rank.place, size))

    errors = run_ranks(program, ranks)
    return Outcome(name, ranks, max(errors), len(messages), sum(one.nbytes for one in messages))
