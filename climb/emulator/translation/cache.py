"""Translations kept on disk from one process to the next, beside the compiled PTX (`toolchain.cache`).

The files are pickled and hold marshalled code, like Python's own `__pycache__`, so they can be trusted as much as that
folder. A file belongs to one PTX text, its source lines, and one version of Python and NumPy. It starts with a digest
of the emulator's own source and one of its contents: a file that another emulator wrote is replaced, and a damaged one
is not unpickled.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import pickle
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from climb.toolchain import cache

T = TypeVar("T")

_DIGEST = hashlib.sha256().digest_size


def name_of(*parts: object) -> str:
    """Return a name for the result of `parts`, which are told apart by their `repr`."""
    return cache.digest(["translation", sys.version, np.__version__, *parts])


def keep(name: str, make: Callable[[], T]) -> T:
    """Return the value kept under `name`; if there is none, call `make` and keep its result. Errors of `make` are not
    kept."""
    digest = version()
    with _without_collection():
        data = cache.read(name)
        if data is not None and data[:_DIGEST] == digest:
            packed = data[2 * _DIGEST :]
            if hashlib.sha256(packed).digest() == data[_DIGEST : 2 * _DIGEST]:
                return pickle.loads(zlib.decompress(packed))
        made = make()
        packed = zlib.compress(pickle.dumps(made, pickle.HIGHEST_PROTOCOL), 1)
    if digest:
        cache.write(name, digest + hashlib.sha256(packed).digest() + packed)
    return made


@functools.cache
def version() -> bytes:
    """Return a digest of the emulator's source; empty if its files cannot be read, as in a zipped package."""
    folder = Path(__file__).resolve().parents[1]
    found = hashlib.sha256()
    files = sorted(folder.rglob("*.py"))
    for path in files:
        text = path.read_bytes()
        found.update(f"{path.relative_to(folder).as_posix()} {len(text)}\0".encode())
        found.update(text)
    return found.digest() if files else b""


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Suspend the search for cyclic garbage: it would visit each of the many objects of a translation several times."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
