"""Results of NVIDIA's tools, kept on disk from one process to the next.

Tests and chapters run in many processes that compile and disassemble the same kernels. In a checkout the results are in
`_build/compiled`, which `make clean` empties; an installed package has no checkout around it and keeps them in the
user's cache directory. Each file holds one run's log, images and lowered names, under a digest of everything that went
in; the emulator keeps its translations in the same folder. Files that cannot be read are made again; results that
cannot be written are not kept.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

#: Log, images by name, and lowered names by name expression.
Made = tuple[str, dict[str, bytes], dict[str, str]]


def folder_below(root: Path, environ: Mapping[str, str] = os.environ, system: str = os.name) -> Path | None:
    """Return the folder for results if the package `climb` is in `root`: inside a checkout, else the user's cache
    directory.

    The cache directory is that of XDG_CACHE_HOME, on Windows (`system` "nt") of LOCALAPPDATA, else ~/.cache. None if
    the user has no home directory.
    """
    if (root / "pyproject.toml").is_file():
        return root / "_build" / "compiled"
    named = environ.get("LOCALAPPDATA" if system == "nt" else "XDG_CACHE_HOME", "")
    if named and Path(named).is_absolute():  # XDG says to ignore a relative path
        return Path(named, "climb", "compiled")
    try:
        return Path.home() / ".cache" / "climb" / "compiled"
    except RuntimeError:
        return None


FOLDER = folder_below(Path(__file__).resolve().parents[2])


def digest(parts: Iterable[object]) -> str:
    """Return a name for the result of `parts`, which are told apart by their `repr`."""
    return hashlib.sha256("\0".join(map(repr, parts)).encode()).hexdigest()


def read(name: str) -> bytes | None:
    """Read the bytes kept under `name`; None if there are none."""
    if FOLDER is not None:
        with contextlib.suppress(OSError):
            return (FOLDER / name[:2] / name).read_bytes()
    return None


def write(name: str, data: bytes) -> None:
    """Keep bytes under `name`, in place of those kept before. Other processes see all of them or none."""
    if FOLDER is None:
        return
    path = FOLDER / name[:2] / name
    partial = path.with_name(f"{name}.{os.getpid()}.partial")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_bytes(data)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def keep(name: str, make: Callable[[], Made]) -> Made:
    """Return the result kept under `name`; if there is none, call `make` and keep its result. Errors of `make` are not
    kept."""
    data = read(name)
    with contextlib.suppress(ValueError, KeyError, zlib.error):
        if data is not None:
            held = json.loads(zlib.decompress(data))
            images = {key: base64.b64decode(image, validate=True) for key, image in held["images"].items()}
            return held["log"], images, held["names"]
    log, images, names = make()
    packed = {key: base64.b64encode(image).decode() for key, image in images.items()}
    text = json.dumps({"log": log, "images": packed, "names": names})
    write(name, zlib.compress(text.encode(), 1))
    return log, images, names
