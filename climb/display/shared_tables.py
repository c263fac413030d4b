"""Tables of ladders over several GPUs: what each rung sends, how long it takes, and how much faster than one GPU."""

from __future__ import annotations

from typing import Any

from climb.bench.problem import Size, size_label
from climb.bench.records import Record
from climb.bench.units import significant, time_text
from climb.display.cell_output import CellOutput, table
from climb.distributed.ladder import SharedLadder
from climb.distributed.outcomes import outcomes
from climb.distributed.recorded import speedup


def shared_check_table(ladder: SharedLadder, size: Size, ranks: int = 2) -> CellOutput:
    """Run every rung that takes the size on ranks of the stand-in, compare each rank's outputs, and list the messages.

    Messages come as late as the streams allow. Raises what a run raises, WrongResult among it.

    >>> shared_check_table(load_shared_ladder("halo3d"), size, ranks=3)                      # doctest: +SKIP
    """
    rows = []
    for one in outcomes(ladder, size, ranks):
        messages = f"{one.messages}" if one.messages else "none"
        rows.append([one.name, ladder[one.name].idea, one.ranks, messages, _bytes(one.nbytes), "right"])
    columns = ["rung", "idea", "ranks", "messages", "bytes", "result"]
    return table(rows, columns, caption=f"{ladder.problem.title}, {size_label(size)}: every rank's outputs are right")


def shared_times_table(ladder: SharedLadder, record: Record, size: Size) -> CellOutput:
    """The recorded times of a ladder's rungs at a size, and how many times faster each is than one GPU.

    >>> shared_times_table(halo, shared_record("halo3d"), size)                             # doctest: +SKIP
    """
    rows: list[list[Any]] = []
    for name in ladder.names:
        point = record.find(name, size, "cold")
        if point is None:
            continue
        times = speedup(record, point)
        noise = f"{100 * point.noise:.1f} %"
        rows.append([name, ladder[name].idea, point.gpus, time_text(point.median_s), noise, _times(times)])
    columns = ["rung", "idea", "GPUs", "time", "spread", "speed-up"]
    gpus = f"{record.device.get('gpus', 1)} x {record.gpu}"
    return table(rows, columns, caption=f"{ladder.problem.title}, {size_label(size)}; {gpus}, {record.date}")


def _times(factor: float | None) -> str:
    return "" if factor is None else f"{significant(factor)}x"


def _bytes(nbytes: int) -> str:
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= scale:
            return f"{significant(nbytes / scale)} {unit}"
    return f"{nbytes} B"
