"""Exercises: a kernel to complete in a cell, and a check that runs it on the emulator, with or without a GPU.

An exercise is defined in ``kernels/<chapter>/exercises/__init__.py``; its skeleton and its solution are the files
``<name>.cu`` and ``<name>_solution.cu`` beside it. The chapter's cell holds the skeleton's text, so that readers edit
the kernel in place::

    from kernels.coalescing.exercises import fields

    mine = r\"\"\"
    __global__ void ...
    \"\"\"
    check(mine, fields)

``climb check --cells coalescing`` prints those cells; ``drifted(notebook, exercise)`` tells a test that a cell and its
file differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.problem import Launch, Problem, Size, size_label
from climb.toolchain import Compiled, CompileError, compile_cuda


@dataclass(frozen=True)
class Finding:
    """The result of checking a claim: the value found, and whether it meets the claim."""

    right: bool
    found: str


@dataclass(frozen=True)
class Claim:
    """One property that the counters must show: of ``subject`` ("global load"), the value ``asked`` ("at most 4").

    ``test`` takes the emulator's counters and returns a :class:`Finding` ("4 sectors per request"). Among an exercise's
    ``builds``, it takes the compiled code instead: a ``Compiled``, with SASS and registers.
    """

    subject: str
    asked: str
    test: Callable[[Any], Finding]

    def check(self, measured: Any) -> Check:
        """Return the line of a verdict on counters or compiled code."""
        finding = self.test(measured)
        wrong = None if finding.right else finding.found
        return Check(self.subject, wrong, found=finding.found, asked=self.asked)


@dataclass(frozen=True)
class Exercise:
    """A kernel to complete. ``launches`` gives the launches at a size; ``sizes`` are small and awkward.

    ``claims`` and ``builds`` are checked at the last of the ``sizes``, once all results are right. ``workspace`` is as
    in :class:`Rung`. ``hints`` are two texts in Markdown: where to look, and what to change, without the code.
    """

    name: str
    problem: Problem
    launches: Callable[[Size], tuple[Launch, ...]]
    sizes: tuple[Size, ...]
    folder: Path
    claims: tuple[Claim, ...] = ()
    builds: tuple[Claim, ...] = ()
    options: tuple[str, ...] = ()
    workspace: Callable[[Size], Mapping[str, tuple[tuple[int, ...], str]]] = lambda size: {}
    hints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.sizes:
            raise ValueError(f"exercise {self.name} has no size to check")
        if len(self.hints) not in (0, 2):
            raise ValueError(
                f"exercise {self.name} has {len(self.hints)} hint(s); expected two: where to look, what to do"
            )

    @property
    def skeleton(self) -> str:
        """The kernel that the reader starts from."""
        return (self.folder / f"{self.name}.cu").read_text(encoding="utf-8")

    @property
    def solution(self) -> str:
        """The completed kernel."""
        return (self.folder / f"{self.name}_solution.cu").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Check:
    """One check, and None or what is wrong; for a claim also the value found and the value asked."""

    what: str
    wrong: str | None
    found: str = ""
    asked: str = ""

    def __str__(self) -> str:
        said = f": {self.wrong or self.found}" if self.wrong or self.found else ""
        asked = f"; asked: {self.asked}" if self.asked else ""
        return f"{'not yet: ' if self.wrong else 'right:   '}{self.what}{said}{asked}"


@dataclass(frozen=True, repr=False)
class Verdict:
    """The outcome of a check, true if everything is right. A notebook shows one line per check, and a closing line."""

    name: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(c.wrong is None for c in self.checks)

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return "\n".join([*map(str, self.checks), f"{self.name}: {'solved' if self.passed else 'not yet'}"])


def check(source: str, exercise: Exercise) -> Verdict:
    """Compile a reader's kernel, run it on the emulator at every size of the exercise, and check its counters.

    The reader's mistakes raise no error: a source that does not compile, a launch that the emulator stops, a wrong
    result and a claim that does not hold are all lines of the verdict. Stops at the first size that does not run.

    >>> check(mine, first)                                                                  # doctest: +SKIP
    right:   rows=33, cols=65
    not yet: global load: 32 sectors per request; asked: at most 4
    first: not yet
    """
    from climb.emulator import EmulatorError

    if not source.strip():
        return Verdict(exercise.name, (Check("the kernel", "there is no source yet"),))
    checks: list[Check] = []
    counted = None
    for size in exercise.sizes:
        label = size_label(size)
        try:
            outputs, counted = _run(source, exercise, size)
        except CompileError as error:
            return Verdict(exercise.name, (Check("the kernel compiles", _told(error)),))
        except EmulatorError as error:
            checks.append(Check(label, _told(error)))
            return Verdict(exercise.name, tuple(checks))
        checks.append(Check(label, _judged(outputs, exercise, size)))
    if all(c.wrong is None for c in checks):
        checks += [claim.check(counted) for claim in exercise.claims]
        if exercise.builds:
            built = _built(source, exercise)
            checks += [claim.check(built) for claim in exercise.builds]
    return Verdict(exercise.name, tuple(checks))


def at_most(kind: str, limit: float, measure: str = "sectors") -> Claim:
    """Claim that accesses of ``kind`` take at most ``limit`` ``sectors`` (or ``wavefronts``) per request.

    A kernel without any such access does not fulfil it, because it solves a different exercise.

    >>> at_most("global store", 4)                                                          # doctest: +SKIP
    """
    if measure not in ("sectors", "wavefronts"):
        raise ValueError(f"measure is '{measure}'; expected 'sectors' or 'wavefronts'")

    def test(counters: Any) -> Finding:
        found = [a for a in counters.lines if a.kind == kind]
        requests = sum(a.requests for a in found)
        if not requests:
            return Finding(False, f"the kernel makes no {kind}")
        each = sum(getattr(a, measure) for a in found) / requests
        return Finding(each <= limit, f"{each:.3g} {measure} per request")

    return Claim(kind, f"at most {limit:g}", test)


def no_bank_conflicts() -> Claim:
    """Claim that there are shared loads or stores, each with the fewest wavefronts that its bytes need."""

    def test(counters: Any) -> Finding:
        found = [a for a in counters.lines if a.kind.startswith("shared")]
        if not found:
            return Finding(False, "the kernel does not use shared memory")
        for a in found:
            if a.wavefronts > a.ideal_wavefronts:
                each, where = a.wavefronts / a.requests, f"{a.kind} in line {a.line}"
                return Finding(False, f"{where} takes {each:.3g} wavefronts per request: {a.text.strip()}")
        wavefronts, requests = (sum(getattr(a, name) for a in found) for name in ("wavefronts", "requests"))
        return Finding(True, f"{wavefronts} wavefronts, the least that {requests} requests need")

    return Claim("shared memory", "no bank conflicts", test)


def cell(exercise: Exercise, variable: str = "mine") -> str:
    """Return the code of the chapter's cell: the skeleton as text, ready to edit. Raises ValueError for three quotes in
    it."""
    if '"""' in exercise.skeleton:
        raise ValueError(f"the skeleton of {exercise.name} contains three quotes and cannot stand in a cell")
    return f'{variable} = r"""\n{exercise.skeleton.rstrip()}\n"""'


