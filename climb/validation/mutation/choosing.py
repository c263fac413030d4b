"""Choose the mutants to run: drawn with a seed, file by file in turn, so that long files do not take most of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest
from pathlib import Path

from climb.validation.mutation import cuda, python
from climb.validation.mutation.mutants import Mutant
from climb.validation.mutation.same_python import same_program

#: Files of each area, as patterns from the repository's root.
AREAS = {
    "rungs": ("kernels/*/*/*.cu", "kernels/**/*.cuh"),
    "bench": ("climb/bench/**/*.py",),
    "emulator": ("climb/emulator/**/*.py",),
}
#: Not part of a ladder: wrong on purpose, or checked by their own tests.
_NOT_RUNGS = ("exercises", "exhibits")
#: Modules of a package that are run by hand and time themselves, or that only a GPU can run.
_NOT_LIBRARY = ("__main__.py", "bench.py", "speed.py", "cold.py", "cub.py", "cublas.py", "cublaslt.py", "cudnn.py",
                "cudnn_graph.py", "cufft_callbacks.py", "cusparselt.py", "cutensor.py", "cutlass.py", "frameworks.py",
                "npp.py", "triton_kernels.py", "triton_peers.py", "unfolded.py")  # fmt: skip


def files_of(root: Path, area: str) -> list[str]:
    """Return the files of an area, from the root, in alphabetical order."""
    found = {path.relative_to(root) for pattern in AREAS[area] for path in root.glob(pattern)}
    kept = (path for path in found if not set(path.parts) & set(_NOT_RUNGS) and path.name not in _NOT_LIBRARY)
    return sorted(path.as_posix() for path in kept)


def mutants_of(root: Path, file: str) -> list[Mutant]:
    """Return every mutant of a file."""
    text = (root / file).read_text(encoding="utf-8")
    made = python.mutants(file, text) if file.endswith(".py") else cuda.mutants(file, text)
    return sorted(made, key=lambda mutant: (mutant.start, mutant.end, mutant.new))


def mutants_of_entries(root: Path, entries: Iterable[tuple[str, str, str]]) -> Iterator[Mutant]:
    """Return the mutants of (file, original lines, mutated lines), at every place where these lines occur."""
    lines_of: dict[str, set[tuple[str, str]]] = {}
    for file, original, mutated in entries:
        lines_of.setdefault(file, set()).add((original, mutated))
    for file, lines in sorted(lines_of.items()):
        yield from (one for one in mutants_of(root, file) if (one.original_line, one.mutated_line) in lines)


def drawn(root: Path, files: Iterable[str], seed: int) -> Iterator[Mutant]:
    """Return all mutants of the files, one of each file in turn; the same for the same texts and seed.

    Within a file the operators take turns too, in an order of their own in each: barriers are few and matter most.
    """
    columns = []
    names = sorted(files)
    random.Random(seed).shuffle(names)
    for file in names:
        draw = random.Random(f"{seed} {file}")
        by_operator: dict[str, list[Mutant]] = {}
        for mutant in mutants_of(root, file):
            by_operator.setdefault(mutant.operator, []).append(mutant)
        operators = list(by_operator.values())
        draw.shuffle(operators)
        for mutants in operators:
            draw.shuffle(mutants)
        columns.append(list(_in_turn(operators)))
    return _in_turn(columns)


def _in_turn(columns: Iterable[Iterable[Mutant]]) -> Iterator[Mutant]:
    """Yield the first of each column, then the second of each, and so on."""
    return (mutant for mutant in chain.from_iterable(zip_longest(*columns)) if mutant is not None)


def drawn_of_areas(root: Path, areas: Iterable[str], seed: int) -> Iterator[Mutant]:
    """Yield mutants of several areas in turn, without those of Python that do not compile or are the same program.

    Only a compiler can tell if a mutant of a kernel is the same program: ``running`` finds out if no test fails.
    """
    mutants = _in_turn(drawn(root, files_of(root, area), seed) for area in areas)
    return (mutant for mutant in mutants if not (mutant.file.endswith(".py") and _is_no_mistake(mutant)))


def _is_no_mistake(mutant: Mutant) -> bool:
    """Return whether a mutant of a Python file does not compile, or is the same program."""
    try:
        return same_program(mutant)
    except SyntaxError:
        return True
