"""Build the book as `make book` does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def build(root: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """Build the book in ``root`` into a fresh folder: a second build would not read unchanged pages again."""
    command = "from jupyter_book.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", command, "build", "-W", "-n", "--keep-going", "--all", "--path-output", str(into), "."],
        cwd=root, capture_output=True, text=True, timeout=300, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip


def warnings(output: str) -> str:
    """The warnings and errors in what a build printed, or else its last lines."""
    lines = output.splitlines()
    return "\n".join(line for line in lines if "WARNING" in line or "ERROR" in line) or "\n".join(lines[-20:])
