"""What NVIDIA's tools have made, kept from one process to the next: ``_build/compiled``, which ``make clean`` empties.

Tests and chapters run in many processes and compile and disassemble the same kernels. A file holds the images of one
run, or none, with its log and lowered names; its name is a digest of everything that went in. What cannot be read or
written is made again.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "_build" / "compiled"

#: Log, images by name, and lowered names by name expression.
Made = tuple[str, dict[str, bytes], dict[str, str]]


def digest(parts: Iterable[object]) -> str:
    """A name for what `parts` are compiled to; they are told apart by what `repr` says of them."""
    return hashlib.sha256("\0".join(map(repr, parts)).encode()).hexdigest()


def keep(name: str, make: Callable[[], Made]) -> Made:
    """What was kept under this name, or what `make` makes now. What `make` raises is not kept."""
    path = FOLDER / name[:2] / name
    with contextlib.suppress(OSError, ValueError, KeyError, zlib.error):
        held = json.loads(zlib.decompress(path.read_bytes()))
        images = {key: base64.b64decode(image, validate=True) for key, image in held["images"].items()}
        return held["log"], images, held["names"]
    log, images, names = make()
    packed = {key: base64.b64encode(image).decode() for key, image in images.items()}
    text = json.dumps({"log": log, "images": packed, "names": names})
    partial = path.with_name(f"{name}.{os.getpid()}.partial")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_bytes(zlib.compress(text.encode(), 1))
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    return log, images, names
