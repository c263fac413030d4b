"""Summarise the planted faults for the chapter: the faults that the emulator and compute-sanitizer find."""

from __future__ import annotations

from collections import Counter
from typing import Any

from climb.display.cell_output import CellOutput, table
from climb.validation.faults import TOOLS, record
from climb.validation.schema import CleanRecord


def asked(one: dict[str, Any]) -> bool:
    """Return whether every tool has run a fault."""
    return all(one["tools"].get(tool) for tool in TOOLS)


def found_by(one: dict[str, Any]) -> list[str]:
    """Return the tools of compute-sanitizer that report a fault; a refused launch counts as the driver's finding."""
    return [tool for tool in TOOLS if one["tools"].get(tool, {}).get("errors")]


def refused(one: dict[str, Any]) -> bool:
    """Return whether the driver refuses the launch."""
    return not found_by(one) and any(one["tools"].get(tool, {}).get("driver") for tool in TOOLS)


def kind_of(one: dict[str, Any]) -> str:
    """Return the class of the emulator's error."""
    return one["emulator"].split(":")[0]


def by_kind(faults: list[dict[str, Any]] | None = None) -> CellOutput:
    """Count the faults and those that compute-sanitizer finds, with its tools, by the emulator's error."""
    faults = [one for one in (faults if faults is not None else record()["faults"]) if asked(one)]
    rows = []
    for kind in dict.fromkeys(kind_of(one) for one in faults):
        mine = [one for one in faults if kind_of(one) == kind]
        tools = Counter(tool for one in mine for tool in found_by(one))
        listed = ", ".join(f"{tool} {number}" for tool, number in tools.items())
        driver = sum(refused(one) for one in mine)
        rows.append([kind, len(mine), sum(bool(found_by(one)) for one in mine), driver, listed])
    return table(rows, ["the emulator's error", "faults", "found by the sanitizer", "by the driver", "tools"])


def missed(faults: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """Return the faults that neither compute-sanitizer nor the driver reports."""
    faults = faults if faults is not None else record()["faults"]
    return [one for one in faults if asked(one) and not found_by(one) and not refused(one)]


def missed_table(faults: list[dict[str, Any]] | None = None) -> CellOutput:
    """Show the faults that compute-sanitizer misses, with the emulator's error."""
    return table([[one["name"], kind_of(one)] for one in missed(faults)], ["fault", "the emulator's error"])


def reported(rungs: CleanRecord) -> set[str]:
    """Return the ladders for which a tool of compute-sanitizer reports something."""
    return {row["ladder"] for row in rungs["ladders"] if any(said["errors"] for said in row["tools"].values())}


def silent(rungs: CleanRecord) -> set[str]:
    """Return the ladders for which no tool of compute-sanitizer reports anything."""
    return {row["ladder"] for row in rungs["ladders"]} - reported(rungs)
