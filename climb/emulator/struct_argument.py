"""A struct that a kernel takes by value, as an argument of `run`."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .runtime.textures import Texture

_POINTER = 8


@dataclass(frozen=True)
class Struct:
    """The members of a struct in order, by name, laid out as in C: each at a multiple of its alignment.

    A member is a NumPy scalar such as ``np.float32(2)``; a list or tuple of them, for a member array; an array, which
    is copied in and back like other arrays, for a pointer to it; a `Texture`, for a texture object; or a `Struct`. The
    members of unions and bit fields have to be given as the integers that hold them.
    """

    members: Mapping[str, object]

    def arrays(self, name: str) -> Iterator[tuple[str, np.ndarray]]:
        """The arrays that members point to, by name: `name`, a dot and the name of the member."""
        for key, each in self.members.items():
            if isinstance(each, np.ndarray):
                yield f"{name}.{key}", each
            elif isinstance(each, Struct):
                yield from each.arrays(f"{name}.{key}")

    def pack(self, name: str, addresses: Mapping[str, int]) -> bytes:
        """Return the bytes of the struct, with the device addresses of its arrays. Raises TypeError for an unknown
        member."""
        return self._packed(name, addresses)[0]

    def _packed(self, name: str, addresses: Mapping[str, int]) -> tuple[bytes, int]:
        """Return the bytes, and the alignment."""
        out, widest = b"", 1
        for key, each in self.members.items():
            data, align = _member(f"{name}.{key}", each, addresses)
            out += bytes(-len(out) % align) + data
            widest = max(widest, align)
        return out + bytes(-len(out) % widest), widest


def _member(name: str, each: object, addresses: Mapping[str, int]) -> tuple[bytes, int]:
    """Return the bytes of a member, and its alignment."""
    if isinstance(each, np.ndarray):
        return struct.pack("<Q", addresses[name]), _POINTER
    if isinstance(each, Texture):
        return struct.pack("<Q", each.handle), _POINTER
    if isinstance(each, Struct):
        return each._packed(name, addresses)
    if isinstance(each, np.generic):
        return each.tobytes(), min(each.dtype.itemsize, 16)
    if isinstance(each, Sequence) and not isinstance(each, str | bytes) and each:
        parts = [_member(f"{name}[{number}]", one, addresses) for number, one in enumerate(each)]
        return b"".join(data for data, _ in parts), max(align for _, align in parts)
    what = "a NumPy scalar, a list of them, an array, a Texture or a Struct"
    raise TypeError(f"{name} is a {type(each).__name__}; expected {what}")
