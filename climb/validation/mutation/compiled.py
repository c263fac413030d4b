"""``python -m climb.validation.mutation.compiled [--machine-code] <ladder>/<rung>[@<place>] ...``: a JSON object of the
digests of the rungs' PTX, without its lines, or of their machine code, by rung and place.

A place is a size of the problem and an architecture, by numbers; without one, all are compiled. A mutant that compiles
to the same code everywhere is the same program: no test can notice it. ptxas removes more code than NVRTC, and
renumbers registers, so machine code is the same more often than PTX, but takes longer to make.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable

from climb.bench.registry import load_ladder
from climb.toolchain import Compiled, disassemble

ARCHITECTURES = ("sm_90", "sm_75")
_LINES = re.compile(r"^\s*(?:\.loc|\.file|//).*$|//.*$", re.MULTILINE)


def digests(rungs: Iterable[str], machine_code: bool = False) -> dict[str, str]:
    """Return the digests of the code of all kernels of the rungs, at the headline size and at those that tests run.

    Sizes with an empty output launch nothing, and their kernels need not even compile.
    """
    made = {}
    for name in rungs:
        name, _, asked = name.partition("@")
        ladder_name, rung_name = name.split("/")
        ladder = load_ladder(ladder_name)
        outputs = ladder.problem.outputs
        for number, size in enumerate((*ladder.problem.headline, *ladder.problem.check)):
            if any(0 in output.extents(size) for output in outputs):
                continue
            for arch in ARCHITECTURES:
                place = f"{number}-{arch}"
                if asked in ("", place) and ladder[rung_name].rung.requires(size) is None:
                    compiled = ladder[rung_name].compiled(size, arch, whole=machine_code)
                    code = (machine_code_of if machine_code else ptx_of)(compiled)
                    made[f"{name}@{place}"] = hashlib.sha256(code.encode()).hexdigest()
    return made


def ptx_of(compiled: Compiled) -> str:
    """Return the PTX without its lines."""
    return _LINES.sub("", compiled.ptx.split(".section")[0])


def machine_code_of(compiled: Compiled) -> str:
    """Return the instructions of all kernels with their places and operands."""
    return repr([
        (one.offset, one.predicate, one.opcode, one.operands)
        for kernel in compiled.kernels
        for one in disassemble(compiled, kernel)
    ])  # fmt: skip


if __name__ == "__main__":
    print(
        json.dumps(digests((name for name in sys.argv[1:] if name != "--machine-code"), "--machine-code" in sys.argv))
    )
