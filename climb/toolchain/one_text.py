"""The CUDA file behind a text that has all of the file's includes in it.

CuPy is given such a text, because its cache of compiled kernels does not see included files. The stand-in for CuPy
finds the file here and compiles that: its messages name the lines that a reader's editor shows, and a launch runs the
PTX that the bench counts, from one run of the compiler.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from climb.toolchain.includes import read_source


class SourceFile(NamedTuple):
    """A file as the compiler gets it: its text, its name in messages, the folder that it includes files from."""

    text: str
    name: str
    folder: str


_files: dict[str, SourceFile] = {}


def name_of(path: Path) -> str:
    """Return the name of a kernel's file in messages and line tables: folder and file, ``matmul/03_tiled.cu``."""
    return f"{path.parent.name}/{path.name}"


def remember(text: str, path: Path) -> None:
    """Note that ``text`` is the file ``path`` with its includes put in place."""
    _files[text] = SourceFile(read_source(path), name_of(path), str(path.parent))


def file_of(text: str) -> SourceFile | None:
    """Return the file that ``text`` was made from, if that was noted."""
    return _files.get(text)
