"""Planned changes of files: checked as a whole, then written, so that a refused change leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from climb import paths
from climb.cli.errors import UsageError


def shown(path: Path) -> str:
    """Return a file's name for messages, relative to the repository."""
    return path.relative_to(paths.ROOT).as_posix()


@dataclass
class Changes:
    """Files to make, and files to change, by path; the values are their complete texts."""

    made: dict[Path, str] = field(default_factory=dict)
    changed: dict[Path, str] = field(default_factory=dict)

    def make(self, path: Path, text: str) -> None:
        """Plan a new file. Raises UsageError if it exists already."""
        if path.exists() or path in self.made:
            raise UsageError(f"{shown(path)} exists already")
        self.made[path] = text

    def change(self, path: Path, text: str) -> None:
        """Plan another text for a file that exists."""
        self.changed[path] = text

    def text(self, path: Path) -> str:
        """Return the text that a file is going to have."""
        planned = self.made.get(path, self.changed.get(path))
        return path.read_text(encoding="utf-8") if planned is None else planned

    def write(self) -> None:
        """Write everything, put Python into the repository's format, and print one line per file."""
        for path, text in {**self.made, **self.changed}.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        tidy([path for path in {**self.made, **self.changed} if path.suffix == ".py"])
        for path in self.made:
            print(f"made     {shown(path)}")
        for path in self.changed:
            print(f"changed  {shown(path)}")


def tidy(files: list[Path]) -> None:
    """Format Python files and sort their imports with ruff, if it is installed."""
    if not files:
        return
    for command in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        given = [sys.executable, "-m", "ruff", *command, "--no-cache", *map(str, files)]
        subprocess.run(given, cwd=paths.ROOT, capture_output=True, check=False)
