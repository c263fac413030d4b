"""The names of files in PTX and messages: the same on every machine, because they contain none of its paths."""

from __future__ import annotations

import os
import re
from pathlib import PurePosixPath

from climb.toolchain.diagnostics import shorten
from climb.toolchain.includes import cuda_include_dirs
from climb.toolchain.nvrtc import nvrtc_version

# NVRTC puts the working directory before a relative file name, and it would end up in the PTX.
ROOT = "/"


def stable_name(filename: str) -> str:
    """Return `filename` as a relative POSIX path; only the last part of a path that is absolute or has ".." in it."""
    path = PurePosixPath(str(filename).replace(os.sep, "/"))
    if path.is_absolute() or ".." in path.parts or not path.name:
        return path.name or "kernel.cu"
    return str(path)


def shown_prefixes(include_dirs: tuple[str, ...]) -> dict[str, str]:
    """Return prefixes of file names inside NVRTC, each with the prefix that replaces it in messages."""
    prefixes = {f"{folder}/": "" for folder in include_dirs}
    prefixes |= {f"{folder}/": "cuda/" for folder in cuda_include_dirs(nvrtc_version()[0])}
    return {ROOT: ""} | prefixes


def without_machine_paths(ptx: str, include_dirs: tuple[str, ...]) -> str:
    """Return `ptx` with the names in its `.file` directives made relative."""
    prefixes = shown_prefixes(include_dirs)
    return re.sub(
        r'^(\s*\.file\s+\d+\s+)"([^"]*)"',
        lambda m: f'{m[1]}"{shorten(m[2], prefixes)}"',
        ptx,
        flags=re.MULTILINE,
    )
