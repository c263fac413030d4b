"""Counters as a readable table."""

from __future__ import annotations

from .counters import AccessCounters, Counters

HEAD = ("line", "access", "bytes", "requests", "per request", "ideal", "conflicts", "source")


def _row(one: AccessCounters, marked: bool) -> tuple[str, ...]:
    if one.kind.startswith("shared"):
        each, unit, ideal = one.wavefronts, "wavefronts", one.ideal_wavefronts
    else:
        each, unit, ideal = one.sectors, "sectors", one.ideal_sectors
    rate = f"{each / one.requests:.4g} {unit}" if each else "-"
    best = f"{ideal / one.requests:.4g}" if each else "-"
    conflicts = str(one.bank_conflicts) if one.kind.startswith("shared") else "-"
    return (
        f"{one.line}{'*' if marked else ''}",
        one.kind,
        str(one.width),
        str(one.requests),
        rate,
        best,
        conflicts,
        one.text,
    )


def table(counters: Counters) -> str:
    """The lines that access memory, and the totals, as text. Lines with a mark have a star, explained below."""
    changed = [mark for mark in counters.marks if mark.changes]
    starred = {(mark.file, mark.line, mark.kind) for mark in changed}
    rows = [HEAD, *(_row(one, (one.file, one.line, one.kind) in starred) for one in counters.lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD) - 1)]
    out = []
    for row in rows:
        cells = [
            cell.ljust(width) if i == 1 or i == 4 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        out.append(("  ".join(cells) + "  " + row[-1]).rstrip())
    grid, block = ("x".join(map(str, each)) for each in (counters.grid, counters.block))
    out.insert(0, f"{counters.kernel}: grid {grid}, block {block}")
    out.append(
        f"warp instructions {counters.warp_instructions}, thread instructions {counters.thread_instructions}, "
        f"lane efficiency {counters.lane_efficiency:.1%}"
    )
    out.append(f"branches {counters.branches}, divergent {counters.divergent_branches}, barriers {counters.barriers}")
    if changed:
        out.append("* the machine code accesses memory otherwise than the PTX here, and the hardware may count so:")
        out += [f"  line {mark}" for mark in changed]
    return "\n".join(out)
