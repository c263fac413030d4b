"""The arguments of a launch, checked against the kernel's parameters and packed into bytes."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from climb.fake_cupy.arrays import ndarray
from climb.fake_cupy.memory import MemoryPointer
from climb.fake_cupy.parameters import Parameter
from climb.fake_cupy.texture import SurfaceObject, TextureObject

# Element types that a source may name, with NumPy's codes for them.
_ELEMENTS = {
    "float": "f4", "double": "f8", "bool": "b1", "char": "i1", "signed char": "i1", "unsigned char": "u1",
    "short": "i2", "unsigned short": "u2", "int": "i4", "unsigned": "u4", "unsigned int": "u4",
    "long long": "i8", "long long int": "i8", "unsigned long long": "u8", "long": "i8", "unsigned long": "u8",
    "size_t": "u8", "uint": "u4", "uchar": "u1", "ushort": "u2", "half": "f2", "__half": "f2",
    "int8_t": "i1", "int16_t": "i2", "int32_t": "i4", "int64_t": "i8",
    "uint8_t": "u1", "uint16_t": "u2", "uint32_t": "u4", "uint64_t": "u8",
}  # fmt: skip
# The elements of vector types such as float4.
_VECTORS = {"float": "f4", "double": "f8", "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2",
            "int": "i4", "uint": "u4", "longlong": "i8", "ulonglong": "u8"}  # fmt: skip


def _element(declared: str) -> np.dtype | None:
    """Return the element type of a declared type, pointer or not; None if the type is not one of CUDA's own."""
    kind = declared.rstrip("* ").removeprefix("std::")
    if kind in _ELEMENTS:
        return np.dtype(_ELEMENTS[kind])
    vector = re.fullmatch(r"([a-z]+)[1-4]", kind)
    return np.dtype(_VECTORS[vector[1]]) if vector and vector[1] in _VECTORS else None


def pack(parameters: Sequence[Parameter], args: Sequence[Any]) -> list[bytes]:
    """Pack each argument into the bytes of its parameter.

    Raises TypeError, naming the argument, if CuPy would refuse it (a NumPy array), or would pass it with a size or
    meaning that the kernel does not expect.
    """
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"the arguments must be a tuple, not {type(args).__name__}; write a single argument as (a,)")
    if len(args) != len(parameters):
        raise TypeError(f"the kernel takes {_count(len(parameters))}, got {len(args)}{_names(parameters)}")
    return [_pack_one(parameter, arg) for parameter, arg in zip(parameters, args, strict=True)]


def _count(n: int) -> str:
    return f"{n} argument{'' if n == 1 else 's'}"


def _count_bytes(n: int) -> str:
    return f"{n} byte{'' if n == 1 else 's'}"


def _names(parameters: Sequence[Parameter]) -> str:
    if not any(p.name for p in parameters):
        return ""
    return ": " + ", ".join(f"{p.declared} {p.name}" for p in parameters)


def _pack_one(parameter: Parameter, arg: Any) -> bytes:
    label = parameter.label
    if isinstance(arg, np.ndarray) and arg.dtype.names and arg.size == 1:  # CuPy passes a structure by value
        if arg.nbytes != parameter.nbytes or parameter.is_pointer:
            raise TypeError(f"{label} is a structure of {_count_bytes(arg.nbytes)}, but {parameter.takes}")
        return arg.tobytes()
    if isinstance(arg, np.ndarray):
        raise TypeError(f"{label} is a NumPy array, in host memory; cp.asarray copies it to the device")
    if isinstance(arg, ndarray):
        return _pack_array(parameter, arg)
    if isinstance(arg, MemoryPointer):
        return _pack_address(parameter, arg.ptr, "a MemoryPointer")
    if isinstance(arg, TextureObject | SurfaceObject):
        kind = type(arg).__name__
        if parameter.nbytes != 8 or parameter.is_pointer or parameter.declared not in ("", f"cuda{kind}_t"):
            raise TypeError(f"{label} is a {kind}, but {parameter.takes}")
        return struct.pack("<Q", arg.ptr)
    if isinstance(arg, np.generic):
        return _pack_numpy(parameter, arg)
    if isinstance(arg, (bool, int)):
        return _pack_int(parameter, int(arg))
    if isinstance(arg, float):
        return _pack_float(parameter, arg)
    raise TypeError(f"{label} is {_article(type(arg).__name__)}; a kernel takes device arrays and numbers")


