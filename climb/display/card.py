"""The card at the top of a chapter."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from climb.display.cell_output import CellOutput
from climb.display.selection import ladder_of, record_of


def card(
    *, before: Sequence[str], minutes: int, timings: Any = None, ladder: Any = None, upto: str | None = None
) -> CellOutput:
    """Make the card at the top of a chapter: prerequisites, reading time, the ladder, and the GPU of its times.

    ``timings`` (the result of ``timings(ladder)``, or a list of such results) gives ladder, GPU and date; a chapter
    without times gives ``ladder``. A ladder that has the rung ``upto`` is shown up to that rung. Raises ValueError for
    less than a minute.

    >>> card(before=["what a warp is"], minutes=25, timings=timings("transpose"))           # doctest: +SKIP
    """
    if minutes < 1:
        raise ValueError(f"minutes is {minutes}; expected at least 1")
    several = list(timings) if isinstance(timings, (list, tuple)) else [timings] if timings is not None else []
    ladders = [ladder_of(t) for t in several] or ([ladder] if ladder is not None else [])
    entries = [
        ("Before this", "; ".join(before) or "nothing"),
        ("Reading time", "1 minute" if minutes == 1 else f"{minutes} minutes"),
    ]
    for one in ladders:
        names = one.names[: one.names.index(upto) + 1] if upto in one.names else one.names
        entries.append((f"Ladder {one.name}", " → ".join(names)))
    for gpu, dates in _measured(several).items():
        entries.append(("Measured on", f"{gpu}, {dates}"))
    differing = {
        package: how for one in several for package, how in record_of(one)[0].device.get("differs", {}).items()
    }
    if differing:
        entries.append(("Not as locked", "; ".join(f"{package} {how}" for package, how in differing.items())))
    html = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in entries)
    return CellOutput(f'<dl class="rl-card">{html}</dl>', "\n".join(f"{k}: {v}" for k, v in entries))


def _measured(several: Sequence[Any]) -> dict[str, str]:
    dates: dict[str, list[str]] = {}
    for one in several:
        record, _ = record_of(one)
        dates.setdefault(record.gpu, []).append(record.date[:10] or "not measured yet")
    return {gpu: " to ".join(dict.fromkeys((min(d), max(d)))) for gpu, d in dates.items()}
