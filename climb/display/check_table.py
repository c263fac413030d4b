"""A table of all rungs of a ladder, each launched once and compared with the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from climb.bench.checking import verify
from climb.bench.ladder import BoundRung, Ladder
from climb.bench.problem import Launch, RungUnavailable, Size, size_label
from climb.display.cell_output import CellOutput, Code, table


def check_table(ladder: Ladder, size: Size | None = None, *, rungs: Sequence[str] | None = None) -> CellOutput:
    """Launch every rung through ``cp``, compare its outputs with the reference, and list them with grid and block.

    ``size`` is by default the largest of the problem's check sizes that all rungs take. A rung that does not take it
    runs at the largest check size that it takes, which the table then shows. ``rungs`` chooses some by name. Errors are
    not listed, since their last digits depend on the order of atomics; the caption gives the tolerance that all meet.
    If this GPU cannot run a rung, the reason replaces the result. Raises WrongResult for a rung whose result is wrong,
    and ValueError for one that takes none of the sizes.

    >>> check_table(transpose)                                                              # doctest: +SKIP
    """
    chosen = [ladder[name] for name in rungs] if rungs is not None else list(ladder)
    common = size if size is not None else _largest(ladder, chosen)
    rows: list[list[Any]] = []
    tolerances = []
    for rung in chosen:
        own = common if common is not None and rung.rung.requires(common) is None else _largest(ladder, [rung])
        if own is None:
            raise ValueError(f"{ladder.name} '{rung.name}' takes neither this size nor any check size of its problem")
        try:
            tolerances.append(verify(rung, own).tolerance)
            result = "right"
        except RungUnavailable as lacking:
            result = str(lacking).partition(": ")[2]
        rows.append([rung.name, Code(_launched(rung.launches(own))), size_label(own), result])
    columns = ["rung", "grid x block", "size", "result"]
    at = ""
    if len({row[2] for row in rows}) == 1:
        at = f" at {rows[0][2]}"
        columns, rows = [*columns[:2], columns[3]], [[*row[:2], row[3]] for row in rows]
    shown = table(rows, columns, caption=f"{ladder.problem.title}{at}: every rung {_met(max(tolerances, default=0))}")
    # A test reads from the committed page which rungs a chapter has launched.
    opening = f'<div data-ladder="{ladder.name}" data-rungs="{" ".join(rung.name for rung in chosen)}">'
    return CellOutput(f"{opening}\n{shown.html}\n</div>", shown.text)


def _largest(ladder: Ladder, rungs: Sequence[BoundRung]) -> Size | None:
    """Return the check size with the most work that all these rungs take, or None."""
    problem = ladder.problem
    taken = [size for size in problem.check if all(rung.rung.requires(size) is None for rung in rungs)]
    return max(taken, key=lambda size: problem.bytes(size) + problem.flops(size), default=None)


def _met(tolerance: float) -> str:
    """Say what all results have in common, as the end of a sentence."""
    return f"is within {tolerance:.2g} of the reference" if tolerance else "equals the reference"


def _launched(launches: Sequence[Launch]) -> str:
    """Format grid and block of each launch: ``(4, 4) x (32, 8)``; for more than two launches the first, and how many
    follow."""
    each = [f"{_extents(one.grid)} x {_extents(one.block)}" for one in launches]
    if len(each) > 2:
        return f"{each[0]}, then {len(each) - 1} more"
    return ", then ".join(each) or "nothing"


def _extents(dims: Sequence[int]) -> str:
    return str(dims[0]) if len(dims) == 1 else f"({', '.join(map(str, dims))})"
