"""Summarise the agreement for the chapter: the number of equal counts, and tables of those that differ.

The summary is read from ``compared.json`` beside the counts, because comparing takes minutes and needs the compiler of
the measurement. ``climb agreement --compare`` writes it, and a test compares again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from climb.bench import records
from climb.bench.registry import ladder_names
from climb.display.cell_output import CellOutput, table, together
from climb.validation.agreement import (
    QUANTITIES,
    Count,
    StaleCounts,
    all_rungs,
    compare_patterns,
    compare_rung,
    record,
    record_path,
)
from climb.validation.agreement.cases import cases
from climb.validation.agreement.code import NONDETERMINISTIC


@dataclass(frozen=True)
class Summary:
    """The comparison in numbers.

    ``sums`` maps "rungs" and "patterns", then "kind, quantity", to the number of nonzero counts compared and the number
    that are equal; ``different`` holds the others, ``launches`` the number of launches compared. ``missing`` names the
    rungs that were never counted, ``kept`` the nondeterministic rungs whose counted code is kept.
    """

    sums: dict[str, dict[str, list[int]]]
    launches: dict[str, int]
    different: list[dict[str, Any]]
    missing: list[str]
    kept: list[str]
    cases: int

    def compared(self, which: str) -> int:
        """Return the number of counts compared, of the "rungs" or of the "patterns"."""
        return sum(compared for compared, _ in self.sums[which].values())

    def equal(self, which: str) -> int:
        """Return the number of those counts that are equal."""
        return sum(equal for _, equal in self.sums[which].values())


def summarise() -> Summary:
    """Compare all counts of today's kernels."""
    measured = {(point["ladder"], point["rung"]) for point in record().rungs}
    waiting = {(name, rung) for name in ladder_names() for rung in records.pending(name)}
    missing, kept, of_rungs = [], [], []
    for rung in all_rungs():
        name = (rung.ladder.name, rung.name)
        try:
            found = compare_rung(rung) if name in measured else None
        except StaleCounts:
            found = None
        if found is not None:
            of_rungs += found
            kept += [" ".join(name)] if name in NONDETERMINISTIC else []
        elif name not in waiting:
            missing.append(" ".join(name))
    counts = {"rungs": of_rungs, "patterns": compare_patterns()}
    sums = {which: _sums(found) for which, found in counts.items()}
    launches = {which: len({count.what for count in found}) for which, found in counts.items()}
    different = [asdict(count) for found in counts.values() for count in found if not count.equal]
    return Summary(sums, launches, json.loads(json.dumps(different)), sorted(missing), kept, len(cases()))


def _sums(counts: Iterable[Count]) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for count in counts:
        if count.emulator or any(count.hardware):
            both = out.setdefault(f"{count.kind}, {count.quantity.replace('_', ' ')}", [0, 0])
            both[0] += 1
            both[1] += count.equal
    return dict(sorted(out.items()))


def compared_path(gpu: str = records.DEFAULT_GPU) -> Path:
    """Return the file with the summary of a GPU."""
    return record_path(gpu).with_name("compared.json")


def read_summary(gpu: str = records.DEFAULT_GPU) -> Summary:
    """Read the committed summary."""
    return records.load(compared_path(records.gpu_with("emulator/compared.json", gpu)), Summary)


def write_summary() -> Path:
    """Compare all counts and write the summary. Returns the file."""
    path = compared_path()
    records.save(path, asdict(summarise()), Summary)
    return path


@dataclass(frozen=True)
class Excess:
    """The wavefronts that the pipe of shared memory counts beyond those that the instructions ask of it.

    ``launches`` of ``of`` launches have an excess, ``most`` is the largest as a share, and in ``unlike`` launches the
    two runs differ.
    """

    launches: int
    of: int
    most: float
    unlike: int


def pipe_excess() -> Excess:
    """Compare the pipe's counts with the instructions', over the loads, stores and atomics of each launch of a rung."""
    ways = [QUANTITIES[f"shared {kind}", "wavefronts"] for kind in ("load", "store", "atomic")]
    launches = of = unlike = 0
    most = 0.0
    for point in record().rungs:
        asked = [sum(way[0].of(run) for way in ways) for run in point["counts"]]
        pipe = [sum(way[1].of(run) for way in ways) for run in point["counts"]]
        if not any(asked):
            continue
        of += 1
        more = [one / other - 1 for one, other in zip(pipe, asked, strict=True)]
        launches += any(more)
        unlike += len(set(pipe)) > 1
        most = max(most, *more)
    return Excess(launches, of, most, unlike)


def agreement_table(summary: Summary | None = None) -> CellOutput:
    """Show the number of counts compared and of counts that are equal, of patterns and of rungs, by kind of access."""
    sums = (summary or read_summary()).sums
    rows = [
        [name, *sums["patterns"].get(name, (None, None)), *sums["rungs"].get(name, (None, None))]
        for name in dict.fromkeys([*sums["patterns"], *sums["rungs"]])
    ]
    return table(rows, ["what is counted", "of patterns", "equal", "of rungs", "equal"])


def reasons_table(summary: Summary | None = None) -> CellOutput:
    """Show the reasons of differences, with the number of kernels and of counts that each explains."""
    rows = [[why, len({one["what"] for one in counts}), len(counts)] for why, counts in _by_reason(summary).items()]
    return table(rows, ["why they differ", "kernels and patterns", "counts that differ"])


def differences_table(summary: Summary | None = None) -> CellOutput:
    """Show every count that differs, the emulator's beside the hardware's in each run: one table for each reason."""
    columns = ["kernel", "count", "emulator", "hardware"]
    return together(
        [
            table([_difference(one) for one in counts], columns, caption=f"{why[0].upper()}{why[1:]}")
            for why, counts in _by_reason(summary).items()
        ]
    )


def _by_reason(summary: Summary | None) -> dict[str, list[dict[str, Any]]]:
    """Group the differences by reason, the most common reason first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in (summary or read_summary()).different:
        found.setdefault(one["why"], []).append(one)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def _difference(one: dict[str, Any]) -> list[str | int]:
    hardware = " / ".join(str(count) for count in dict.fromkeys(one["hardware"]))
    return [one["what"], f"{one['kind']}, {one['quantity'].replace('_', ' ')}", one["emulator"], hardware]
