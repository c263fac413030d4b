"""A table of the reasons why warps wait, from Nsight Compute's stall reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping

from climb.bench.ladder import Ladder
from climb.bench.problem import Size
from climb.bench.profiling import hardware_counters
from climb.bench.stalls import cycles_per_instruction, waits
from climb.bench.units import significant
from climb.display.cell_output import CellOutput, table

#: Reasons below LEAST everywhere, or past the first MOST, are merged into "other".
LEAST, MOST = 0.04, 6


def stalls_table(ladder: str | Ladder, launches: Mapping[str, tuple[str, Size]], *, column: str = "rung") -> CellOutput:
    """Show what the warps of some launches wait for, in warp cycles per instruction issued.

    ``launches`` are rung and size by the label of their row, below ``column``. Reasons are in the order of the first
    row. If a launch has not been profiled with stall reasons yet, the table says how to count them.

    >>> stalls_table("matmul", {"naive": ("naive", size), "coalesced": ("coalesced", size)})  # doctest: +SKIP
    """
    try:
        known = hardware_counters(ladder)
        counted = {label: known.at(rung, size) for label, (rung, size) in launches.items()}
        found = {label: waits(counts) for label, counts in counted.items()}
    except LookupError as missing:
        return table([[missing.args[0]]], ["pending"])
    total = {label: cycles_per_instruction(counts) for label, counts in counted.items()}
    first = next(iter(found.values()))
    share = {reason: max(found[label][reason] / total[label] for label in found) for reason in first}
    largest = sorted((reason for reason in first if share[reason] >= LEAST), key=lambda reason: -share[reason])[:MOST]
    shown = [reason for reason in first if reason in largest]
    rows = []
    for label, reasons in found.items():
        other = total[label] - math.fsum(reasons[reason] for reason in shown)
        parts = [significant(reasons[reason], 2) for reason in shown]
        rows.append([label, significant(total[label]), *parts, significant(max(other, 0.0), 2)])
    caption = f"Warp cycles per instruction issued, by what the warp waits for. {known.gpu}, {known.date}"
    return table(rows, [column, "in all", *shown, "other"], caption=caption)
