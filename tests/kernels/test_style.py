"""The layout of the CUDA sources: lines that fit a page of the book beside its margins."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_COLUMNS = 88


def test_no_line_of_cuda_that_is_shown_or_measured_exceeds_88_columns() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"
        for folder in ("kernels", "climb/bench")
        for path in sorted((ROOT / folder).rglob("*.cu*"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > MOST_COLUMNS
    ]
    assert not offenders, "\n".join(offenders)
