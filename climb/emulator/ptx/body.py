"""The body of a function: its statements, their operands, and the source line that each belongs to."""

from __future__ import annotations

import re
from dataclasses import replace

from .declarations import parse_prototype, parse_variable
from .model import (
    CONSTANTS,
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
    Vector,
)
from .source_lines import LOC, SourceLines
from .syntax import PtxSyntaxError, closing_bracket, parse_literal, split_list
from .used_bytes import with_registers_that_are_read

_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
#: Precedes a load that the compiler has widened beyond the source's request.
_USED_BYTES = re.compile(r'\.pragma\s+"used_bytes_mask\s+(\w+)"$')
_TARGETS = re.compile(r"\s*\.(branch|call)targets\s+([^;]*);")
_PROTOTYPE = re.compile(r"\s*\.callprototype\s+([^;]*);")
_SELECTOR = re.compile(r"b[0-7]{1,4}|h[0-3]{1,2}")  # parts of a register, in video instructions
_INSTRUCTION = re.compile(r"(?:@(!?)\s*([%\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)$", re.S)
_REGISTER_DECLARATION = re.compile(r"\.reg\s*\.(\w+)\s+(.*)$", re.S)


class Scopes:
    """Names declared in nested braces: inside the outermost pair, each gets a suffix that makes it unique."""

    def __init__(self) -> None:
        self.stack: list[dict[str, str]] = [{}]
        self.count = 0
        #: Operands outside of inner braces, as they were read since the last declaration, by their text.
        self.outer: dict[str, Operand] = {}

    def open(self, labels: dict[str, str]) -> None:
        self.count += 1
        self.stack.append({name: f"{name}.{self.count}" for name in labels})

    def close(self) -> None:
        self.stack.pop()

    def declare(self, name: str) -> str:
        unique = name if len(self.stack) == 1 else f"{name}.{self.count}"
        self.stack[-1][name] = unique
        if len(self.stack) == 1:
            self.outer.clear()  # the name may have been read as something else
        return unique

    def find(self, name: str) -> str | None:
        for scope in reversed(self.stack):
            if name in scope:
                return scope[name]
        return None


def parse_body(program: Program, function: Function, text: str) -> None:
    """Fill in the function's registers, variables, branch targets and body from the text between its braces.

    Raises PtxSyntaxError, quoting the statement, if the text cannot be read.
    """
    scopes, body = Scopes(), []
    location, lines, used = Location(), SourceLines(program.files), None
    position, end = 0, len(text)
    space = re.compile(r"\s*")
    while True:
        position = space.match(text, position).end()
        if position >= end:
            break
        letter = text[position]
        if letter == "{":
            inside = text[position + 1 : closing_bracket(text, position, "{", "}") - 1]
            scopes.open({m.group(1): "" for m in _LABEL.finditer(inside)} if ":" in inside else {})
            position += 1
            continue
        if letter == "}":
            scopes.close()
            position += 1
            continue
        loc = LOC.match(text, position) if letter == "." else None
        if loc:
            # Line 0 marks code that the compiler added: it belongs to the line before.
            if int(loc.group(2)):
                location = lines.of(loc)
                if not function.location.line:
                    function.location = location
            position = loc.end()
            continue
        label = _LABEL.match(text, position) if letter != "." else None
        if label:
            name = scopes.find(label.group(1)) or label.group(1)
            position = label.end()
            table = _TARGETS.match(text, position)
            if table:
                targets = tuple(scopes.find(t.strip()) or t.strip() for t in table.group(2).split(","))
                (function.branch_targets if table.group(1) == "branch" else function.call_targets)[name] = targets
                position = table.end()
            elif prototype := _PROTOTYPE.match(text, position):
                function.prototypes[name] = parse_prototype(prototype.group(1))
                position = prototype.end()
            else:
                body.append(Label(name))
            continue
        stop = text.find(";", position)
        if stop < 0:
            raise PtxSyntaxError(f"unfinished statement: {text[position : position + 80].strip()}")
        statement = text[position:stop].strip()
        position = stop + 1
        pragma = _USED_BYTES.match(statement) if letter == "." else None
        if pragma:
            used = int(pragma.group(1), 0)
        elif statement:
            _statement(function, scopes, body, statement, location, used)
            used = None
    function.body = with_registers_that_are_read(body)


