"""``python -m climb.validation.mutation.compiled <ladder>/<rung> ...``: a digest of the rungs' PTX, without its lines.

A mutant that compiles to the same PTX at all sizes of the problem is no other program: no test can notice it.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable

from climb.bench.registry import load_ladder

ARCHITECTURES = ("sm_90", "sm_75")
_LINES = re.compile(r"^\s*(?:\.loc|\.file|//).*$|//.*$", re.MULTILINE)


def digest(rungs: Iterable[str]) -> str:
    """The digest of the PTX of all kernels of the rungs, at the headline size and at those that tests run."""
    made = hashlib.sha256()
    for name in rungs:
        ladder_name, rung_name = name.split("/")
        ladder = load_ladder(ladder_name)
        for size in (*ladder.problem.headline, *ladder.problem.check):
            if ladder[rung_name].rung.requires(size) is None:
                for arch in ARCHITECTURES:
                    ptx = ladder[rung_name].compiled(size, arch, whole=False).ptx.split(".section")[0]
                    made.update(_LINES.sub("", ptx).encode())
    return made.hexdigest()


if __name__ == "__main__":
    print(digest(sys.argv[1:]))
