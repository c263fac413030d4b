"""PTX types as NumPy dtypes."""

from __future__ import annotations

import numpy as np

DTYPES = {
    "u8": "uint8", "s8": "int8", "b8": "uint8",
    "u16": "uint16", "s16": "int16", "b16": "uint16", "i16": "uint16",
    "u32": "uint32", "s32": "int32", "b32": "uint32", "i32": "uint32",
    "u64": "uint64", "s64": "int64", "b64": "uint64", "i64": "uint64",
    "f16": "float16", "f32": "float32", "f64": "float64", "pred": "bool",
}  # fmt: skip

SIGNED = ("s16", "s32", "s64")
UNSIGNED = ("u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
WITH_BYTES = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")  # the integers that cvt knows
FLOATS = ("f32", "f64")
WIDTHS = ("16", "32", "64")


_DTYPES = {kind: np.dtype(name) for kind, name in DTYPES.items()}
_SIZES = {kind: one.itemsize for kind, one in _DTYPES.items()}


def size(kind: str) -> int:
    """Return the bytes of a PTX type; a predicate takes one byte in the emulator."""
    return _SIZES[kind]


def dtype(kind: str) -> np.dtype:
    """Return the NumPy dtype that holds a PTX type."""
    return _DTYPES[kind]


def open_kind(kind: str) -> bool:
    """Return whether the type leaves the dtype to the destination (`i32`: any integer, `b32`: any 32 bits)."""
    return kind[0] in "ib"
