"""Prove that two versions of a rung are one program to the GPU."""

from __future__ import annotations

import re
from typing import Any

from climb.bench import identity
from climb.toolchain import compile_cuda, disassemble, resources

_SYMBOL = re.compile(r"\b_Z\w+")


def same_tokens(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether both have the same code, options, launches and workspace by today's rule of identity."""
    return _identity(old) == _identity(new)


def same_machine_code(old: dict[str, Any], new: dict[str, Any], arch: str = "sm_90") -> str:
    """Why the two are not one program to the GPU; "" if every launched kernel has the same machine code.

    Compared are instructions with operands, registers, shared memory, spills, and launches but for kernels' names.
    """
    ours, theirs = ([{**launch, "kernel": ""} for launch in one["launches"]] for one in (old, new))
    if ours != theirs:
        return "its launches differ"
    if old["workspace"] != new["workspace"]:
        return "its workspace differs"
    return "" if _machine_code(old, arch) == _machine_code(new, arch) else "its machine code differs"


def _identity(point: dict[str, Any]) -> str:
    return identity.sha256(point["source"], point["options"], point["launches"], point["workspace"])


def _machine_code(point: dict[str, Any], arch: str) -> list[Any]:
    kernels = list(dict.fromkeys(launch["kernel"] for launch in point["launches"]))
    compiled = compile_cuda(
        point["source"],
        filename="kernel.cu",
        options=tuple(point["options"]),
        name_expressions=tuple(kernels),
        arch=arch,
    )
    found = []
    for kernel in kernels:
        numbers: dict[str, str] = {}  # symbols are called by numbers, since they have their function's name in them
        code = [
            (one.predicate, one.opcode, _SYMBOL.sub(lambda s, n=numbers: n.setdefault(s[0], str(len(n))), one.operands))
            for one in disassemble(compiled, kernel)
        ]
        found.append((code, resources(compiled, kernel)))
    return found
