"""The parts of a PTX module as plain data: functions, variables, instructions, operands and source locations.

The parser makes these classes; every later step reads them or makes changed copies. Nothing is interpreted here: an
opcode that the emulator cannot run looks like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_BYTES = {
    "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16, "pred": 0,
    "texref": 8, "samplerref": 8, "surfref": 8,
}  # fmt: skip


@dataclass(frozen=True)
class Location:
    """A source position: `file` as written in the PTX file table, `line` from 1; line 0 means unknown.

    `library`: the instruction comes from a header of CUB or Thrust that the code at this position has called.
    """

    file: str = ""
    line: int = 0
    library: bool = field(default=False, compare=False)


CONSTANTS = {"WARP_SZ": 32}  # PTX's predefined identifiers


@dataclass(frozen=True)
class Register:
    """A declared register (`%r1`) or a special one (`%tid.x`); the parser makes scoped names unique."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A literal.

    `value` is a Python int, or a float for literals with a decimal point; `bits` is the width of 0f and 0d forms.
    """

    value: int
    bits: int = 0


@dataclass(frozen=True)
class Symbol:
    """A variable, parameter, function or label used as an operand, with a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Address:
    """`[base+offset]`. `base` is None for an absolute address; `extra` holds texture coordinates."""

    base: Register | Symbol | None
    offset: int = 0
    extra: tuple = ()


@dataclass(frozen=True)
class Vector:
    """`{a, b, c, d}`."""

    items: tuple


@dataclass(frozen=True)
class Pair:
    """`a|b`: two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Negated:
    """`!p`: a predicate operand read inverted."""

    register: Register


@dataclass(frozen=True)
class Part:
    """`%r1.b0` or `-%r1`, as video instructions take them: bytes or halves of a register, or its negative."""

    register: Operand
    selector: str = ""
    negative: bool = False


@dataclass(frozen=True)
class Arguments:
    """`(a, b)`: an argument list of call."""

    items: tuple


Operand = Register | Immediate | Symbol | Address | Vector | Pair | Negated | Part | Arguments


@dataclass(frozen=True)
class Instruction:
    """One PTX instruction. `opcode` has every modifier; `guard` is (register, negated) or None.

    `used`: one bit for each byte that the source requests, if the compiler has widened a load; otherwise None.
    """

    opcode: str
    operands: tuple[Operand, ...]
    location: Location
    guard: tuple[Register, bool] | None = None
    text: str = ""
    used: int | None = None


@dataclass(frozen=True)
class Label:
    """A branch target, in the order of the body."""

    name: str


@dataclass
class Variable:
    """A variable in `space` ("global", "const", "shared", "local" or "param").

    `nbytes` is 0 if the launch gives the size (extern shared). `initial` holds the bytes of the initialiser;
    `relocations` lists (byte offset, symbol, addend, generic).
    """

    name: str
    space: str
    type: str
    align: int
    nbytes: int
    initial: bytes | None = None
    relocations: tuple = ()
    extern: bool = False


@dataclass
class Function:
    """A `.entry` or `.func`. `body` is None for a declaration. `max_threads` and `min_blocks`: launch
    bounds, 0 if there are none. `cluster`: the blocks (x, y, z) of a cluster, if the kernel fixes them.

    Calls through pointers name a label: in `call_targets` for a list of functions, in `prototypes` for the bytes of the
    results and of the parameters.
    """

    name: str
    entry: bool
    params: list[Variable]
    returns: list[Variable]
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    body: list[Instruction | Label] | None = None
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    call_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    max_threads: int = 0
    min_blocks: int = 0
    cluster: tuple[int, int, int] | None = None
    location: Location = Location()


@dataclass
class Program:
    """A PTX module."""

    version: str
    target: str
    functions: dict[str, Function]
    variables: dict[str, Variable]
    files: dict[int, str]