def _statement(
    function: Function, scopes: Scopes, body: list, statement: str, location: Location, used: int | None
) -> None:
    if statement[0] == ".":
        _declaration(function, scopes, statement)
        return
    match = _INSTRUCTION.match(statement)
    if match is None:
        raise PtxSyntaxError(f"cannot read the instruction: {statement[:100]}")
    negated, guard, opcode, rest = match.groups()
    rest = rest.strip()
    operands = tuple([_operand(part, scopes, function) for part in split_list(rest)]) if rest else ()
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


def _declaration(function: Function, scopes: Scopes, statement: str) -> None:
    if statement.startswith(".reg"):
        kind, names = _REGISTER_DECLARATION.match(statement).groups()
        if names.startswith(".v"):
            raise PtxSyntaxError(f"vector registers are not supported: {statement}")
        for name in split_list(names):
            many = re.match(r"(.+)<(\d+)>$", name)
            each = [f"{many.group(1)}{i}" for i in range(int(many.group(2)))] if many else [name]
            for one in each:
                function.registers[scopes.declare(one)] = kind
        return
    if statement.startswith((".shared", ".local", ".param", ".const", ".global")):
        variable = parse_variable(statement)
        variable.name = scopes.declare(variable.name)
        function.variables.append(variable)
        return
    if not statement.startswith(".pragma"):
        raise PtxSyntaxError(f"cannot read the statement: {statement[:100]}")


def _operand(text: str, scopes: Scopes, function: Function) -> Operand:
    if len(scopes.stack) > 1:
        return _read(text, scopes, function)
    found = scopes.outer.get(text)
    if found is None:
        found = scopes.outer[text] = _read(text, scopes, function)
    return found


def _read(text: str, scopes: Scopes, function: Function) -> Operand:
    first = text[:1]
    if first == "[":
        return _address(text[1:-1].strip(), scopes, function)
    if first == "{":
        return Vector(tuple(_operand(part, scopes, function) for part in split_list(text[1:-1])))
    if first == "(":
        inside = text[1:-1].strip()
        return Arguments(tuple(_operand(part, scopes, function) for part in split_list(inside)) if inside else ())
    if first == "!":
        return Negated(_operand(text[1:].strip(), scopes, function))
    if "|" in text:
        left, right = text.split("|")
        return Pair(_operand(left.strip(), scopes, function), _operand(right.strip(), scopes, function))
    if text[:2] == "-%":
        inner = _operand(text[1:], scopes, function)
        return replace(inner, negative=True) if isinstance(inner, Part) else Part(inner, negative=True)
    if first == "-" or first == "+" or first.isdigit():
        value = parse_literal(text)
        if value is None:
            raise PtxSyntaxError(f"cannot read the operand: {text}")
        return value
    plus = re.match(r"([\w$%.]+)\s*([+-])\s*(-?\w+)$", text)
    if plus:
        offset = int(plus.group(3), 0) * (1 if plus.group(2) == "+" else -1)
        return replace(_name(plus.group(1), scopes, function), offset=offset)
    return _name(text, scopes, function)


def _name(text: str, scopes: Scopes, function: Function) -> Register | Symbol | Immediate | Part:
    unique = scopes.find(text) or text
    if unique in function.registers:
        return Register(unique)
    if unique in CONSTANTS:
        return Immediate(CONSTANTS[unique])
    head, dot, selector = text.rpartition(".")
    if dot and _SELECTOR.fullmatch(selector) and (scopes.find(head) or head) in function.registers:
        return Part(Register(scopes.find(head) or head), selector)
    if text.startswith("%"):
        return Register(text)
    if text == "_":
        return Register("_")
    return Symbol(unique)


def _address(text: str, scopes: Scopes, function: Function) -> Address:
    parts = split_list(text)
    extra = tuple(_operand(part, scopes, function) for part in parts[1:])
    match = re.match(r"([\w$%.]+)\s*(?:\+\s*(-?\w+))?$", parts[0])
    if match is None:
        raise PtxSyntaxError(f"cannot read the address: [{text}]")
    offset = int(match.group(2), 0) if match.group(2) else 0
    literal = parse_literal(match.group(1))
    if literal is not None:
        return Address(None, literal.value + offset, extra)
    return Address(_name(match.group(1), scopes, function), offset, extra)
