"""A kernel's parameters, read from its PTX and named from its source, and arguments packed for them."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from climb.fake_cupy.arrays import ndarray
from climb.fake_cupy.memory import MemoryPointer
from climb.fake_cupy.texture import TextureObject


@dataclass(frozen=True)
class Parameter:
    """One parameter. `ptx` is its PTX type ("u64", "f32", "b8"), `nbytes` its size; `name` and `declared`, its type in
    the source, are "" where the source does not say them plainly."""

    position: int
    ptx: str
    nbytes: int
    name: str = ""
    declared: str = ""

    @property
    def is_pointer(self) -> bool | None:
        """Whether it is a pointer; None where only its size is known."""
        if self.declared:
            return self.declared.endswith("*")
        return None if self.ptx in ("u64", "b64") else False

    @property
    def label(self) -> str:
        """How a message calls it."""
        return f"argument {self.position} ('{self.name}')" if self.name else f"argument {self.position}"

    @property
    def takes(self) -> str:
        """What it takes, in words."""
        if self.declared:
            return f"the kernel takes {self.declared}"
        size = f"{self.nbytes} byte{'s' if self.nbytes > 1 else ''}"
        return f"the kernel takes {'a floating-point number of ' if self.ptx in ('f32', 'f64') else ''}{size}"


_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\((.*?)\))?", re.DOTALL)
_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s+)?(?:\.\w+\s+)?(?:\.align\s+\d+\s+)?[\w$]+(?:\[(\d+)\])?"
)
_PTX_BYTES = re.compile(r"(\d+)$")


def read_parameters(ptx: str, kernel: str, source: str, expression: str) -> tuple[Parameter, ...]:
    """The parameters of the kernel of lowered name `kernel` in `ptx`; `expression` is how C++ calls it."""
    for entry in _ENTRY.finditer(ptx):
        if entry[1] == kernel:
            break
    else:
        raise LookupError(f"the PTX has no kernel {kernel}")
    found = []
    for position, (kind, count) in enumerate(_PARAM.findall(entry[2] or ""), start=1):
        bits = _PTX_BYTES.search(kind)
        found.append(Parameter(position, kind, int(bits[1]) // 8 * int(count or 1) if bits else 0))
    declared = _declared(source, expression)
    if declared is None or len(declared) != len(found):
        return tuple(found)
    return tuple(
        Parameter(p.position, p.ptx, p.nbytes, name, kind) for p, (kind, name) in zip(found, declared, strict=True)
    )


def _declared(source: str, expression: str) -> list[tuple[str, str]] | None:
    """Type and name of each parameter of the kernel, if the source declares exactly one kernel of that name."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
    text = re.sub(r"__launch_bounds__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)", " ", text)
    base = re.sub(r"<.*", "", expression, flags=re.DOTALL).strip().split("::")[-1]
    lists = []
    for match in re.finditer(rf"__global__\s[^;{{}}()]*?\b{re.escape(base)}\s*\(", text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        lists.append([_declaration(part) for part in _split(text[match.end() : end - 1])])
    distinct = [one for i, one in enumerate(lists) if one not in lists[:i]]
    if len(distinct) != 1 or any(part is None for part in distinct[0]):
        return None
    return distinct[0]  # type: ignore[return-value]


def _split(parameters: str) -> list[str]:
    """`parameters` at its top-level commas."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(parameters):
        depth += {"<": 1, "(": 1, "[": 1, "{": 1, ">": -1, ")": -1, "]": -1, "}": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(parameters[start:i])
            start = i + 1
    parts.append(parameters[start:])
    return [part for part in parts if part.strip()]


def _declaration(parameter: str) -> tuple[str, str] | None:
    """`parameter` as (type, name), the type without const, volatile, restrict; None if it is not of the plain kind."""
    text = re.sub(r"\b(?:const|volatile|__restrict__|__restrict|restrict|__grid_constant__|struct)\b", " ", parameter)
    match = re.fullmatch(r"\s*((?:unsigned|signed|long|short|int|char|double|[\w:]+)(?:\s+(?:long|int|char|short))*"
                         r"(?:\s*<[^*&]*>)?)((?:\s*\*)*)\s*(\w+)\s*((?:\[\w*\])*)\s*", text)  # fmt: skip
    if match is None:
        return None
    kind, stars, name, brackets = match.groups()
    pointers = stars.count("*") + bool(brackets)
    return " ".join(kind.split()) + "*" * pointers, name


# Element types that the source may name, and what NumPy calls them. Vector types are made of their elements.
_ELEMENTS = {
    "float": "f4", "double": "f8", "bool": "b1", "char": "i1", "signed char": "i1", "unsigned char": "u1",
    "short": "i2", "unsigned short": "u2", "int": "i4", "unsigned": "u4", "unsigned int": "u4",
    "long long": "i8", "long long int": "i8", "unsigned long long": "u8", "long": "i8", "unsigned long": "u8",
    "size_t": "u8", "uint": "u4", "uchar": "u1", "ushort": "u2", "half": "f2", "__half": "f2",
    "int8_t": "i1", "int16_t": "i2", "int32_t": "i4", "int64_t": "i8",
    "uint8_t": "u1", "uint16_t": "u2", "uint32_t": "u4", "uint64_t": "u8",
}  # fmt: skip
_VECTORS = {"float": "f4", "double": "f8", "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2",
            "int": "i4", "uint": "u4", "longlong": "i8", "ulonglong": "u8"}  # fmt: skip


def _element(declared: str) -> np.dtype | None:
    """The element type of what the source declares, pointer or not; None for a name that is not CUDA's own."""
    kind = declared.rstrip("* ").removeprefix("std::")
    if kind in _ELEMENTS:
        return np.dtype(_ELEMENTS[kind])
    vector = re.fullmatch(r"([a-z]+)[1-4]", kind)
    return np.dtype(_VECTORS[vector[1]]) if vector and vector[1] in _VECTORS else None


def pack(parameters: Sequence[Parameter], args: Sequence[Any]) -> list[bytes]:
    """Each argument as the bytes of its parameter.

    Raises TypeError, naming the argument, for what CuPy refuses (a NumPy array) and for what CuPy would pass with
    another size or meaning than the kernel reads.
    """
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"the arguments are a tuple, here a {type(args).__name__}; a single one is written (a,)")
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
    if isinstance(arg, np.ndarray) and arg.dtype.names and arg.size == 1:  # CuPy copies a structure by value
        if arg.nbytes != parameter.nbytes or parameter.is_pointer:
            raise TypeError(f"{label} is a structure of {_count_bytes(arg.nbytes)}, but {parameter.takes}")
        return arg.tobytes()
    if isinstance(arg, np.ndarray):
        raise TypeError(f"{label} is a NumPy array, in host memory; cp.asarray copies it to the device")
    if isinstance(arg, ndarray):
        return _pack_array(parameter, arg)
    if isinstance(arg, MemoryPointer):
        return _pack_address(parameter, arg.ptr, "a MemoryPointer")
    if isinstance(arg, TextureObject):
        if parameter.nbytes != 8 or parameter.is_pointer or parameter.declared not in ("", "cudaTextureObject_t"):
            raise TypeError(f"{label} is a TextureObject, but {parameter.takes}")
        return struct.pack("<Q", arg.ptr)
    if isinstance(arg, np.generic):
        return _pack_numpy(parameter, arg)
    if isinstance(arg, (bool, int)):
        return _pack_int(parameter, int(arg))
    if isinstance(arg, float):
        return _pack_float(parameter, arg)
    raise TypeError(f"{label} is {_article(type(arg).__name__)}; kernels take device arrays and numbers")


