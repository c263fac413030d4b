"""A kernel's machine code: its SASS opcodes, in order or counted, read without a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from climb.toolchain import compile_cuda, disassemble


def opcode_counts(compiled: Any, kernels: Iterable[str], only: str = "") -> dict[tuple[str, int, str], int]:
    """Count the opcodes of the kernels that start with ``only`` (a regular expression), by ``(file, line, opcode)``.

    >>> counted = opcode_counts(rung.compiled(size), ["copy_float4"], "LDG")                  # doctest: +SKIP
    >>> assert {opcode for _, _, opcode in counted} == {"LDG.E.128.CONSTANT"}                 # doctest: +SKIP
    """
    pattern = re.compile(only)
    found: dict[tuple[str, int, str], int] = {}
    for kernel in kernels:
        for instruction in disassemble(compiled, kernel):
            if pattern.match(instruction.opcode):
                key = (instruction.file, instruction.line, instruction.opcode)
                found[key] = found.get(key, 0) + 1
    return dict(sorted(found.items()))


def opcodes(code: Any, kernel: str, only: str = "") -> tuple[str, ...]:
    """The machine instructions of a kernel that start with ``only`` (a regular expression), in the order of the code.

    ``code`` is what ``rung.compiled(size)`` returns, or CUDA C++ as text; ``kernel`` is a name expression. A predicated
    instruction begins with its predicate: ``@P0 FADD``. Needs no GPU.

    >>> opcodes(rung.compiled(size), "copy_in_flight", "LDG|STG")                             # doctest: +SKIP
    """
    if isinstance(code, str):
        code = compile_cuda(code, filename="kernel.cu", options=("-std=c++17",), name_expressions=(kernel,))
    pattern = re.compile(only)
    return tuple(f"{i.predicate} {i.opcode}".strip() for i in disassemble(code, kernel) if pattern.match(i.opcode))
