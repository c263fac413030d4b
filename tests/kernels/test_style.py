"""The layout of the CUDA sources: lines that fit a page of the book beside its margins."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_COLUMNS = 88


def test_no_line_of_cuda_under_kernels_exceeds_88_columns() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"
        for pattern in ("*.cu", "*.cuh")
        for path in sorted((ROOT / "kernels").rglob(pattern))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > MOST_COLUMNS
    ]
    assert not offenders, "\n".join(offenders)
