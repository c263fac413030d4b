"""Tables of counters, of times, and of machine instructions."""

from __future__ import annotations

from typing import Any

from climb.bench.machine_code import opcode_counts
from climb.bench.problem import Size
from climb.bench.timings import verdict
from climb.bench.units import percent_text, rate_text, ratio_text, significant, time_text
from climb.display.cell_output import CellOutput, Code, table
from climb.display.selection import Selected, has_mine, select


def counters_table(counters: Any, before: Any = None, *, caption: str = "") -> CellOutput:
    """Show a table of the emulator's ``Counters``.

    Without ``before``: one row per source line and kind of access, with the sectors (global memory) or wavefronts
    (shared) per request and the least that the same bytes would take; for the copy engine, the bytes of a request.
    With ``before``: one row per kind of access, before and after, since two rungs have no lines in common.

    >>> counters_table(counters(transpose["padded"], size))                                 # doctest: +SKIP
    >>> counters_table(counters(transpose["padded"], size), before=counters(transpose["tiled"], size))  # doctest: +SKIP
    """
    if before is not None:
        return _before_after(before, counters, caption)
    columns = ["line", "access", "requests", "per request", "least", "source"]
    rows = []
    for access in sorted(counters.lines, key=lambda a: (a.line, a.kind, a.width)):
        is_global = _moves_sectors(access.kind)
        width = access.lanes // max(access.requests, 1) if access.kind.startswith("tma") else access.width
        cost, least = (
            (access.sectors, access.ideal_sectors) if is_global else (access.wavefronts, access.ideal_wavefronts)
        )
        each = _per(cost, access.requests)
        rows.append(
            [
                str(access.line),
                f"{access.kind}, {width} B",
                access.requests,
                f"{each} {'sector' if is_global else 'wavefront'}{'' if each == '1' else 's'}",
                _per(least, access.requests),
                Code(access.text.strip()),
            ]
        )
    return table(rows, columns, caption=caption)


def _moves_sectors(kind: str) -> bool:
    """Return whether a kind of access is counted in sectors: to global memory, by threads or by the copy engine."""
    return kind.startswith(("global", "tma"))


def _before_after(before: Any, after: Any, caption: str) -> CellOutput:
    kinds = list(dict.fromkeys(a.kind for c in (before, after) for a in c.lines))
    rows: list[list[Any]] = []
    for kind in sorted(kinds, key=_kind_order):
        old, new = (_total(c, kind) for c in (before, after))
        if _moves_sectors(kind):
            rows.append([f"{kind}: sectors / request", _share(old, "sectors"), _share(new, "sectors")])
        else:
            rows.append([f"{kind}: wavefronts / request", _share(old, "wavefronts"), _share(new, "wavefronts")])
            rows.append([f"{kind}: bank conflicts", _conflicts(old), _conflicts(new)])
        rows.append([f"{kind}: requests", old["requests"] if old else 0, new["requests"] if new else 0])
    rows.append(["warp instructions", before.warp_instructions, after.warp_instructions])
    return table(rows, ["count", "before", "after"], caption=caption)


def _total(counters: Any, kind: str) -> dict[str, int] | None:
    """Sum one kind of access over its lines; None if the kernel has no such access."""
    names = ("requests", "sectors", "wavefronts", "ideal_sectors", "ideal_wavefronts")
    found = [a for a in counters.lines if a.kind == kind]
    return {n: sum(int(getattr(a, n)) for a in found) for n in names} if found else None


def _share(total: dict[str, int] | None, name: str) -> str:
    return _per(total[name], total["requests"]) if total else "-"


def _conflicts(total: dict[str, int] | None) -> int | str:
    return total["wavefronts"] - total["ideal_wavefronts"] if total else "-"


def _kind_order(kind: str) -> tuple[int, str]:
    known = ("global load", "global store", "shared load", "shared store")
    return (known.index(kind) if kind in known else len(known), kind)


