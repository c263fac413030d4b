"""Facts about each line of a launch: its counters, gathered by file and number, and the places of the fault."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from climb.emulator import AccessCounters, BranchCounters, Counters, EmulatorError, ProductCounters
from climb.emulator.counters.lines import ExecutionCounters
from climb.emulator.errors import Where


@dataclass
class Line:
    """The facts about one line of a file. `fault`: "fault" or "other", its two places."""

    executed: ExecutionCounters | None = None
    accesses: list[AccessCounters] = field(default_factory=list)
    branches: list[BranchCounters] = field(default_factory=list)
    products: list[ProductCounters] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    fault: str = ""

    def __bool__(self) -> bool:
        return bool(self.executed or self.accesses or self.fault)


def by_line(counters: Counters | None, fault: Exception | None) -> dict[tuple[str, int], Line]:
    """Gather the facts about each line, by file and number."""
    out: dict[tuple[str, int], Line] = defaultdict(Line)
    if counters is not None:
        for one in counters.execution_lines:
            out[one.file, one.line].executed = one
        for name, found in (
            ("accesses", counters.lines),
            ("branches", counters.branch_lines),
            ("products", counters.product_lines),
        ):
            for each in found:
                getattr(out[each.file, each.line], name).append(each)
        for mark in counters.marks:
            if mark.changes:
                out[mark.file, mark.line].marks.append(f"this {mark.kind} differently: {mark.reason}")
    for kind, where in (("other", other_place(fault)), ("fault", getattr(fault, "where", None))):
        if where is not None and where.line:
            out[where.file, where.line].fault = kind
    return {place: line for place, line in out.items() if place[1] and line}


def other_place(fault: Exception | None) -> Where | None:
    """Return the second place of a fault, such as the other access of a race."""
    found = fault.details.get("other") if isinstance(fault, EmulatorError) else None
    return found if isinstance(found, Where) else None
