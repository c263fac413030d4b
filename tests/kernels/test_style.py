"""The layout of the CUDA sources: lines that fit a page of the book beside its margins."""

from __future__ import annotations

from pathlib import Path

from tools.notebooks import CUDA_COLUMNS

ROOT = Path(__file__).resolve().parents[2]
#: The folders that hold all CUDA of the repository.
FOLDERS = ("kernels", "climb", "tests")


def test_no_line_of_cuda_exceeds_88_columns() -> None:
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.cu*") if path.suffix in (".cu", ".cuh")]
    assert {path.relative_to(ROOT).parts[0] for path in sources} == set(FOLDERS)
    offenders = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"
        for path in sorted(sources)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > CUDA_COLUMNS
    ]
    assert not offenders, "\n".join(offenders)
