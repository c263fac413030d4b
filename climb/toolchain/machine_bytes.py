"""The bytes of a cubin that are machine instructions, without its line tables and symbols."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_FILE, _SECTION = struct.Struct("<40xQ10xHHH"), struct.Struct("<I20xQQ24x")


def instruction_bytes(cubin: bytes) -> dict[str, bytes]:
    """Return the machine instructions of each kernel of a cubin by its lowered name.

    A cubin is an ELF file of 64 bits (System V ABI, "Object Files"). Raises ValueError if this is none.
    """
    prefix = ".text."
    return {name.removeprefix(prefix): code for name, code in _sections(cubin) if name.startswith(prefix)}


def _sections(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("not a cubin: it is no ELF file of 64 bits")
    start, each, count, of_names = _FILE.unpack_from(cubin)
    places = [_SECTION.unpack_from(cubin, start + each * i) for i in range(count)]
    names = places[of_names][1]
    for name, offset, size in places:
        end = cubin.index(b"\0", names + name)
        yield cubin[names + name : end].decode(), cubin[offset : offset + size]
