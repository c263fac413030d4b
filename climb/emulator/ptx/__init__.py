"""PTX as data: parse the text, inline calls, unfold switches, and build the control flow graph."""

from .model import (
    CONSTANTS,
    TYPE_BYTES,
    Address,
    Arguments,
    Function,
    Immediate,
    Instruction,
    Label,
    Location,
    Negated,
    Operand,
    Pair,
    Part,
    Program,
    Register,
    Symbol,
    Variable,
    Vector,
)
from .parser import parse
from .syntax import PtxSyntaxError

__all__ = [
    "CONSTANTS",
    "TYPE_BYTES",
    "Address",
    "Arguments",
    "Function",
    "Immediate",
    "Instruction",
    "Label",
    "Location",
    "Negated",
    "Operand",
    "Pair",
    "Part",
    "Program",
    "PtxSyntaxError",
    "Register",
    "Symbol",
    "Variable",
    "Vector",
    "parse",
]
