"""Names of kernels as the source has them, from the names that C++ mangles for the linker.

Only the parts of kernels' names are understood: plain and nested names, and template arguments that are built-in types,
named types, pointers or constants. Any other name stays as it is.
"""

from __future__ import annotations

import re

#: The one-letter codes of the Itanium C++ ABI for built-in types.
_TYPES = {
    "v": "void", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "f": "float", "d": "double",
}  # fmt: skip
_BOOLEANS = {"0": "false", "1": "true"}
_INTERNAL = re.compile(r"(_GLOBAL__N_)|(_INTERNAL_)")


def demangled(name: str) -> str:
    """Return the name that a kernel has in its source, with template arguments and without parameters.

    >>> demangled("_Z7productPKfS0_Pfiii")
    'product'
    >>> demangled("_Z10transposedILi32EfEvPKT0_PS0_")
    'transposed<32, float>'
    """
    if not name.startswith("_Z"):
        return name
    try:
        return _Reader(name[2:]).name()
    except _Unknown:
        return name


class _Unknown(Exception):
    """The name holds a part that is not understood here."""


class _Reader:
    """Reads a mangled name from left to right."""

    def __init__(self, text: str) -> None:
        self.rest = text

    def take(self, pattern: str) -> str | None:
        """Take the matching text from the front and return it; None if nothing matches."""
        found = re.match(pattern, self.rest)
        if not found:
            return None
        self.rest = self.rest[found.end() :]
        return found[0]

    def name(self) -> str:
        if not self.take("N"):
            return self.part()
        parts = []
        while not self.take("E"):
            parts.append(self.part())
        return "::".join(part for part in parts if not _INTERNAL.match(part))

    def part(self) -> str:
        self.take("L")  # internal linkage
        length = self.take(r"\d+")
        if length is None or not 0 < int(length) <= len(self.rest):
            raise _Unknown
        plain, self.rest = self.rest[: int(length)], self.rest[int(length) :]
        return plain + self.arguments()

    def arguments(self) -> str:
        """Return template arguments with their angle brackets; empty if the name has none."""
        if not self.take("I"):
            return ""
        found: list[str] = []
        while not self.take("E"):
            found += self.pack() if self.take("J") else [self.argument()]
        return f"<{', '.join(found)}>"

    def pack(self) -> list[str]:
        found = []
        while not self.take("E"):
            found.append(self.argument())
        return found

    def argument(self) -> str:
        if not self.take("L"):
            return self.type()
        kind = self.type()
        value = self.take(r"n?\d+")
        if value is None or not self.take("E"):
            raise _Unknown
        number = value.replace("n", "-")
        if kind == "bool":
            return _BOOLEANS.get(number, number)
        return number if kind in _TYPES.values() else f"({kind}){number}"

    def type(self) -> str:
        if self.take("P"):
            return f"{self.type()}*"
        if self.take("K"):
            return f"const {self.type()}"
        if self.rest[:1].isdigit() or self.rest.startswith("N"):
            return self.name()
        code = self.take("[a-z]")
        if code not in _TYPES:
            raise _Unknown
        return _TYPES[code]
