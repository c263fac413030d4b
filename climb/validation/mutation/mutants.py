"""A mutant: a text with one mistake in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """One replacement in a file of the repository.

    ``file`` is the path from the repository's root, ``start`` and ``end`` delimit the replaced characters of ``text``,
    the whole original text. ``operator`` names the kind of mistake.
    """

    file: str
    operator: str
    start: int
    end: int
    new: str
    text: str

    @property
    def mutated(self) -> str:
        """The whole text with the mistake."""
        return self.text[: self.start] + self.new + self.text[self.end :]

    @property
    def line(self) -> int:
        """The line, from 1, on which the replaced characters begin."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def original_line(self) -> str:
        """The lines of the replaced characters without indentation, as they were."""
        return self._lines(self.text, self.end)

    @property
    def mutated_line(self) -> str:
        """The same lines with the mistake."""
        return self._lines(self.mutated, self.start + len(self.new))

    def _lines(self, text: str, end: int) -> str:
        first = text.rfind("\n", 0, self.start) + 1
        last = text.find("\n", end)
        return text[first : len(text) if last < 0 else last].strip()

    @property
    def place(self) -> int:
        """The number of this place among those where the same line occurs in the text, from 1."""
        above = self.text[: self.start].splitlines()[: self.line - 1]
        return 1 + sum(line.strip() == self.original_line.splitlines()[0] for line in above)

    @property
    def key(self) -> str:
        """The mutant's name in results: it changes with the file's text."""
        parts = (self.file, self.text, str(self.start), str(self.end), self.new)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.operator}: {self.original_line}  ->  {self.mutated_line}"


def digest_of_files(root: Path, files: Iterable[str]) -> str:
    """Return the digest of files with their names; a missing file counts as empty."""
    made = hashlib.sha256()
    for file in sorted(files):
        path = root / file
        made.update(f"{file}\0".encode() + (path.read_bytes() if path.is_file() else b"") + b"\0")
    return made.hexdigest()[:16]
