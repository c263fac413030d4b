"""Parse PTX text into plain data.

Defines what the rest of the emulator sees of a PTX module: its functions, variables, file table and, for each
instruction, the full opcode with its modifiers, the operands, the guard and the source location. Nothing is interpreted
here: an opcode that the emulator cannot run parses like any other.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field, replace

TYPE_BYTES = {
    "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16, "pred": 0,
    "texref": 8, "samplerref": 8, "surfref": 8,
}  # fmt: skip


class PtxSyntaxError(ValueError):
    """The text is not PTX that this parser knows; the message quotes the statement."""


@dataclass(frozen=True)
class Location:
    """A source position: `file` as written in the PTX file table, `line` from 1; line 0 means unknown."""

    file: str = ""
    line: int = 0


CONSTANTS = {"WARP_SZ": 32}  # PTX's predefined identifiers


@dataclass(frozen=True)
class Register:
    """A declared register (`%r1`) or a special one (`%tid.x`); scoped names are made unique by the parser."""

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
    """`[base+offset]`;

    Base is a Register, a Symbol, or None for an absolute address. `extra` holds texture coordinates.
    """

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
class Group:
    """`(a, b)`: argument lists of call."""

    items: tuple


Operand = Register | Immediate | Symbol | Address | Vector | Pair | Negated | Group


@dataclass(frozen=True)
class Instruction:
    """One PTX instruction. `opcode` has every modifier; `guard` is (register, negated) or None. `used`: of a load that
    the compiler has made wider, a bit for each byte that the source asks for."""

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
    """A variable in `space` ("global", "const", "shared", "local", "param"); `nbytes` 0 means sized at launch (extern
    shared).

    `initial` holds the bytes of the initialiser; `relocations` lists (byte offset, symbol, addend, generic).
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
    """A `.entry` or `.func`. `body` is None for a declaration."""

    name: str
    entry: bool
    params: list[Variable]
    returns: list[Variable]
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    body: list[Instruction | Label] | None = None
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    max_threads: int = 0
    location: Location = Location()


@dataclass
class Program:
    """A PTX module."""

    version: str
    target: str
    functions: dict[str, Function]
    variables: dict[str, Variable]
    files: dict[int, str]


_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.S)
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)".*$', re.M)
_SECTION = re.compile(r"^\s*\.section\s+[^\{]*\{[^}]*\}", re.M)
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
#: What precedes a load that the compiler has made wider than the source asks for.
_USED_BYTES = re.compile(r'\.pragma\s+"used_bytes_mask\s+(\w+)"$')
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:[^\n]*\binlined_at\s+(\d+)\s+(\d+)\s+(\d+))?[^\n]*")
_TOOLKIT = re.compile(r"cuda/")  # what they do is done by the line that calls them
_INSTRUCTION = re.compile(r"(?:@(!?)\s*([%\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)$", re.S)
_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
_REGISTER_DECLARATION = re.compile(r"\.reg\s*\.(\w+)\s+(.*)$", re.S)
_VARIABLE = re.compile(
    r"((?:\.\w+\s+|\.align\s+\d+\s+|\.attribute\s*\([^)]*\)\s+|\.v[24]\s+|\.ptr\b(?:\s+\.\w+)?\s+)*)"
    r"([A-Za-z_$%][\w$%]*)\s*((?:\[[^\]]*\]\s*)*)(?:=\s*(.*))?$",
    re.S,
)
_SPACES = ("global", "const", "shared", "local", "param")


def parse(text: str) -> Program:
    """Parse a PTX module.

    Raises PtxSyntaxError, quoting the statement, where the text cannot be read.
    """
    text = _COMMENT.sub(lambda m: m.group() if m.group().startswith('"') else " ", text)
    files = {int(m.group(1)): m.group(2) for m in _FILE.finditer(text)}
    text = _SECTION.sub("", _FILE.sub("", text))
    program = Program("", "", {}, {}, files)
    position, end = 0, len(text)
    while True:
        while position < end and text[position].isspace():
            position += 1
        if position >= end:
            return program
        line_end = text.find("\n", position)
        line_end = end if line_end < 0 else line_end
        line = text[position:line_end].strip()
        word = line.split(None, 1)[0]
        if word in (".version", ".target", ".address_size"):
            value = line[len(word) :].strip()
            if word == ".version":
                program.version = value
            elif word == ".target":
                program.target = value
            position = line_end
            continue
        if word == ".loc":
            position = line_end
            continue
        stop = re.compile(r"[;{]").search(text, position)
        if stop is None:
            raise PtxSyntaxError(f"unfinished statement: {line[:80]}")
        header = text[position : stop.start()]
        if re.search(r"\.(entry|func)\b", header):
            position = _function(program, text, position)
        elif header.lstrip().startswith((".alias", ".pragma")):
            position = text.index(";", position) + 1
        else:
            stop = text.index(";", position)
            variable = _variable(text[position:stop])
            program.variables[variable.name] = variable
            position = stop + 1