def _per(count: int, requests: int) -> str:
    if not requests:
        return "-"
    return str(count // requests) if count % requests == 0 else significant(count / requests)


def timing_table(
    timings: Any, size: Size | None = None, upto: str | None = None, *, errors: bool = False
) -> CellOutput:
    """Show a table of times at one size (the first headline size if None): rungs first to last, peers, the limit.

    Each row has the time, the rate (TFLOP/s where arithmetic sets the limit, else GB/s), the share of the limit, the
    ratio to the fastest peer of the same precision, and the verdict against the rung before it: faster, slower, same or
    ambiguous, by the intervals from the 25th to the 75th percentile. A rung that declares its own work is also compared
    with the limit of that work. A dagger marks a time that was sampled below 95 % of the GPU's highest clock; the
    caption has the clocks. If the reader's own GPU was measured, a column gives its times. The newest rung is
    emphasised. A pending rung has the word in place of its time. ``errors`` adds the verified outputs' errors, normwise
    and componentwise. Raises ValueError if nothing was measured at this size.

    >>> timing_table(timings("transpose"), upto="padded")                                   # doctest: +SKIP
    """
    chosen = select(timings, size, upto)
    own = select(timings, chosen.size, mine=True) if has_mine(timings, chosen.size) else None
    mine = {p.name: p for p in (*own.rungs, *own.peers)} if own else {}
    peer = chosen.peer
    columns = ["rung", "time", "rate"]
    columns += ["of the limit"] if chosen.limit else []
    columns += ["of its own limit"] if any(chosen.own_limit(p) for p in chosen.rungs) else []
    columns += [f"against {peer.name}"] if peer else []
    columns += ["against the rung before"] + (["time here"] if mine else [])
    columns += ["error, normwise", "error, componentwise"] if errors else []
    rows: list[dict[str, Any]] = []
    previous = None
    points = {p.name: p for p in chosen.rungs}
    for point in (*(points.get(name, name) for name in chosen.names), *chosen.peers):
        if isinstance(point, str):
            rows.append({"rung": point, "time": "pending"})
            previous = None  # nothing to compare the next rung with
            continue
        row = {
            "rung": point.name,
            "time": time_text(point.median_s) + (" †" if chosen.slowed(point) else ""),
            "rate": rate_text(chosen.work(point), point.median_s, chosen.resource),
        }
        for column, share in (("of the limit", chosen.share(point)), ("of its own limit", chosen.own_share(point))):
            if share is not None:
                row[column] = percent_text(share)
        if errors:
            row["error, normwise"] = f"{point.max_rel_error:.2g}"
            component = point.max_component_error
            row["error, componentwise"] = "pending" if component is None else f"{component:.2g}"
        if peer and point is not peer:
            row[f"against {peer.name}"] = ratio_text(peer.median_s / point.median_s)
        if point.kind == "rung" and previous is not None:
            row["against the rung before"] = _change(verdict(point, previous), previous.median_s / point.median_s)
        if point.name in mine:
            row["time here"] = time_text(mine[point.name].median_s)
        previous = point
        rows.append(row)
    if chosen.limit:
        rows.append({"rung": "limit", "time": time_text(chosen.limit.seconds), "of the limit": "100 %"})
    caption = f"{chosen.ladder.problem.title}, {_spelled(chosen.size)}, {chosen.regime}. {chosen.record.gpu}, "
    when = chosen.record.date[:10] or "not measured yet"
    return table(rows, columns, caption=caption + when + _clocks(chosen), newest=len(chosen.names) - 1)


def _clocks(chosen: Selected) -> str:
    """Return the end of a caption: the SM clocks at which the marked times were sampled; "" without any."""
    slowed = [f"{p.name} at {clock} MHz" for p in (*chosen.rungs, *chosen.peers) if (clock := chosen.slowed(p))]
    highest = chosen.record.device["clocks"]["max_sm_mhz"] if slowed else None
    return f". † The SM clock was lower than its {highest} MHz: {', '.join(slowed)}" if slowed else ""


def _change(verdict: str, ratio: float) -> str:
    """Format a verdict with its size: in percent below a tenth, else as a ratio."""
    if verdict not in ("faster", "slower"):
        return verdict
    times = ratio if verdict == "faster" else 1 / ratio
    return f"{percent_text(times - 1) if times < 1.0995 else ratio_text(times)} {verdict}"


def _spelled(size: Size) -> str:
    return ", ".join(f"{key} = {value}" for key, value in size.items())


def sass(rung: Any, size: Size, only: str = "LDG|STG|LDS|STS") -> CellOutput:
    """Show a table of the machine instructions of a rung's kernels whose opcode matches ``only``, a regular expression.

    One row per source line and opcode, with the number of its occurrences in the code. Operands are left out, since
    they change with every compiler patch. Needs no GPU. Raises ValueError if no instruction matches.

    >>> sass(copy["vectorised"], size, only="LDG|STG")                                      # doctest: +SKIP
    """
    compiled = rung.compiled(size)
    counted = opcode_counts(compiled, dict.fromkeys(one.kernel for one in rung.launches(size)), only)
    if not counted:
        raise ValueError(f"no instruction of {rung.name} starts with {only}")
    rows = []
    for (file, line, opcode), count in counted.items():
        listing = compiled.sources.get(file, "").split("\n")
        text = listing[line - 1].strip() if 1 <= line <= len(listing) else ""
        rows.append([str(line) if line else "", Code(opcode), count, Code(text)])
    return table(rows, ["line", "instruction", "times in the code", "source"])