def drifted(notebook: Path, exercise: Exercise) -> bool:
    """Return whether no code cell of the chapter contains the skeleton exactly as its file has it."""
    import json

    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    text = cell(exercise).partition(" = ")[2]
    return not any(text in "".join(c["source"]) for c in cells if c["cell_type"] == "code")


def exercises_in(module: Any) -> list[Exercise]:
    """List the exercises of a chapter's module, in the order of their definitions."""
    return [value for value in vars(module).values() if isinstance(value, Exercise)]


def exhibit_reader(file: str | Path) -> Callable[[str], str]:
    """Return the function ``exhibit(name)`` of a chapter: it returns the text of
    ``kernels/<chapter>/exhibits/<name>.cu``.

    ``file`` is the ``__file__`` of ``kernels/<chapter>/exercises/__init__.py``. ``exhibit`` raises FileNotFoundError.

    >>> exhibit = exhibit_reader(__file__)                                                  # doctest: +SKIP
    """
    folder = Path(file).resolve().parents[1] / "exhibits"

    def exhibit(name: str) -> str:
        """Return the text of an exhibit of this chapter."""
        return (folder / f"{name}.cu").read_text(encoding="utf-8")

    return exhibit


def _run(source: str, exercise: Exercise, size: Size) -> tuple[dict[str, np.ndarray], Any]:
    """Launch on the emulator, with all its checks.

    Returns the outputs, which were poisoned before, and the sum of the launches' counters.
    """
    from climb.bench.checking import poisoned
    from climb.bench.counting import count_kernel
    from climb.emulator import ALL_CHECKS, checking

    problem = exercise.problem
    arrays = dict(problem.make_inputs(size, np.random.default_rng(0)))
    for argument in problem.outputs:
        arrays[argument.name] = poisoned(argument.extents(size), argument.dtype)
    for name, (shape, dtype) in exercise.workspace(size).items():
        arrays[name] = poisoned(shape, dtype)
    total = None
    for launch in exercise.launches(size):
        with checking(ALL_CHECKS):
            counted = count_kernel(
                source,
                launch.kernel,
                launch.grid,
                launch.block,
                [arrays[a] if isinstance(a, str) else a for a in launch.args],
                shared_mem=launch.shared_mem,
                options=("-std=c++17", *exercise.options),
            )
        total = counted if total is None else total + counted
    return {a.name: arrays[a.name] for a in problem.outputs}, total


def _built(source: str, exercise: Exercise) -> Compiled:
    """Compile the source, with the kernels of the last size."""
    kernels = tuple(dict.fromkeys(launch.kernel for launch in exercise.launches(exercise.sizes[-1])))
    options = ("-std=c++17", *exercise.options)
    return compile_cuda(source, filename=f"{exercise.name}.cu", options=options, name_expressions=kernels)


def _judged(outputs: Mapping[str, np.ndarray], exercise: Exercise, size: Size) -> str | None:
    """Return None if every output is right, otherwise what is wrong with the first wrong one, in one line."""
    from climb.bench.checking import compare

    problem = exercise.problem
    inputs = problem.make_inputs(size, np.random.default_rng(0))
    reference = problem.reference(inputs, size)
    for name, got in outputs.items():
        want = reference[name]
        found = compare(got, want, problem.tolerance(size))
        if not found.wrong:
            continue
        if found.unwritten == got.size:
            return f"nothing was written to {name}"
        flat = found.first_unwritten if found.first_unwritten is not None else found.first_wrong
        at = ", ".join(str(int(i)) for i in np.unravel_index(flat, got.shape))
        if found.first_unwritten is not None:
            return f"{found.unwritten} of {got.size} elements of {name} were never written, first {name}[{at}]"
        return (
            f"{found.wrong} of {got.size} elements of {name} are wrong, first {name}[{at}] "
            f"is {got.flat[flat]:.6g} instead of {want.flat[flat]:.6g}"
        )
    return None


def _told(error: Exception) -> str:
    """Return an error's message, with its further lines indented under the first."""
    return "\n         ".join(str(error).rstrip().split("\n"))
