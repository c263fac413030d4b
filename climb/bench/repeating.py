"""Launches after the one that was verified: each has to give the same bits, or to pass the same check.

A race may spoil one launch of a hundred, and then a single check passes it nearly always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from climb.bench.checking import Case, WrongResult, poison
from climb.bench.cuda import backend, cp
from climb.bench.device_reference import null_stream


def check_again(
    case: Case, name: str, tolerance: float, arrays: Mapping[str, Any], launch: Callable[[], None], times: int
) -> int:
    """Launch ``times`` more, on the current stream, and return how often the outputs in ``arrays`` had other bits than
    after the launch before the first of these, which has been checked.

    Other bits are no mistake by themselves: additions in another order round differently. So such outputs are compared
    with the reference. Raises WrongResult, which says in which launch.
    """
    outputs = {argument.name: arrays[argument.name] for argument in case.problem.outputs}
    with null_stream():
        first = {output: array.copy() for output, array in outputs.items()}
    differed = 0
    for number in range(times):
        for array in outputs.values():
            poison(array)
        launch()
        if all(_same_bits(array, first[output]) for output, array in outputs.items()):
            continue
        differed += 1
        try:
            case.check(arrays, name, tolerance)
        except WrongResult as error:
            raise WrongResult(f"{error} (in launch {number + 1} of {times} after one that was right)") from None
    return differed


def _same_bits(array: Any, other: Any) -> bool:
    """Compare on the device if there is one."""
    if backend == "cupy":
        with null_stream():
            return bool((array.view(np.uint8) == other.view(np.uint8)).all())
    return cp.asnumpy(array).tobytes() == cp.asnumpy(other).tobytes()
