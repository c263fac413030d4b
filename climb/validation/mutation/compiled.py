"""``python -m climb.validation.mutation.compiled [--machine-code] <ladder>/<rung> ...``: a digest of the rungs' PTX,
without its lines, or of their machine code.

A mutant that compiles to the same code at all sizes of the problem is no other program: no test can notice it. ptxas
leaves out more than NVRTC, and gives registers numbers of its own, so machine code is the same more often than PTX.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable

from climb.bench.registry import load_ladder
from climb.toolchain import Compiled, disassemble

ARCHITECTURES = ("sm_90", "sm_75")
_LINES = re.compile(r"^\s*(?:\.loc|\.file|//).*$|//.*$", re.MULTILINE)


def digest(rungs: Iterable[str], machine_code: bool = False) -> str:
    """The digest of the code of all kernels of the rungs, at the headline size and at those that tests run."""
    made = hashlib.sha256()
    for name in rungs:
        ladder_name, rung_name = name.split("/")
        ladder = load_ladder(ladder_name)
        for size in (*ladder.problem.headline, *ladder.problem.check):
            if ladder[rung_name].rung.requires(size) is None:
                for arch in ARCHITECTURES:
                    compiled = ladder[rung_name].compiled(size, arch, whole=machine_code)
                    made.update((machine_code_of if machine_code else ptx_of)(compiled).encode())
    return made.hexdigest()


def ptx_of(compiled: Compiled) -> str:
    """The PTX without its lines."""
    return _LINES.sub("", compiled.ptx.split(".section")[0])


def machine_code_of(compiled: Compiled) -> str:
    """The instructions of all kernels with their places and operands."""
    return repr([
        (one.offset, one.predicate, one.opcode, one.operands)
        for kernel in compiled.kernels
        for one in disassemble(compiled, kernel)
    ])  # fmt: skip


if __name__ == "__main__":
    print(digest((name for name in sys.argv[1:] if name != "--machine-code"), "--machine-code" in sys.argv))
