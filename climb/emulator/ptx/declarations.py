"""Declarations of variables and parameters, with their initialisers."""

from __future__ import annotations

import re

from .model import TYPE_BYTES, Variable
from .syntax import PtxSyntaxError, parse_literal, split_list

_VARIABLE = re.compile(
    r"((?:\.\w+\s+|\.align\s+\d+\s+|\.attribute\s*\([^)]*\)\s+|\.v[24]\s+|\.ptr\b(?:\s+\.\w+)?\s+)*)"
    r"([A-Za-z_$%][\w$%]*)\s*((?:\[[^\]]*\]\s*)*)(?:=\s*(.*))?$",
    re.S,
)
_SPACES = ("global", "const", "shared", "local", "param")


def parse_parameters(text: str) -> list[Variable]:
    """Parse the parameters declared in an argument list, without its parentheses."""
    return [parse_variable(part) for part in split_list(text) if part]


def parse_prototype(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Parse the bytes of each result and of each parameter of a prototype: `(.param .b32 _) _ (.param .b64 _)`."""
    match = re.match(r"\s*(?:\(([^)]*)\))?\s*_\s*(?:\(([^)]*)\))?", text)
    returns, params = (tuple(each.nbytes for each in parse_parameters(part or "")) for part in match.groups())
    return returns, params


def parse_variable(text: str) -> Variable:
    """Parse the variable or parameter of a declaration, without its semicolon. Raises PtxSyntaxError."""
    text = " ".join(text.split())
    match = _VARIABLE.match(text)
    if match is None:
        raise PtxSyntaxError(f"cannot read the declaration: {text[:100]}")
    words = match.group(1).split()
    space, kind, align, lanes, extern = "param", "", 0, 1, False
    for index, word in enumerate(words):
        if word == ".align":
            align = int(words[index + 1])
        elif word == ".extern":
            extern = True
        elif word in (".v2", ".v4"):
            lanes = int(word[2])
        elif word[1:] in TYPE_BYTES:
            kind = word[1:]
        elif word[1:] in _SPACES and not kind:
            space = word[1:]
    if not kind:
        raise PtxSyntaxError(f"cannot read the declaration: {text[:100]}")
    count = lanes
    for part in re.findall(r"\[([^\]]*)\]", match.group(3)):
        count *= int(part) if part.strip() else 0
    size = TYPE_BYTES[kind]
    nbytes = size * count
    initial, relocations = None, ()
    if match.group(4) is not None:
        initial, relocations = _initialiser(match.group(4), kind, size, nbytes)
    return Variable(match.group(2), space, kind, align or max(size, 1), nbytes, initial, relocations, extern)


def _initialiser(text: str, kind: str, size: int, nbytes: int) -> tuple[bytes, tuple]:
    out, relocations = bytearray(), []
    for item in re.split(r"[{},\s]+", text.strip()):
        if not item:
            continue
        generic = re.match(r"generic\(([\w$]+)\)(?:\+(\d+))?$", item)
        plain = re.match(r"([A-Za-z_$][\w$]*)(?:\+(\d+))?$", item)
        if generic or plain:
            found = generic or plain
            relocations.append((len(out), found.group(1), int(found.group(2) or 0), bool(generic)))
            out += bytes(size)
            continue
        value = parse_literal(item)
        if value is None:
            raise PtxSyntaxError(f"cannot read the initialiser: {text[:100]}")
        out += (value.value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
    return bytes(out).ljust(nbytes, b"\0"), tuple(relocations)
