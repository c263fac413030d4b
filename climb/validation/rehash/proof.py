"""Prove that two versions of a rung are one program to the GPU."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from typing import Any

from climb.bench import identity
from climb.paths import ROOT
from climb.toolchain import compile_cuda, disassemble, resources

#: The number of processes that compile a source before two sources count as different.
TRIES = 4
#: What a rung for one architecture alone has among its options.
_ARCH = "-arch="
#: Symbols, and labels, which nvdisasm numbers across the kernels of a file.
_SYMBOL = re.compile(r"\b_Z\w+|\.L_x_\d+")


def same_tokens(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether both have the same code, options, launches and workspace by today's rule of identity."""
    return _identity(old) == _identity(new)


def same_machine_code(old: dict[str, Any], new: dict[str, Any], arch: str = "sm_90") -> str:
    """Explain why the two are not one program to the GPU; "" if every launched kernel has the same machine code.

    The comparison covers instructions with operands, registers, shared memory, spills, and launches except for kernels'
    names.
    """
    ours, theirs = ([{**launch, "kernel": ""} for launch in one["launches"]] for one in (old, new))
    if ours != theirs:
        return "its launches differ"
    if old["workspace"] != new["workspace"]:
        return "its workspace differs"
    if _machine_code(old, arch) == _machine_code(new, arch) or _variants(old, arch) & _variants(new, arch):
        return ""
    return "its machine code differs"


def _identity(point: dict[str, Any]) -> str:
    return identity.sha256(point["source"], point["options"], point["launches"], point["workspace"])


def _variants(point: dict[str, Any], arch: str) -> set[str]:
    """Return hashes of the machine code that several processes make of one source: NVRTC orders some loads by
    addresses."""
    program = (
        "import json, pathlib, sys; from climb.toolchain import cache; from climb.validation.rehash import proof; "
        "cache.FOLDER = pathlib.Path(sys.argv[1]); point, arch = json.load(sys.stdin); "
        "print(repr(proof._machine_code(point, arch)))"
    )
    given = json.dumps([{key: point[key] for key in ("source", "options", "launches")}, arch])
    found = set()
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", program, folder]
            done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, cwd=ROOT)
            found.add(done.stdout)
    return found


def _machine_code(point: dict[str, Any], arch: str) -> tuple[Any, ...]:
    """Return the code of all launched kernels, for the architecture that the options name, or else for ``arch``."""
    kernels = tuple(dict.fromkeys(launch["kernel"] for launch in point["launches"] if launch["kernel"]))
    named = [option for option in point["options"] if option.startswith(_ARCH)]
    # The plans of several GPUs have steps without a kernel, and "graph" among the options.
    options = tuple(option for option in point["options"] if option.startswith("-") and option not in named)
    arch = named[0].removeprefix(_ARCH) if named else arch
    return tuple(_kernel_code(point["source"], options, kernels, kernel, arch) for kernel in kernels)


@functools.cache
def _kernel_code(source: str, options: tuple[str, ...], kernels: tuple[str, ...], kernel: str, arch: str) -> Any:
    """Return the instructions and resources of one kernel, in a form that can be compared; points of other sizes share
    it."""
    compiled = compile_cuda(source, filename="kernel.cu", options=options, name_expressions=kernels, arch=arch)
    numbers: dict[str, str] = {}  # symbols are replaced by numbers, since they contain their function's name

    def nameless(operands: str) -> str:
        return _SYMBOL.sub(lambda symbol: numbers.setdefault(symbol[0], str(len(numbers))), operands)

    code = [(one.predicate, one.opcode, nameless(one.operands)) for one in disassemble(compiled, kernel)]
    return hash_of(code), resources(compiled, kernel)


def hash_of(code: list[tuple[str, str, str]]) -> str:
    """Return the hash of instructions; kernels may have a hundred thousand of them."""
    return hashlib.sha256(repr(code).encode()).hexdigest()
