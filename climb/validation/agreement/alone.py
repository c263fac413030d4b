"""Compile a rung in a process that compiles nothing else.

The order in which NVRTC emits neighbouring instructions may depend on what its process has compiled before. Counts were
made of the PTX of one process, so where this process has made another, the rung is compiled once more by itself.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

from climb.bench.ladder import BoundRung
from climb.bench.problem import Size
from climb.bench.registry import load_ladder
from climb.paths import IMPORT_ROOT
from climb.toolchain import Compiled, cache


def compiled_alone(rung: BoundRung, size: Size) -> Compiled:
    """Return the rung's code, PTX and machine code, as a new process makes it without any cache.

    Raises subprocess.CalledProcessError if it does not compile.
    """
    program = f"import sys; from {__name__} import main; main(*sys.argv[1:])"
    command = [sys.executable, "-c", program, rung.ladder.name, rung.name, json.dumps(dict(size))]
    made = subprocess.run(command, cwd=IMPORT_ROOT, stdout=subprocess.PIPE, check=True).stdout
    return pickle.loads(made)  # written by our own process


def main(ladder: str, rung: str, size: str) -> None:
    """Write the pickled code to standard output."""
    cache.FOLDER = None
    compiled = load_ladder(ladder)[rung].compiled(json.loads(size))
    _ = compiled.cubin  # made here, not where it is read
    sys.stdout.buffer.write(pickle.dumps(compiled))