def _pack_array(parameter: Parameter, array: ndarray) -> bytes:
    packed = _pack_address(parameter, array.data.ptr, f"a device array of {array.dtype}")
    element = _element(parameter.declared) if parameter.declared.count("*") == 1 else None
    if element is not None and not _same_kind(element, array.dtype):
        raise TypeError(
            f"{parameter.label} is a device array of {array.dtype}, but {parameter.takes}: "
            f"convert it with astype, or create it as {element.name}"
        )
    return packed


def _same_kind(element: np.dtype, given: np.dtype) -> bool:
    """Return whether a kernel that reads `element`s can read an array of `given`.

    Size and kind must be the same, signed or not; a complex number counts as two floats.
    """
    if given.kind == "c":
        return element.kind == "f" and element.itemsize * 2 == given.itemsize
    whole = "iub"
    return element.itemsize == given.itemsize and (
        element.kind == given.kind or {element.kind, given.kind} <= set(whole)
    )


def _pack_address(parameter: Parameter, address: int, what: str) -> bytes:
    if parameter.nbytes != 8 or parameter.is_pointer is False:
        raise TypeError(f"{parameter.label} is {what}, but {parameter.takes}, not a pointer")
    return struct.pack("<Q", address)


def _pack_numpy(parameter: Parameter, arg: np.generic) -> bytes:
    what = f"np.{arg.dtype.name}({arg!s}), {arg.nbytes} byte{'s' if arg.nbytes > 1 else ''}"
    if arg.nbytes != parameter.nbytes or arg.dtype.char not in "?bhilqBHILQefdFD":
        raise TypeError(f"{parameter.label} is {what}, but {parameter.takes}{_suggest(parameter)}")
    if parameter.ptx in ("f32", "f64") and arg.dtype.kind != "f":
        raise TypeError(f"{parameter.label} is {what}, but {parameter.takes}{_suggest(parameter)}")
    if arg.dtype.kind == "f" and parameter.ptx[0] in "us":
        raise TypeError(f"{parameter.label} is {what}, but {parameter.takes}{_suggest(parameter)}")
    if parameter.is_pointer and arg.dtype.kind not in "iu":
        raise TypeError(f"{parameter.label} is {what}, but {parameter.takes}")
    return arg.tobytes()


def _pack_int(parameter: Parameter, value: int) -> bytes:
    """Pack a Python int. CuPy passes 8 bytes, and the kernel reads the number of low bytes that it declares."""
    if parameter.ptx in ("f32", "f64") or parameter.nbytes not in (1, 2, 4, 8):
        raise TypeError(f"{parameter.label} is the Python int {value}, but {parameter.takes}{_suggest(parameter)}")
    bits = parameter.nbytes * 8
    element = _element(parameter.declared) if parameter.declared and not parameter.is_pointer else None
    low = 0 if element is not None and element.kind in "ub" else -(1 << bits - 1)
    high = (1 << bits - 1) if element is not None and element.kind == "i" else 1 << bits
    if not low <= value < high:
        raise TypeError(f"{parameter.label} is the Python int {value}, which does not fit: {parameter.takes}")
    return (value % (1 << bits)).to_bytes(parameter.nbytes, "little")


def _pack_float(parameter: Parameter, value: float) -> bytes:
    if parameter.ptx == "f64":
        return struct.pack("<d", value)
    hint = ": CuPy passes it as a double, so write np.float32(...)" if parameter.ptx == "f32" else _suggest(parameter)
    raise TypeError(f"{parameter.label} is the Python float {value}, but {parameter.takes}{hint}")


def _suggest(parameter: Parameter) -> str:
    """Return ": write np.int32(...)" if the parameter's type is known, else ""."""
    element = _element(parameter.declared) if parameter.declared and not parameter.is_pointer else None
    if element is None and parameter.ptx in ("f32", "f64"):
        element = np.dtype(f"f{parameter.nbytes}")
    return f": write np.{element.name}(...)" if element is not None and element.itemsize == parameter.nbytes else ""


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' and not noun.startswith('u') else 'a'} {noun}"
