"""Nsight Compute's command line: its options, and its raw page as counts."""

from __future__ import annotations

import csv
import re
import subprocess
from collections.abc import Sequence

#: The command up to the profiled program: the raw page as CSV in base units, and the GPU's clocks left unchanged.
COMMAND = ("ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none")


def parse(page: str, metrics: Sequence[str]) -> list[dict[str, float]]:
    """Return the metrics of each launch, by name, from a raw page. Raises KeyError for a metric that the page lacks."""
    lines = [line for line in page.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))[1:]  # the row under the head holds units
    return [{metric: _number(row[metric]) for metric in metrics} for row in rows]


def _number(text: str) -> float:
    value = float(text.replace(",", ""))
    return int(value) if value.is_integer() else value


def version() -> str:
    """Return the tool's name and version."""
    said = subprocess.run(["ncu", "--version"], capture_output=True, text=True, check=True).stdout
    return "Nsight Compute " + re.findall(r"Version (\S+)", said)[0]
