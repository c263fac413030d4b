"""The layout of the CUDA sources: lines that fit a page of the book beside its margins."""

from __future__ import annotations

import ast
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_COLUMNS = 88
#: The folders that hold all CUDA of the repository.
FOLDERS = ("kernels", "climb", "tests")


def test_no_line_of_cuda_exceeds_88_columns() -> None:
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.cu*") if path.suffix in (".cu", ".cuh")]
    assert {path.relative_to(ROOT).parts[0] for path in sources} == set(FOLDERS)
    offenders = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"
        for path in sorted(sources)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > MOST_COLUMNS
    ]
    assert not offenders, "\n".join(offenders)


def cuda_strings(cell: str) -> list[str]:
    """The strings of a cell that hold CUDA."""
    found = (node.value for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Constant))
    return [one for one in found if isinstance(one, str) and ("__global__" in one or "__device__" in one)]


def test_no_line_of_cuda_in_a_chapter_exceeds_88_columns() -> None:
    offenders, checked = [], 0
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                strings = cuda_strings("".join(cell["source"]))
                checked += len(strings)
                lines = [line for one in strings for line in one.splitlines() if len(line) > MOST_COLUMNS]
                offenders += [f"{path.name}, cell {cell['id']}: {line}" for line in lines]
    assert checked > 50
    assert not offenders, "\n".join(offenders)
