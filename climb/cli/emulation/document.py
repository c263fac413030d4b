"""The output of ``climb emulate --json``: the launch, its counters line by line, and the fault if there is one.

`format` is the version of this layout: a number that grows when a key changes its meaning. New keys may appear.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from climb.emulator import Comparison, Counters, EmulatorError
from climb.emulator.errors import Where
from climb.toolchain.names import demangled

FORMAT = 1


def document(
    status: int,
    counters: Counters | None,
    fault: Exception | None = None,
    comparison: Comparison | None = None,
    arrays: Mapping[str, np.ndarray] | None = None,
) -> dict[str, Any]:
    """Return the launch as JSON can hold it. `counters`: of the whole launch, or up to the fault; None if nothing
    ran."""
    return {
        "format": FORMAT,
        "status": status,
        "kernel": demangled(counters.kernel) if counters else None,
        "grid": list(counters.grid) if counters else None,
        "block": list(counters.block) if counters else None,
        "fault": _fault(fault),
        "totals": _totals(counters) if counters else None,
        **(_lines(counters) if counters else {}),
        "notes": list(counters.notes) if counters else [],
        "schedules": _comparison(comparison),
        "arrays": {name: _array(value) for name, value in (arrays or {}).items()},
    }


def _fault(fault: Exception | None) -> dict[str, Any] | None:
    if fault is None:
        return None
    if not isinstance(fault, EmulatorError):
        return {"kind": type(fault).__name__, "message": str(fault)}
    other = fault.details.get("other")
    return {
        "kind": type(fault).__name__,
        "message": str(fault),
        "what": fault.what,
        "hint": fault.hint,
        "place": _place(fault.where),
        "other": _place(other) if isinstance(other, Where) else None,
    }


def _place(where: Where) -> dict[str, Any]:
    return {**asdict(where), "kernel": demangled(where.kernel)}


def _totals(counters: Counters) -> dict[str, Any]:
    names = ("warp_instructions", "thread_instructions", "branches", "divergent_branches", "barriers")
    return {name: getattr(counters, name) for name in names} | {"lane_efficiency": _number(counters.lane_efficiency)}


def _lines(counters: Counters) -> dict[str, list[dict[str, Any]]]:
    return {
        "accesses": [{**asdict(one), "bank_conflicts": one.bank_conflicts} for one in counters.lines],
        "branches": [asdict(one) for one in counters.branch_lines],
        "products": [asdict(one) for one in counters.product_lines],
        "executed": [{**asdict(one), "lane_efficiency": one.lane_efficiency} for one in counters.execution_lines],
        "marks": [
            {"file": one.file, "line": one.line, "kind": one.kind, "reason": one.reason}
            for one in counters.marks
            if one.changes
        ],
    }


def _comparison(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {
        "seeds": [each.seed for each in comparison.schedules],
        "differences": [
            {
                "schedule": str(one.schedule),
                "output": one.output,
                "index": list(map(int, one.index)),
                "count": one.count,
            }
            for one in comparison.differences
        ],
    }


def _array(value: np.ndarray) -> dict[str, Any]:
    return {"dtype": str(value.dtype), "shape": list(value.shape)}


def _number(value: float) -> float | None:
    """Return the number, or None for NaN, which JSON does not have."""
    return None if math.isnan(value) else value
