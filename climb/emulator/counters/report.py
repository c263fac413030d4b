"""Counters as a readable table."""

from __future__ import annotations

from collections.abc import Sequence

from .lines import AccessCounters
from .marks import Mark

HEAD = ("line", "access", "bytes", "requests", "per request", "ideal", "conflicts", "source")


def _row(one: AccessCounters, marked: bool) -> tuple[str, ...]:
    in_shared_memory = one.kind.startswith(("shared", "matrix"))
    if in_shared_memory:
        each, unit, ideal = one.wavefronts, "wavefronts", one.ideal_wavefronts
    else:
        each, unit, ideal = one.sectors, "sectors", one.ideal_sectors
    rate = f"{each / one.requests:.4g} {unit}" if each else "-"
    best = f"{ideal / one.requests:.4g}" if each else "-"
    conflicts = str(one.bank_conflicts) if in_shared_memory else "-"
    return (
        f"{one.line}{'*' if marked else ''}",
        one.kind,
        f"{one.bytes / one.requests:.4g}" if one.kind.startswith("tma") else str(one.width),
        str(one.requests),
        rate,
        best,
        conflicts,
        one.text,
    )


def table(
    heading: str,
    lines: Sequence[AccessCounters],
    totals: Sequence[str],
    marks: Sequence[Mark],
    notes: Sequence[str] = (),
) -> str:
    """Format the heading, a row for each line that accesses memory, the totals and the notes.

    A star refers to a mark listed before the notes.
    """
    changed = [mark for mark in marks if mark.changes]
    starred = {(mark.file, mark.line, mark.kind) for mark in changed}
    rows = [HEAD, *(_row(one, (one.file, one.line, one.kind) in starred) for one in lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD) - 1)]
    out = []
    for row in rows:
        cells = [
            cell.ljust(width) if i == 1 or i == 4 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        out.append(("  ".join(cells) + "  " + row[-1]).rstrip())
    out = [heading, *out, *totals]
    if changed:
        out.append(
            "* here the machine code accesses memory differently from the PTX, so the hardware may count differently:"
        )
        out += [f"  line {mark}" for mark in changed]
    out += [f"note: {note}" for note in notes]
    return "\n".join(out)
