"""Compile the rungs of a run before its first sample, in processes side by side.

Each process compiles modules that the measuring process will need, by the same call, and CuPy keeps them on disk. The
measuring process then reads machine code that the same compiler has made from the same source with the same options. A
missing module is compiled when it is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from climb.bench import cuda
from climb.bench.ladder import kernel_names, make_module
from climb.bench.processes import end_with_parent
from climb.bench.progress import say
from climb.bench.registry import load_ladder
from climb.paths import IMPORT_ROOT

#: A process takes seconds to start, in which it could compile a few modules; each holds half a gigabyte of the GPU.
_LEAST_MODULES, _MOST_PROCESSES = 8, 14


class Program(NamedTuple):
    """The inputs of one module: a CUDA file, the compiler options and the names of its kernels."""

    path: str
    options: tuple[str, ...]
    names: tuple[str, ...]


class _Target(Protocol):
    ladder: str
    kind: str
    name: str
    size: dict[str, int | str]


def programs(targets: Iterable[_Target]) -> list[Program]:
    """List the modules that measuring these targets in this order will compile, each once."""
    known: set[tuple[str, str, str]] = set()
    found: dict[Program, None] = {}
    for target in targets:
        if target.kind != "rung":
            continue
        bound = load_ladder(target.ladder)[target.name]
        names = kernel_names(bound.rung.launches(target.size))
        missing = tuple(name for name in names if (target.ladder, target.name, name) not in known)
        known |= {(target.ladder, target.name, name) for name in missing}
        if missing:
            found[Program(str(bound.path), bound.options, missing)] = None
    return list(found)


def compile_ahead(targets: Iterable[_Target]) -> None:
    """Compile what these targets need, and say how long it took. Does nothing if kernels are not run by CuPy."""
    if cuda.backend != "cupy" or os.environ.get("CUPY_CACHE_IN_MEMORY", "0") not in ("", "0"):
        return
    needed = programs(targets)
    count = min((os.cpu_count() or 1) - 2, len(needed) // _LEAST_MODULES, _MOST_PROCESSES)
    if count < 2:
        return
    start = time.monotonic()
    # Neighbours are alike: each process gets some of every ladder.
    made = _in_processes([needed[first::count] for first in range(count)])
    taken = time.monotonic() - start
    say(f"{made} of {len(needed)} modules compiled ahead in {taken:.1f} s")


def _in_processes(shares: Sequence[Sequence[Program]]) -> int:
    """Return how many modules were compiled. A module that fails here fails again, with its message, when it is
    measured."""
    command = [sys.executable, "-m", "climb.bench.compile_ahead"]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with contextlib.ExitStack() as stack:
        children = []
        for share in shares:
            child = stack.enter_context(subprocess.Popen(command, cwd=IMPORT_ROOT, **options))  # type: ignore[call-overload]
            stack.callback(child.kill)
            child.stdin.write(json.dumps(share))
            child.stdin.close()
            children.append(child)
        return sum(len(child.stdout.read().split()) for child in children)


def main() -> int:
    """Compile the modules that standard input lists; print a line for each."""
    for path, options, names in json.load(sys.stdin):
        with contextlib.suppress(Exception):
            make_module(Path(path), tuple(options), tuple(names)).compile()
            print(1, flush=True)
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main())
