"""The errors of all ladders whose outputs are sums of products: of their best rungs and of the libraries."""

from __future__ import annotations

from collections.abc import Iterable

from climb.bench import records
from climb.bench.problem import short_size
from climb.bench.records import Point
from climb.bench.registry import ladder_names, load_ladder
from climb.bench.shown_peers import like_for_like, shown
from climb.display.cell_output import CellOutput, table


def rounding_table(names: Iterable[str] | None = None, gpu: str = records.DEFAULT_GPU) -> CellOutput:
    """Show the largest errors against float64, normwise and componentwise, at the first headline size of each ladder.

    A row has the ladder's fastest rung and the fastest library of the same precision. By default all ladders are shown.
    Ladders without a record are left out, and so are those whose outputs are not sums. An error that a record does not
    have yet is "pending".
    """
    rows = []
    for name in ladder_names() if names is None else names:
        ladder = load_ladder(name)
        record = records.find_record(ladder.name, gpu)
        if ladder.problem.reference_magnitude is None or record is None:
            continue
        size = ladder.problem.headline[0]
        measured = [p for bound in ladder if (p := record.find(bound.name, size, "cold"))]
        of_peers = [p for peer in ladder.peers if (p := record.find(peer.name, size, "cold"))]
        alike = [p for p in shown(of_peers, ladder.problem.precision) if like_for_like(p, ladder.problem.precision)]
        if measured:
            best = min(measured, key=lambda p: p.median_s)
            rows.append([ladder.name, short_size(size), *_cells(best), *(_cells(alike[0]) if alike else [""] * 3)])
    columns = ["ladder", "size", "best rung", "normwise", "componentwise", "library", "normwise ", "componentwise "]
    return table(rows, columns, caption="Largest errors against float64")


def _cells(point: Point) -> list[str]:
    return [point.name, *(_text(error) for error in (point.max_rel_error, point.max_component_error))]


def _text(error: float | None) -> str:
    """Format an error to one digit, all that the largest of many errors supports; "0" for an exact result."""
    return "pending" if error is None else f"{error:.0e}" if error else "0"
