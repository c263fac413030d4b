"""The lexical rules of PTX: matching brackets, comma-separated lists, and literals."""

from __future__ import annotations

import re
import struct

from .model import Immediate

_BRACKET = re.compile(r"[\[\](){}]")
_BRACKET_OR_COMMA = re.compile(r"[\[\](){},]")
_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")


class PtxSyntaxError(ValueError):
    """The text is not PTX that the parser can read; the message quotes the statement."""


def closing_bracket(text: str, start: int, opening: str, closing: str) -> int:
    """Return the index just after the bracket that closes the one at `start`."""
    depth = 0
    for match in re.compile(f"[{re.escape(opening + closing)}]").finditer(text, start):
        depth += 1 if match.group() == opening else -1
        if depth == 0:
            return match.end()
    raise PtxSyntaxError(f"no {closing} for: {text[start : start + 60]}")


def parse_literal(text: str) -> Immediate | None:
    """Return the immediate that `text` spells (a float as its raw bits), or None."""
    if _INTEGER.match(text):
        return Immediate(int(text.rstrip("U"), 0) if not re.match(r"[+-]?0\d", text) else int(text.rstrip("U"), 8))
    head = text[:2].lower()
    if head == "0f" and len(text) == 10:
        return Immediate(int(text[2:], 16), 32)
    if head == "0d" and len(text) == 18:
        return Immediate(int(text[2:], 16), 64)
    try:
        return Immediate(int.from_bytes(struct.pack("<d", float(text)), "little"), 64)
    except ValueError:
        return None


def split_list(text: str) -> list[str]:
    """Split at commas outside brackets."""
    if not _BRACKET.search(text):
        return [part.strip() for part in text.split(",")]
    parts, depth, start = [], 0, 0
    for match in _BRACKET_OR_COMMA.finditer(text):
        letter = match.group()
        if letter == ",":
            if depth == 0:
                parts.append(text[start : match.start()].strip())
                start = match.end()
        elif letter in "[{(":
            depth += 1
        else:
            depth -= 1
    parts.append(text[start:].strip())
    return parts
