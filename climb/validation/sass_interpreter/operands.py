"""Parse the operands of an instruction from nvdisasm's text."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass


class UnsupportedSass(Exception):
    """Machine code that the interpreter does not support. ``what`` names the opcode, the operand or the situation."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"not supported: {self.what}"


@dataclass(frozen=True)
class Operand:
    """One operand.

    `kind` is "R", "UR" (registers), "P", "UP" (predicates), "c" (constant bank), "[" (address), "number" or "name" (a
    special register, a label). `index` is the register's number, -1 for the one that always reads zero or true.
    `negative`, `inverted` and `absolute` are its modifiers. `value` is a number as written, `text` the rest.
    """

    kind: str
    index: int = -1
    negative: bool = False
    inverted: bool = False
    absolute: bool = False
    value: str = ""
    text: str = ""


_REGISTER = re.compile(r"^(-?)(~?)(!?)(\|?)(UR|UP|R|P)(\d+|Z|T)((?:\.\w+)*)\|?((?:\.\w+)*)$")
_CONSTANT = re.compile(r"^(-?)(\|?)c\[(0x[0-9a-f]+)\]\[(.+)\]\|?$")
_NUMBER = re.compile(r"^-?(0x[0-9a-f]+|\d+(\.\d+)?(e[+-]?\d+)?)$|^[+-](INF|QNAN|SNAN)$", re.IGNORECASE)


def split(text: str) -> tuple[Operand, ...]:
    """Split the operands of an instruction, as nvdisasm writes them. Raises UnsupportedSass."""
    return tuple(operand(part.strip()) for part in re.split(r",(?![^\[]*\])", text) if part.strip())


@functools.cache
def operand(text: str) -> Operand:
    """Parse one operand. Raises UnsupportedSass for any other text."""
    if found := _REGISTER.match(text):
        minus, tilde, bang, bars, kind, index, before, after = found.groups()
        number = -1 if index in "ZT" else int(index)
        return Operand(kind, number, bool(minus), bool(tilde or bang), bool(bars), "", before + after)
    if found := _CONSTANT.match(text):
        return Operand("c", int(found[3], 16), bool(found[1]), False, bool(found[2]), text=found[4])
    if _NUMBER.match(text):
        return Operand("number", value=text)
    if text.startswith(("[", "desc[")):
        return Operand("[", text=text)
    if text.startswith("`(") or re.match(r"^(SR\w*|B\d+)(\.\w+)*$", text):
        return Operand("name", text=text.strip("`()"))
    raise UnsupportedSass(f"the operand {text}")
