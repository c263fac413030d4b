"""Compare the results of a launch under several schedules, bit by bit."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from .errors import EmulatorError
from .execution.schedules import Schedule


@dataclass(frozen=True)
class Difference:
    """An output that differs from the one in the usual order: `count` elements under `schedule`, first at `index`."""

    schedule: Schedule
    output: str
    index: tuple[int, ...]
    usual: np.generic
    found: np.generic
    count: int


@dataclass(frozen=True)
class Comparison:
    """The outputs of a launch under `schedules`, compared bit by bit with those in the usual order.

    `differences` has at most one entry for each schedule and output. `bool()` tells whether there are any, `str()`
    gives a report.
    """

    schedules: tuple[Schedule, ...]
    differences: tuple[Difference, ...]

    def __bool__(self) -> bool:
        return bool(self.differences)

    def __str__(self) -> str:
        seeds = [schedule.seed for schedule in self.schedules]
        which = f"{len(seeds)} schedules, seeds {seeds[0]} to {seeds[-1]}" if seeds else "no schedules"
        if not self:
            return f"{which}: the outputs are equal, bit by bit"
        lines = [f"{which}: the outputs depend on the schedule"]
        for output in dict.fromkeys(each.output for each in self.differences):
            found = [each for each in self.differences if each.output == output]
            first = found[0]
            at = ", ".join(map(str, first.index))
            lines.append(
                f"  {output}: {first.count} elements differ under {first.schedule}; the first is [{at}]: {first.found} "
                f"instead of {first.usual} in the usual order"
            )
            lines.append(f"  it differs under {', '.join(str(each.schedule) for each in found)}")
        return "\n".join(lines)


def compare(
    usual: Mapping[str, np.ndarray],
    again: Callable[[Schedule], Mapping[str, np.ndarray]],
    schedules: Iterable[Schedule],
) -> Comparison:
    """Launch `again` under each schedule and compare the outputs, by name, with the `usual` ones.

    What the kernel prints is left out. An EmulatorError that `again` raises names the schedule.
    """
    schedules, differences = tuple(schedules), []
    for schedule in schedules:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                outputs = again(schedule)
        except EmulatorError as error:
            error.args = (f"{error.args[0]}\n  under {schedule}; the usual order does not show it", *error.args[1:])
            raise
        for name, before in usual.items():
            after = outputs[name]
            bits = [np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (before, after)]
            unequal = (bits[0] != bits[1]).reshape(before.size, -1).any(axis=1) if before.size else np.zeros(0, bool)
            if unequal.any():
                first = np.unravel_index(int(np.flatnonzero(unequal)[0]), before.shape)
                index = tuple(int(each) for each in first)
                count = int(np.count_nonzero(unequal))
                differences.append(Difference(schedule, name, index, before[index], after[index], count))
    return Comparison(schedules, tuple(differences))
