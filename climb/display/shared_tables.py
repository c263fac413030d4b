"""Tables of ladders over several GPUs: the messages of each rung, its time, and its speed-up over one GPU."""

from __future__ import annotations

from typing import Any

from climb.bench.problem import Size, size_label
from climb.bench.records import Record
from climb.bench.units import significant, time_text
from climb.display.cell_output import CellOutput, Code, table
from climb.distributed.ladder import SharedLadder
from climb.distributed.outcomes import outcomes
from climb.distributed.plan import Barrier, Collective, Compute, Copy, Exchange, Send, Step
from climb.distributed.recorded import speedup


def shared_check_table(ladder: SharedLadder, size: Size, ranks: int = 2) -> CellOutput:
    """Run every rung that takes the size on ranks of the stand-in, compare each rank's outputs, and list the messages.

    Messages come as late as the streams allow. Raises the errors of a run, WrongResult among them.

    >>> shared_check_table(load_shared_ladder("halo3d"), size, ranks=3)                      # doctest: +SKIP
    """
    rows = []
    for one in outcomes(ladder, size, ranks):
        messages = f"{one.messages}" if one.messages else "none"
        rows.append([one.name, ladder[one.name].idea, one.ranks, messages, _bytes(one.nbytes), "right"])
    columns = ["rung", "idea", "ranks", "NCCL messages", "bytes", "result"]
    return table(rows, columns, caption=f"{ladder.problem.title}, {size_label(size)}: every rank's outputs are right")


def shared_times_table(ladder: SharedLadder, record: Record, size: Size) -> CellOutput:
    """Show the recorded times of a ladder's rungs at a size, and how many times faster each is than one GPU.

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


def steps_table(ladder: SharedLadder, name: str, size: Size, *, ranks: int = 2, rank: int = 0) -> CellOutput:
    """Show the plan of one rank, a row per step: the stream, and what it does there.

    >>> steps_table(load_shared_ladder("halo3d"), "overlap", size)                          # doctest: +SKIP
    """
    rows = []
    for number, step in enumerate(ladder.plans(name, ranks, size)[rank], 1):
        rows.append([number, step.stream, Code(_said(step))])
    caption = f"{name}, {size_label(size)}: the plan of rank {rank} of {ranks}"
    return table(rows, ["step", "stream", "what it does"], caption=caption)


def _said(step: Step) -> str:
    if isinstance(step, Compute):
        launch = step.launch
        label = f"{step.label}: " if step.label else ""
        return f"{label}{launch.kernel}<<<{'x'.join(map(str, launch.grid))}, {'x'.join(map(str, launch.block))}>>>"
    if isinstance(step, Exchange):
        said = [f"send {m.part} to {m.to}" if isinstance(m, Send) else f"receive {m.part}" for m in step.messages]
        return "; ".join(said) or "nothing to exchange"
    if isinstance(step, Collective):
        return (
            f"{step.kind} {step.source} to {step.target}"
            if step.source != step.target
            else f"{step.kind} {step.source}"
        )
    if isinstance(step, Copy):
        return f"copy {step.source} to {step.target}"
    return "wait until all ranks are here" if isinstance(step, Barrier) else f"wait for the stream {step.on}"


def _times(factor: float | None) -> str:
    return "" if factor is None else f"{significant(factor)}x"


def _bytes(nbytes: int) -> str:
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= scale:
            return f"{significant(nbytes / scale)} {unit}"
    return f"{nbytes} B"