def _closing(text: str, start: int, opening: str, closing: str) -> int:
    """Index just after the bracket that closes the one at `start`."""
    depth = 0
    for match in re.compile(f"[{re.escape(opening + closing)}]").finditer(text, start):
        depth += 1 if match.group() == opening else -1
        if depth == 0:
            return match.end()
    raise PtxSyntaxError(f"no {closing} for: {text[start : start + 60]}")


def _function(program: Program, text: str, position: int) -> int:
    kind = re.compile(r"\.(entry|func)\b").search(text, position)
    entry = kind.group(1) == "entry"
    position = kind.end()
    returns: list[Variable] = []

    def skip(at: int) -> int:
        while text[at].isspace():
            at += 1
        return at

    position = skip(position)
    if text[position] == "(":
        stop = _closing(text, position, "(", ")")
        returns = _parameters(text[position + 1 : stop - 1])
        position = skip(stop)
    name = re.compile(r"[\w$]+").match(text, position)
    if name is None:
        raise PtxSyntaxError(f"function without a name: {text[position : position + 60]}")
    position = skip(name.end())
    params: list[Variable] = []
    if text[position] == "(":
        stop = _closing(text, position, "(", ")")
        params = _parameters(text[position + 1 : stop - 1])
        position = stop
    stop = re.compile(r"[;{]").search(text, position)
    function = Function(name.group(), entry, params, returns)
    limits = re.search(r"\.(?:maxntid|reqntid)\s+([\d,\s]+)", text[position : stop.start()])
    if limits:
        function.max_threads = 1
        for part in limits.group(1).split(","):
            function.max_threads *= int(part)
    if stop.group() == ";":
        program.functions.setdefault(function.name, function)
        return stop.end()
    close = _closing(text, stop.start(), "{", "}")
    _body(program, function, text[stop.end() : close - 1])
    program.functions[function.name] = function
    return close


def _parameters(text: str) -> list[Variable]:
    return [_variable(part) for part in _split(text) if part]


