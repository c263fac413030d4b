"""One section of Nsight Compute's report for a few launches, from the records of ``climb profile``."""

from __future__ import annotations

import math
from collections.abc import Mapping

from climb.bench.problem import Size
from climb.bench.profiling import hardware_counters
from climb.bench.sections import SECTIONS, section
from climb.bench.units import significant
from climb.display.cell_output import CellOutput, table

#: A launch that was profiled: ladder, rung and size.
Profiled = tuple[str, str, Size]


def launch_counts(launch: Profiled) -> dict[str, int | float]:
    """Return Nsight Compute's counts of a launch on the reference GPU. Raises LookupError if it has no counts."""
    ladder, rung, size = launch
    return hardware_counters(ladder).at(rung, size)


def profile_table(identifier: str, launches: Mapping[str, Profiled]) -> CellOutput:
    """Show a row per launch, under the label of ``launches``, with the numbers of one section.

    If a launch has not been profiled yet, the table says how to count it. Raises LookupError for a section that
    ``climb.bench.sections`` lacks.

    >>> profile_table("SpeedOfLight", {"tiled": ("matmul", "tiled", size)})                  # doctest: +SKIP
    """
    chosen = section(identifier)
    try:
        counted = {label: launch_counts(launch) for label, launch in launches.items()}
        rows = [[label, *(_cell(c.read(counts), c.unit) for c in chosen.columns)] for label, counts in counted.items()]
    except LookupError as missing:
        return table([[missing.args[0]]], ["pending"])
    known = {(found.gpu, found.date) for found in (hardware_counters(ladder) for ladder, _, _ in launches.values())}
    where = "; ".join(f"{gpu}, {date}" for gpu, date in sorted(known))
    return table(rows, ["launch", *(c.heading for c in chosen.columns)], caption=f"{chosen.title}. {where}")


def sections_table() -> CellOutput:
    """List the sections that our records can fill: the question of each, and its name for ``ncu --section``."""
    return table([[one.question, one.title, one.identifier] for one in SECTIONS], ["question", "section", "--section"])


def _cell(value: float | str, unit: str) -> str:
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "none"
    return f"{value:.0f} %" if unit == "%" else significant(value, 2)
