"""Parse PTX text into the data of `model`: functions, variables and the file table of a module.

An opcode that the emulator cannot run parses like any other.
"""

from __future__ import annotations

import re

from .body import parse_body
from .declarations import parse_parameters, parse_variable
from .local_variables import described, separate
from .model import Function, Program, Variable
from .syntax import PtxSyntaxError, closing_bracket

_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.S)
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)".*$', re.M)
_SECTION = re.compile(r"^\s*\.section\s+[^\{]*\{[^}]*\}", re.M)


def parse(text: str) -> Program:
    """Parse a PTX module.

    Raises PtxSyntaxError, quoting the statement, if the text cannot be read.
    """
    text = _COMMENT.sub(lambda m: m.group() if m.group().startswith('"') else " ", text)
    files = {int(m.group(1)): m.group(2) for m in _FILE.finditer(text)}
    named = described(text) if "__local_depot" in text and ".debug_info" in text else {}
    text = _SECTION.sub("", _FILE.sub("", text))
    program = Program("", "", {}, {}, files)
    position, end = 0, len(text)
    while True:
        while position < end and text[position].isspace():
            position += 1
        if position >= end:
            for function in program.functions.values() if named else ():
                separate(function, named)
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
            variable = parse_variable(text[position:stop])
            program.variables[variable.name] = variable
            position = stop + 1


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
        stop = closing_bracket(text, position, "(", ")")
        returns = parse_parameters(text[position + 1 : stop - 1])
        position = skip(stop)
    name = re.compile(r"[\w$]+").match(text, position)
    if name is None:
        raise PtxSyntaxError(f"function without a name: {text[position : position + 60]}")
    position = skip(name.end())
    params: list[Variable] = []
    if text[position] == "(":
        stop = closing_bracket(text, position, "(", ")")
        params = parse_parameters(text[position + 1 : stop - 1])
        position = stop
    stop = re.compile(r"[;{]").search(text, position)
    function = Function(name.group(), entry, params, returns)
    limits = re.search(r"\.(?:maxntid|reqntid)\s+([\d,\s]+)", text[position : stop.start()])
    if limits:
        function.max_threads = 1
        for part in limits.group(1).split(","):
            function.max_threads *= int(part)
    resident = re.search(r"\.minnctapersm\s+(\d+)", text[position : stop.start()])
    function.min_blocks = int(resident.group(1)) if resident else 0
    cluster = re.search(r"\.reqnctapercluster\s+([\d,\s]+)", text[position : stop.start()])
    if cluster:
        function.cluster = (*(int(part) for part in cluster.group(1).split(",")), 1, 1)[:3]
    if stop.group() == ";":
        program.functions.setdefault(function.name, function)
        return stop.end()
    close = closing_bracket(text, stop.start(), "{", "}")
    parse_body(program, function, text[stop.end() : close - 1])
    program.functions[function.name] = function
    return close
