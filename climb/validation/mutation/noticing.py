"""Choose the tests that should notice a mutant: for a rung those of the rung, for a module those that call the mutated
function.

Left out are tests that would notice by the text alone: records and counts that are fresh as long as a source's hash is
the same, rungs that must differ from each other, faults that tests plant themselves.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from climb.validation.mutation.mutants import Mutant, digest_of_files
from climb.validation.mutation.tracing import function_name

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
#: Tests that check the text, by words of their names.
BY_TEXT = ("fresh", "stale", "hash", "sha256", "planted", "fault", "same_program", "opens_with", "architecture")
#: Tests of several chapters that pick their rungs by themselves.
ACROSS = (
    "test_older_gpus.py", "test_fences.py", "test_large_indices.py", "test_moved_bits.py", "test_schedules.py",
    "test_stores.py",
)  # fmt: skip
#: Rungs that one run of pytest checks: a header may be part of a hundred, whose checks take longer than a mutant may.
AT_ONCE = 4
#: Seconds of tests, by their traced times, that are run for one mutant of a module, the quickest first.
BUDGET = 120.0


@dataclass(frozen=True)
class Stage:
    """One run of pytest: its arguments, and the tests to run if they are listed one by one."""

    arguments: tuple[str, ...]
    tests: tuple[str, ...] = ()


@dataclass(frozen=True)
class Noticing:
    """The tests of a repository at ``root``; ``calls`` is the result of ``tracing`` for the tests of modules, and
    ``named`` returns the id of the test that is named for a mutant, or ""."""

    root: Path
    calls: Mapping[str, Mapping] = field(default_factory=dict)
    named: Callable[[Mutant], str] = lambda mutant: ""

    def stages(self, mutant: Mutant) -> list[Stage]:
        """List what to run, in order, until a test fails; empty if no test reaches the mutant. A named test comes
        first: if another test kills the mutant, the entry that names the test is wrong."""
        named = self.named(mutant)
        first = [Stage((), (named,))] if named else []
        if mutant.file.startswith("kernels/"):
            return [*first, *self._stages_of_rungs(mutant.file)]
        chosen = self._tests_of(mutant)
        return [*first, Stage((), tuple(chosen))] if chosen else first

    def digest(self, mutant: Mutant, status: str, how: str) -> str:
        """Return the digest of the tests that a verdict depends on: the file of the test that failed, or every file of
        tests that may notice the mutant."""
        if status == "killed" and how.startswith("tests/"):
            return digest_of_files(self.root, {how.split("::", 1)[0]})
        if mutant.file.startswith("kernels/"):
            folders = {f"tests/kernels/{chapter}" for chapter, *_ in self.rungs_of(mutant.file)}
            files = {path.relative_to(self.root).as_posix() for name in folders for path in self._python(name)}
            return digest_of_files(self.root, {*files, *(f"tests/kernels/{name}" for name in ACROSS)})
        return digest_of_files(self.root, {test.split("::", 1)[0] for test in self._callers(mutant)})

    def _python(self, folder: str) -> list[Path]:
        return sorted((self.root / folder).glob("*.py"))

    # Rungs

    def rungs_of(self, file: str) -> list[tuple[str, str, str]]:
        """Return (chapter, ladder, rung) of every rung whose source is this file or includes it."""
        return self._rungs_by_file.get(file, [])

    @cached_property
    def _rungs_by_file(self) -> dict[str, list[tuple[str, str, str]]]:
        out: dict[str, list[tuple[str, str, str]]] = {}
        for path in sorted(self.root.glob("kernels/*/*/*.cu")):
            chapter, ladder = path.parent.parent.name, path.parent.name
            if ladder not in ("exercises", "exhibits"):
                rung = re.sub(r"^\d+_", "", path.stem)
                for file in self._closure(path):
                    out.setdefault(file.relative_to(self.root).as_posix(), []).append((chapter, ladder, rung))
        return out

    def _closure(self, path: Path) -> set[Path]:
        """Return the file and everything that it includes from the repository."""
        seen: set[Path] = set()
        waiting = [path.resolve()]
        while waiting:
            one = waiting.pop()
            if one not in seen and one.is_file() and one.is_relative_to(self.root.resolve()):
                seen.add(one)
                text = one.read_text(encoding="utf-8")
                waiting += [(one.parent / match[1]).resolve() for match in _INCLUDE.finditer(text)]
        return {self.root / one.relative_to(self.root.resolve()) for one in seen}

    def _stages_of_rungs(self, file: str) -> Iterator[Stage]:
        rungs = self.rungs_of(file)
        left_out = " and ".join(f"not {word}" for word in BY_TEXT)
        groups = [rungs[at : at + AT_ONCE] for at in range(0, len(rungs), AT_ONCE)]
        names = [" or ".join(f"{ladder}-{rung}" for _, ladder, rung in group) for group in groups]
        selected = [f"({each}) and {left_out}" for each in names]
        for group, these in zip(groups, selected, strict=True):
            if modules := [module for module in self._modules(group) if (self.root / module).is_file()]:
                yield Stage((*modules, "-k", these))
        for these in selected:
            yield Stage((*(f"tests/kernels/{name}" for name in ACROSS), "-k", these))
        for module in self._modules(rungs):
            yield Stage((str(Path(module).parent), f"--ignore={module}", "-k", left_out))

    def _modules(self, rungs: Iterable[tuple[str, str, str]]) -> list[str]:
        """Return the tests of the chapters that rungs belong to, whether or not there are any."""
        return [f"tests/kernels/{chapter}/test_rungs.py" for chapter in sorted({chapter for chapter, *_ in rungs})]

    # Modules

    def _tests_of(self, mutant: Mutant) -> list[str]:
        """Return the ids of the tests that call the mutated function, as far as the budget goes; :meth:`_ordered`
        chooses the order."""
        taken, seconds = [], 0.0
        for test in self._ordered(self._callers(mutant), mutant.file):
            seconds += self.calls[test]["seconds"]
            if taken and seconds > BUDGET:
                break
            if not any(word in test.split("::", 1)[-1] for word in ("fresh",)):
                taken.append(test)
        return taken

    def _callers(self, mutant: Mutant) -> list[str]:
        """Return the ids of all tests that call the mutated function. The top level of a module, and a function that is
        only called in another process, are not traced: for these, return the tests that call something in its package,
        and those of files that import the module."""
        function = enclosing(mutant)
        name = function_name(mutant.file, function) if function else ""
        if callers := [test for test, made in self.calls.items() if name in made["functions"]]:
            return callers
        folder = f"{Path(mutant.file).parent.as_posix()}/"  # a file of dataclasses has hardly any functions
        files = {test.split("::", 1)[0] for test in self.calls}
        near = {file for file in files if self._distance(file, mutant.file) < 2}
        return [
            test
            for test, made in self.calls.items()
            if test.split("::", 1)[0] in near or any(f.startswith(folder) for f in made["functions"])
        ]

    def _ordered(self, tests: Iterable[str], mutated: str) -> list[str]:
        """Order tests: the quickest test of every file, then the second of every file, and so on. A constant that
        thousands of tests reach is noticed by few, and those are not the quickest of all, but in a file about it. So
        the files of tests that are closest to the mutated file come first."""
        of_file: dict[str, list[str]] = {}
        for test in sorted(tests, key=lambda test: self.calls[test]["seconds"]):
            of_file.setdefault(test.split("::", 1)[0], []).append(test)
        distance = {file: self._distance(file, mutated) for file in of_file}
        ordered = []
        for each in sorted(set(distance.values())):
            turns = itertools.zip_longest(*(tests for file, tests in of_file.items() if distance[file] == each))
            ordered += [test for turn in turns for test in turn if test is not None]
        return ordered

    def _distance(self, file: str, mutated: str) -> int:
        """Return the distance of a file of tests from a module: 0 if it has the module's name, 1 if it imports the
        module, 2 if its text has the module's name, else 3."""
        module = Path(mutated).with_suffix("").parts
        *package, name = module[:-1] if module[-1] == "__init__" else module
        if Path(file).stem == f"test_{name}":
            return 0
        text, dotted = self._text(file), re.escape(".".join(package))
        names = r"(?:\([^)]*|[^\n(]*)"
        if re.search(rf"\b{dotted}\.{name}\b|\bfrom {dotted} import {names}\b{name}\b", text):
            return 1
        return 2 if re.search(rf"\b{name}\b", text) else 3

    def _text(self, file: str) -> str:
        path = self.root / file
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def expected_seconds(self, stage: Stage) -> float:
        """The time in seconds that the listed tests took when they were traced; tests that were not traced count as 0,
        and so does an empty list."""
        return sum(self.calls[test]["seconds"] for test in stage.tests if test in self.calls)


def enclosing(mutant: Mutant) -> str | None:
    """Return the qualified name of the outermost function around the mutant; None at the top level of a module or
    class."""
    line = mutant.line

    def search(body: list[ast.stmt], prefix: str) -> str | None:
        for node in body:
            if not node.lineno <= line <= (node.end_lineno or node.lineno):
                continue
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                return None if line < node.body[0].lineno and node.body[0].lineno != node.lineno else prefix + node.name
            if isinstance(node, ast.ClassDef):
                return search(node.body, f"{prefix}{node.name}.")
        return None

    return search(ast.parse(mutant.text).body, "")