def _variable(text: str) -> Variable:
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
        value = _literal(item)
        if value is None:
            raise PtxSyntaxError(f"cannot read the initialiser: {text[:100]}")
        out += (value.value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
    return bytes(out).ljust(nbytes, b"\0"), tuple(relocations)


def _literal(text: str) -> Immediate | None:
    """The immediate that `text` spells, its value as raw bits for floats, or None."""
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


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        if letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return parts


class _Scopes:
    """Names declared in nested braces: registers, local variables and labels get a suffix outside the outermost one."""

    def __init__(self) -> None:
        self.stack: list[dict[str, str]] = [{}]
        self.count = 0

    def open(self, labels: dict[str, str]) -> None:
        self.count += 1
        self.stack.append({name: f"{name}.{self.count}" for name in labels})

    def close(self) -> None:
        self.stack.pop()

    def declare(self, name: str) -> str:
        unique = name if len(self.stack) == 1 else f"{name}.{self.count}"
        self.stack[-1][name] = unique
        return unique

    def find(self, name: str) -> str | None:
        for scope in reversed(self.stack):
            if name in scope:
                return scope[name]
        return None


def _body(program: Program, function: Function, text: str) -> None:
    scopes, body = _Scopes(), []
    location, callers, used = Location(), {}, None
    position, end = 0, len(text)
    space = re.compile(r"\s*")
    while True:
        position = space.match(text, position).end()
        if position >= end:
            break
        letter = text[position]
        if letter == "{":
            inside = text[position + 1 : _closing(text, position, "{", "}") - 1]
            scopes.open({m.group(1): "" for m in _LABEL.finditer(inside)} if ":" in inside else {})
            position += 1
            continue
        if letter == "}":
            scopes.close()
            position += 1
            continue
        loc = _LOC.match(text, position)
        if loc:
            # Line 0 marks code of the compiler's own: it belongs to the line before.
            if int(loc.group(2)):
                location = _located(program, loc, callers)
                if not function.location.line:
                    function.location = location
            position = loc.end()
            continue
        label = _LABEL.match(text, position)
        if label:
            name = scopes.find(label.group(1)) or label.group(1)
            position = label.end()
            table = re.compile(r"\s*\.branchtargets\s+([^;]*);").match(text, position)
            if table:
                targets = tuple(scopes.find(t.strip()) or t.strip() for t in table.group(1).split(","))
                function.branch_targets[name] = targets
                position = table.end()
            elif re.compile(r"\s*\.call(targets|prototype)\b").match(text, position):
                position = text.index(";", position) + 1
            else:
                body.append(Label(name))
            continue
        stop = text.find(";", position)
        if stop < 0:
            raise PtxSyntaxError(f"unfinished statement: {text[position : position + 80].strip()}")
        statement = text[position:stop].strip()
        position = stop + 1
        pragma = _USED_BYTES.match(statement)
        if pragma:
            used = int(pragma.group(1), 0)
        elif statement:
            _statement(function, scopes, body, statement, location, used)
            used = None
    function.body = body


def _located(program: Program, loc: re.Match, callers: dict[tuple, Location]) -> Location:
    """The line of a .loc; of an inlined function of a CUDA header the line outside that calls it.

    `callers` keeps where each place so far was found to be.
    """
    file, line, column, *outer = loc.groups()
    location = Location(program.files.get(int(file), file), int(line))
    if outer[0] is not None and _TOOLKIT.match(location.file):
        caller = Location(program.files.get(int(outer[0]), outer[0]), int(outer[1]))
        location = callers.get(tuple(outer), caller)
    callers[file, line, column] = location
    return location


def _statement(
    function: Function, scopes: _Scopes, body: list, statement: str, location: Location, used: int | None
) -> None:
    if statement.startswith(".reg"):
        kind, names = _REGISTER_DECLARATION.match(statement).groups()
        if names.startswith(".v"):
            raise PtxSyntaxError(f"vector registers are not known: {statement}")
        for name in _split(names):
            many = re.match(r"(.+)<(\d+)>$", name)
            each = [f"{many.group(1)}{i}" for i in range(int(many.group(2)))] if many else [name]
            for one in each:
                function.registers[scopes.declare(one)] = kind
        return
    if statement.startswith((".shared", ".local", ".param", ".const", ".global")):
        variable = _variable(statement)
        variable.name = scopes.declare(variable.name)
        function.variables.append(variable)
        return
    if statement.startswith("."):
        if statement.startswith(".pragma"):
            return
        raise PtxSyntaxError(f"cannot read the statement: {statement[:100]}")
    match = _INSTRUCTION.match(statement)
    if match is None:
        raise PtxSyntaxError(f"cannot read the instruction: {statement[:100]}")
    negated, guard, opcode, rest = match.groups()
    rest = rest.strip()
    operands = tuple(_operand(part, scopes, function) for part in _split(rest)) if rest else ()
    body.append(
        Instruction(
            opcode,
            operands,
            location,
            (Register(scopes.find(guard) or guard), negated == "!") if guard else None,
            " ".join(statement.split()),
            used,
        )
    )


def _operand(text: str, scopes: _Scopes, function: Function) -> Operand:
    first = text[:1]
    if first == "[":
        return _address(text[1:-1].strip(), scopes, function)
    if first == "{":
        return Vector(tuple(_operand(part, scopes, function) for part in _split(text[1:-1])))
    if first == "(":
        inside = text[1:-1].strip()
        return Group(tuple(_operand(part, scopes, function) for part in _split(inside)) if inside else ())
    if first == "!":
        return Negated(_operand(text[1:].strip(), scopes, function))
    if "|" in text:
        left, right = text.split("|")
        return Pair(_operand(left.strip(), scopes, function), _operand(right.strip(), scopes, function))
    if first == "-" or first == "+" or first.isdigit():
        value = _literal(text)
        if value is None:
            raise PtxSyntaxError(f"cannot read the operand: {text}")
        return value
    plus = re.match(r"([\w$%.]+)\s*([+-])\s*(-?\w+)$", text)
    if plus:
        offset = int(plus.group(3), 0) * (1 if plus.group(2) == "+" else -1)
        return replace(_name(plus.group(1), scopes, function), offset=offset)
    return _name(text, scopes, function)


def _name(text: str, scopes: _Scopes, function: Function) -> Register | Symbol | Immediate:
    unique = scopes.find(text) or text
    if unique in function.registers:
        return Register(unique)
    if unique in CONSTANTS:
        return Immediate(CONSTANTS[unique])
    if text.startswith("%"):
        return Register(text)
    if text == "_":
        return Register("_")
    return Symbol(unique)


def _address(text: str, scopes: _Scopes, function: Function) -> Address:
    parts = _split(text)
    extra = tuple(_operand(part, scopes, function) for part in parts[1:])
    match = re.match(r"([\w$%.]+)\s*(?:\+\s*(-?\w+))?$", parts[0])
    if match is None:
        raise PtxSyntaxError(f"cannot read the address: [{text}]")
    offset = int(match.group(2), 0) if match.group(2) else 0
    literal = _literal(match.group(1))
    if literal is not None:
        return Address(None, literal.value + offset, extra)
    return Address(_name(match.group(1), scopes, function), offset, extra)
