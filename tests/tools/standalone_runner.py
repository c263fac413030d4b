"""Run the standalone cells of chapters outside the book, each chapter as one script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from climb.bench import cuda, events
from climb.bench.standalone import Cell

CHILD = Path(__file__).with_name("standalone_child.py")


def run_outside(chapters: Mapping[str, Sequence[Cell]], folder: Path) -> dict[str, tuple[str, str]]:
    """Return what each chapter's script prints in `folder`, and its error or "", with the recorded times put in."""
    recorded = {(chapter, cell.chain): cell.median_ms for chapter, _, cell in events.recorded()}
    nan = float("nan")
    times = {
        name: [
            time
            for cell in cells
            for time in recorded.get((name, cell.chain), (nan,) * cell.source.count("get_elapsed_time("))
        ]
        for name, cells in chapters.items()
    }
    given = {"scripts": {name: script(cells) for name, cells in chapters.items()}, "times": times}
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", str(CHILD)],
        input=json.dumps({**given, "cupy": cuda.backend == "cupy"}),
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: (text, error) for name, (text, error) in json.loads(done.stdout).items()}


def script(cells: Sequence[Cell]) -> str:
    """The standalone cells of a chapter as a reader pastes them."""
    return "import cupy as cp\n" + "\n".join(cell.source for cell in cells)
