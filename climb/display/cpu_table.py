"""A table of CPU times beside the best rung, for scale."""

from __future__ import annotations

from collections.abc import Sequence

from climb.bench.cpu import cpu_times
from climb.bench.problem import Size, size_label
from climb.bench.timings import Timings
from climb.bench.units import ratio_text, time_text
from climb.display.cell_output import CellOutput, table


def cpu_table(timings: Timings, sizes: Sequence[Size] | None = None) -> CellOutput:
    """Show the times of NumPy and PyTorch on a CPU, and how many times as fast our best rung is.

    It is the CPU of the record's machine, or of another one, whose GPU the caption names. ``sizes`` selects the sizes
    to show, by default all that were measured; the caption gives what they have in common. The CPU's caches are warm
    and the GPU's are cold. If no CPU has been measured yet, the table says how to measure it.

    >>> cpu_table(timings("conv3d"))                                                         # doctest: +SKIP
    """
    ladder = timings.ladder
    try:
        known = cpu_times(ladder)
    except LookupError as missing:
        return table([[missing.args[0]]], ["pending"])
    points = [point for point in known.record.points if sizes is None or point.size in [dict(size) for size in sizes]]
    first = points[0].size if points else {}
    common = {key: extent for key, extent in first.items() if all(point.size[key] == extent for point in points)}
    rows = []
    for point in points:
        size = {key: extent for key, extent in point.size.items() if key not in common}
        spent, best = known.seconds(point.name, point.size), timings.best(point.size)
        ours = timings.seconds(best, point.size)
        rows.append([f"{point.name}: {point.call}", size_label(size), time_text(spent), time_text(ours),
                     ratio_text(spent / ours)])  # fmt: skip
    columns = ["on the CPU", "size", "time", f"{timings.reference.gpu}", "ratio"]
    other = f", in a machine with an {known.gpu}" if known.gpu != timings.reference.gpu else ""
    said = [f"{known.processor}{other}", known.record.date, size_label(common)]
    if not any(row[1] for row in rows):
        rows, columns = [[row[0], *row[2:]] for row in rows], [columns[0], *columns[2:]]
    return table(rows, columns, caption="; ".join(filter(None, said)))
