"""A kernel's machine code: its SASS opcodes, in order or counted, read without a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from climb.toolchain import compile_cuda, disassemble
from climb.toolchain.register_banks import BankReads, bank_reads, main_loop


def opcode_counts(compiled: Any, kernels: Iterable[str], only: str = "") -> dict[tuple[str, int, str], int]:
    """Count the opcodes of the kernels that start with ``only`` (a regular expression), by ``(file, line, opcode)``.

    >>> counted = opcode_counts(rung.compiled(size), ["copy_vectorised"], "LDG")              # doctest: +SKIP
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

    >>> opcodes(rung.compiled(size), "copy_unrolled", "LDG|STG")                             # doctest: +SKIP
    """
    if isinstance(code, str):
        options, names = ("-std=c++17",), (kernel,)
        code = compile_cuda(code, filename="kernel.cu", options=options, name_expressions=names, whole=True)
    pattern = re.compile(only)
    return tuple(f"{i.predicate} {i.opcode}".strip() for i in disassemble(code, kernel) if pattern.match(i.opcode))


def longest_chain(code: Any, kernel: str, mnemonic: str = "FFMA") -> int:
    """Return the length of the longest chain of one kind of instruction in which each reads the result of the one
    before.

    A warp must issue a chain one by one: of ``n`` such instructions, at most ``n`` divided by this length can overlap.
    A loop's body counts once, an unrolled loop in full. Needs no GPU.

    >>> longest_chain(rung.compiled(size), kernel)                                           # doctest: +SKIP
    """
    chains: dict[str, int] = {}
    longest = 0
    for instruction in disassemble(code, kernel):
        target, *sources = (operand.strip() for operand in instruction.operands.split(","))
        if instruction.mnemonic == mnemonic:
            # An operand may be written -R2 or |R2|, and reused from a cache: R2.reuse.
            read = (re.sub(r"[-|]|\.\w+", "", source) for source in sources)
            chains[target] = 1 + max((chains.get(register, 0) for register in read), default=0)
            longest = max(longest, chains[target])
        else:
            chains.pop(target, None)
    return longest


def fma_bank_reads(rung: Any, size: Mapping[str, Any], code: Any = None) -> BankReads:
    """Count the register bank reads of the multiply-adds in a rung's main loop, e.g. of ``ladder["tuned"]`` at a size.

    ``code`` is one of ``shown_codes(rung, size)``, by default the first. Of several launches, it takes the one whose
    main loop has the most multiply-adds. Needs no GPU.

    >>> fma_bank_reads(ladder["tuned"], size).pipe_share                                     # doctest: +SKIP
    """
    from climb.bench.shown_code import shown_code  # reads records, which needs msgspec; checking an exercise does not

    compiled = shown_code(rung, size) if code is None else code
    kernels = dict.fromkeys(launch.kernel for launch in rung.launches(size))
    found = [bank_reads(main_loop(compiled, kernel)) for kernel in kernels]
    return max(found, key=lambda reads: reads.instructions)