def _pack_array(parameter: Parameter, array: ndarray) -> bytes:
    packed = _pack_address(parameter, array.data.ptr, f"a device array of {array.dtype}")
    element = _element(parameter.declared) if parameter.declared.count("*") == 1 else None
    if element is not None and not _same_kind(element, array.dtype):
        raise TypeError(
            f"{parameter.label} is a device array of {array.dtype}, but {parameter.takes}: "
            f"make it {element.name} with astype, or when it is created"
        )
    return packed


def _same_kind(element: np.dtype, given: np.dtype) -> bool:
    """Whether an array of `given` can be read as `element`s: the same size and kind, sign aside; a complex number is
    two floats."""
    if given.kind == "c":
        return element.kind == "f" and element.itemsize * 2 == given.itemsize
    whole = "iub"
    return element.itemsize == given.itemsize and (
        element.kind == given.kind or {element.kind, given.kind} <= set(whole)
    )


def _pack_address(parameter: Parameter, address: int, what: str) -> bytes:
    if parameter.nbytes != 8 or parameter.is_pointer is False:
        raise TypeError(f"{parameter.label} is {what}, but {parameter.takes}, no pointer")
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
    """A Python int; CuPy passes 8 bytes, of which the kernel reads as many as it takes, the lowest first."""
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
    """ ": write np.int32(...)", where the parameter's type is known."""
    element = _element(parameter.declared) if parameter.declared and not parameter.is_pointer else None
    if element is None and parameter.ptx in ("f32", "f64"):
        element = np.dtype(f"f{parameter.nbytes}")
    return f": write np.{element.name}(...)" if element is not None and element.itemsize == parameter.nbytes else ""


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' and not noun.startswith('u') else 'a'} {noun}"
