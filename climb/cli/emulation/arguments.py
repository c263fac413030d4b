"""The arguments of ``climb emulate``: extents, numbers, arrays, and the files of arrays.

Everything is read and checked before the kernel runs, output files included, so that a long run is not lost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from climb.cli.emulation.dtypes import numeric
from climb.cli.errors import UsageError

if TYPE_CHECKING:
    from climb.emulator import Struct, Tensor, Texture

    Value = np.ndarray | int | float | Struct | Texture | Tensor

FILLS = ("zeros", "ones", "range", "random")
EXPECTED = "expected a number, or NAME:TYPE:SHAPE[:FILL], or NAME:@FILE"


def extent(text: str) -> tuple[int, ...]:
    """Parse up to three positive numbers, such as 256 or 32x8. Raises UsageError."""
    parts = text.lower().split("x")
    if len(parts) > 3 or not all(part.isdigit() and int(part) for part in parts):
        raise UsageError(f"'{text}' is not an extent; expected one to three positive numbers, such as 256 or 32x8")
    return tuple(int(part) for part in parts)


def argument(text: str, rng: np.random.Generator, option: str = "--arg") -> tuple[str, Value]:
    """Parse the name and value of an argument; a number is its own name. Raises UsageError."""
    where = f"{option} {text}"
    if ":" not in text:
        return text, _number(text, where)
    name, kind, *rest = text.split(":", 2)
    if kind.startswith("@") and kind.endswith(".json") and not rest:
        from climb.cli.emulation.descriptions import described

        return name, described(kind[1:], name, where, lambda member, array: _array(f"{member}:{array}", rng, where))
    if kind.startswith("@"):
        return name, _loaded(":".join([kind[1:], *rest]), name, where)
    if not rest:
        raise UsageError(f"{where}: {EXPECTED}")
    size, _, how = rest[0].partition(":")
    dtype = numeric(kind, where)
    if not re.fullmatch(r"\d+(x\d+)*", size.lower()):
        raise UsageError(f"{where}: '{size}' is not a shape; expected one such as 1024 or 64x128")
    try:
        return name, _filled(how or "zeros", tuple(map(int, size.lower().split("x"))), dtype, rng, where, name)
    except (MemoryError, OverflowError, ValueError) as error:  # NumPy raises one of these for a shape that is too large
        raise UsageError(f"{where}: no memory for an array of {size} {dtype}: {error}") from None


def _array(text: str, rng: np.random.Generator, where: str) -> np.ndarray:
    """Make the array of a description. Raises UsageError."""
    _, found = argument(text, rng, where)
    if not isinstance(found, np.ndarray):
        raise UsageError(f"{where}: '{text.partition(':')[2]}' is not an array")
    return found


def arrays_of(named: Iterable[tuple[str, Value]]) -> list[tuple[str, np.ndarray]]:
    """Return the arrays among arguments by name, with those that structs point to and those of tensor maps."""
    from climb.emulator import Struct, Tensor

    found: list[tuple[str, np.ndarray]] = []
    for name, value in named:
        if isinstance(value, Struct):
            found += value.arrays(name)
        elif isinstance(value, np.ndarray | Tensor):
            found.append((name, value.array if isinstance(value, Tensor) else value))
    return found


def _number(text: str, where: str) -> int | float:
    for convert in (lambda t: int(t, 0), float):
        try:
            return convert(text)
        except ValueError:
            continue
    raise UsageError(f"{where}: {EXPECTED}")


def _filled(
    how: str, shape: tuple[int, ...], dtype: np.dtype, rng: np.random.Generator, where: str, name: str
) -> np.ndarray:
    if how == "zeros":
        return np.zeros(shape, dtype)
    if how == "ones":
        return np.ones(shape, dtype)
    if how == "range":
        return np.arange(np.prod(shape, dtype=np.int64)).astype(dtype).reshape(shape)
    if how == "random":
        high = 2 if dtype.kind == "b" else 100
        values = rng.standard_normal(shape) if dtype.kind == "f" else rng.integers(0, high, shape)
        return values.astype(dtype)
    if not how.removeprefix("@").endswith((".npy", ".npz")):
        raise UsageError(f"{where}: '{how}' is neither {', '.join(FILLS)} nor a .npy file")
    found = _loaded(how.removeprefix("@"), name, where)
    if found.shape != shape or found.dtype != dtype:
        held = f"{found.dtype} {'x'.join(map(str, found.shape))}"
        raise UsageError(f"{where}: {how} holds {held}, not {dtype} {'x'.join(map(str, shape))}")
    return found


def _loaded(file: str, name: str, where: str) -> np.ndarray:
    """Load the array of a .npy file; from a .npz file the one called `name`, or the one that [brackets] name."""
    inner = re.fullmatch(r"(.+\.npz)\[(.+)\]", file)
    path, key = inner.groups() if inner else (file, name)
    if not Path(path).is_file():
        raise UsageError(f"{where}: no file {path}")
    try:
        held = np.load(path, allow_pickle=False)
        if isinstance(held, np.lib.npyio.NpzFile):
            with held:
                if key not in held.files:
                    raise UsageError(f"{where}: {path} has no array '{key}'; it has {', '.join(held.files)}")
                array = held[key]
        else:
            array = held
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{where}: cannot read {path}: {error}") from None
    if array.dtype.kind not in "biufcV":
        raise UsageError(f"{where}: {path} holds {array.dtype}, not numbers")
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def outputs(saves: Iterable[str], outs: Iterable[str], arrays: Iterable[str]) -> list[tuple[str, Path]]:
    """Map arrays to output files, from NAME=FILE (--save) and NAME:FILE (--out). Raises UsageError."""
    known = list(arrays)
    found = []
    for option, sign, texts in (("--save", "=", saves), ("--out", ":", outs)):
        for text in texts:
            name, given, path = text.partition(sign)
            if not given or not path or name not in known:
                raise UsageError(
                    f"{option} {text}: expected NAME{sign}FILE with the name of an array: {', '.join(known)}"
                )
            if not path.endswith((".npy", ".npz")):
                raise UsageError(f"{option} {text}: expected a .npy or .npz file")
            found.append((name, writable(Path(path), f"{option} {text}")))
    twice = {path for n, (_, path) in enumerate(found) if path.suffix == ".npy" and path in [p for _, p in found[:n]]}
    if twice:
        raise UsageError(f"two arrays would go to {min(twice)}; a .npz file holds several")
    return found


def writable(path: Path, where: str) -> Path:
    """Return the path, if a file can be written there. Raises UsageError."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"{where}: {path} is a folder")
    if not folder.is_dir():
        raise UsageError(f"{where}: no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"{where}: no permission to write {path}")
    return path


def save(places: Iterable[tuple[str, Path]], arrays: Mapping[str, np.ndarray]) -> None:
    """Write each array to its file; all arrays of a .npz file together."""
    together: dict[Path, dict[str, np.ndarray]] = {}
    for name, path in places:
        if path.suffix == ".npy":
            np.save(path, arrays[name])
        else:
            together.setdefault(path, {})[name] = arrays[name]
    for path, members in together.items():
        np.savez(path, **members)


def glance(array: np.ndarray, count: int) -> str:
    """Return the first `count` elements."""
    flat = array.reshape(-1)
    values = " ".join(f"{value:g}" if array.dtype.kind == "f" else str(value) for value in flat[:count])
    return values + (f" ... ({flat.size - count} more)" if flat.size > count else "")
