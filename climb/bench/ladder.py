"""A ladder: a problem with its rungs in order, and the one way to launch them.

``ladder["padded"](a)`` checks the arguments, allocates the output and the workspace, launches, and returns the
output. Chapters, tests and records all launch through here, so each launch configuration is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import arguments, identity
from climb.bench.binding import bound
from climb.bench.cuda import cp
from climb.bench.identity import expand_includes
from climb.bench.launching import in_order, starter
from climb.bench.problem import Launch, Peer, Problem, Rung, RungUnavailable, Size
from climb.toolchain import Compiled, check_syntax, compile_cuda, one_text
from climb.toolchain.occupancy import MULTIPROCESSORS

_STANDARD = ("-std=c++17",)

#: The options that CuPy adds to everything it compiles on a GPU: subnormal float32 numbers become zero.
CUPY_OPTIONS = ("-ftz=true",)

#: The regimes in which every ladder is measured.
REGIMES = ("cold", "batch")


@dataclass(frozen=True)
class BoundRung:
    """A rung in its ladder: source, compiled forms, and checked launches."""

    ladder: Ladder
    rung: Rung

    @property
    def name(self) -> str:
        return self.rung.name

    @property
    def idea(self) -> str:
        return self.rung.idea

    @property
    def path(self) -> Path:
        """The rung's ``.cu`` file."""
        if self.rung.source:
            return (self.ladder.folder / self.rung.source).resolve()
        return self.ladder.folder / f"{self.ladder.names.index(self.name) + 1:02d}_{self.name}.cu"

    @property
    def source(self) -> str:
        """The text of the rung's file."""
        return self.path.read_text(encoding="utf-8")

    @property
    def previous(self) -> BoundRung | None:
        """The rung before this one, or None for the first."""
        position = self.ladder.names.index(self.name)
        return self.ladder[self.ladder.names[position - 1]] if position else None

    @property
    def options(self) -> tuple[str, ...]:
        """The compiler's options, except the include directories, which depend on the machine."""
        own = (f"-arch={self.rung.arch}",) if self.rung.arch else ()
        return (*_STANDARD, *own, *self.rung.options)

    def launches(self, size: Size) -> tuple[Launch, ...]:
        """The launches at this size. Raises ArgumentError if the rung does not take it."""
        arguments.check_supported(self.ladder.problem, self.rung, size)
        return self.rung.launches(size)

    def sha256(self, size: Size, text: str | None = None) -> str:
        """The hash of what is measured at this size: code, options and launches, by the rule of ``identity``.

        ``text`` is the source with all includes; pass it to avoid reading the files again for each size.
        """
        return identity.sha256(
            expand_includes(self.path) if text is None else text,
            self.options,
            [launch.as_json() for launch in self.launches(size)],
            {name: [list(shape), dtype] for name, (shape, dtype) in self.rung.workspace(size).items()},
        )

    def compiled(self, size: Size, arch: str = "sm_90", whole: bool = True) -> Compiled:
        """Compile the kernels used at this size, without a GPU, to PTX and to the cubin that SASS is read from.

        A rung that names an architecture is compiled for it. One run of the compiler makes both; without ``whole``, the
        cubin, which takes longer than the PTX, is made at its first use.
        """
        return compile_cuda(self.source, **self._text(size), arch=self.rung.arch or arch, whole=whole)

    def check_syntax(self, size: Size, arch: str) -> None:
        """Check with only the compiler's front end whether the kernels used at this size are valid for ``arch``.

        Raises CompileError if they are not.
        """
        check_syntax(self.source, **self._text(size), arch=self.rung.arch or arch)

    def _text(self, size: Size) -> dict[str, Any]:
        """The arguments that the compiler gets beside the source."""
        return {
            "filename": one_text.name_of(self.path),
            "options": (*_STANDARD, *self.rung.options),
            "name_expressions": kernel_names(self.rung.launches(size)),
            "include_dirs": (str(self.path.parent),),
        }

    def lacks(self, capability: str, size: Size) -> str | None:
        """Say what a GPU of this compute capability, e.g. ``"75"``, lacks to run the rung at this size; None if
        nothing.

        For a GPU that is not yet in the tables of ``climb.toolchain.occupancy``, only the compute capability is
        checked.
        """
        has = f"{capability[:-1]}.{capability[-1]}"
        needed = self.rung.capability
        if tuple(map(int, has.split("."))) < tuple(map(int, needed.split("."))):
            return f"it needs compute capability {needed}, and this GPU has {has}"
        if self.rung.arch and self.rung.arch != f"sm_{capability}a":
            return f"it is made for {self.rung.arch} alone, and this GPU has compute capability {has}"
        shared = max((launch.shared_mem for launch in self.launches(size)), default=0)
        sm = MULTIPROCESSORS.get(f"sm_{capability}")
        if sm is not None and shared > sm.shared_per_block:
            return (
                f"a block needs {shared} bytes of shared memory, and compute capability {has} allows "
                f"{sm.shared_per_block}"
            )
        return None

    def __call__(self, *inputs: Any, out: Any = None, **parameters: int) -> Any:
        """Launch on arrays of the device and return the output (a tuple if the problem has several).

        Inputs come in the problem's order; ``out`` is used instead of a new array if given. Raises ArgumentError before
        anything runs if the problem or the rung does not take an argument.
        """
        problem = self.ladder.problem
        if len(inputs) != len(problem.inputs):
            names = ", ".join(a.name for a in problem.inputs)
            raise arguments.ArgumentError(
                f"{problem.name} takes {len(problem.inputs)} input(s) ({names}), got {len(inputs)}"
            )
        arrays = dict(zip((a.name for a in problem.inputs), inputs, strict=True))
        for name, array in arrays.items():
            arguments.check_device(name, array, cp.ndarray, "cp")
        size = arguments.solve_size(problem, arrays, parameters)
        given = out if isinstance(out, tuple) else (out,) * (out is not None)
        if given and len(given) != len(problem.outputs):
            raise arguments.ArgumentError(
                f"{problem.name} has {len(problem.outputs)} output(s), got {len(given)} in out"
            )
        for position, argument in enumerate(problem.outputs):
            array = given[position] if given else cp.empty(argument.extents(size), dtype=argument.dtype)
            arguments.check_device(argument.name, array, cp.ndarray, "cp")
            arrays[argument.name] = array
        self.prepare(arrays, size)()
        results = tuple(arrays[a.name] for a in problem.outputs)
        return results[0] if len(results) == 1 else results

    def prepare(self, arrays: Mapping[str, Any], size: Size) -> Callable[[], None]:
        """Check, compile and allocate now; return a function that only launches, on the current stream.

        ``arrays`` holds every argument of the problem by name. Raises ArgumentError, and RungUnavailable on a GPU that
        cannot run the rung.
        """
        problem = self.ladder.problem
        arguments.check_supported(problem, self.rung, size)
        for argument in problem.arguments:
            arguments.check_device(argument.name, arrays[argument.name], cp.ndarray, "cp")
            arguments.check_array(problem, self.rung, argument, arrays[argument.name], size)
        arguments.check_no_overlap(arrays, problem.outputs)
        if reason := self.lacks(cp.cuda.Device().compute_capability, size):
            raise RungUnavailable(f"rung '{self.name}' of {self.ladder.name}: {reason}")
        if any(0 in a.extents(size) for a in problem.outputs):
            return lambda: None
        scratch = {n: cp.empty(s, dtype=d) for n, (s, d) in self.rung.workspace(size).items()}
        everything = {**arrays, **scratch}
        launches = self.rung.launches(size)
        functions = self._functions(launches)
        packed = [tuple(bound(a, everything) for a in launch.args) for launch in launches]
        started = in_order(
            launches,
            [
                starter(function, launch, args)
                for function, launch, args in zip(functions, launches, packed, strict=True)
            ],
        )

        def launch_all() -> None:
            for start in started:
                start()

        # A launch owns the arrays that it gets as pointers, but a tensor map is bytes: it does not own its array.
        launch_all.arrays = everything  # type: ignore[attr-defined]
        return launch_all

    def _functions(self, launches: Sequence[Launch]) -> list[Any]:
        return compiled_functions(self.ladder.modules, self.name, self.path, self.options, launches)


def compiled_functions(
    modules: dict[tuple[str, str], Any], owner: str, path: Path, options: tuple[str, ...], launches: Sequence[Launch]
) -> list[Any]:
    """Return the kernel of each launch, from a CUDA file. ``modules`` keeps compiled modules, by owner and kernel.

    Kernels that were not compiled before are compiled together: each run of the compiler reads the whole source, even
    for a few kernels.
    """
    missing = tuple(name for name in kernel_names(launches) if (owner, name) not in modules)
    if missing:
        module = make_module(path, options, missing)
        modules.update({(owner, name): module for name in missing})
    functions = [modules[owner, launch.kernel].get_function(launch.kernel) for launch in launches]
    for function, launch in zip(functions, launches, strict=True):
        if launch.shared_mem > 48 * 1024:
            function.max_dynamic_shared_size_bytes = launch.shared_mem
    return functions


def make_module(path: Path, options: tuple[str, ...], names: tuple[str, ...]) -> Any:
    """Return the module of some kernels of a CUDA file, which is compiled at its first use."""
    code = expand_includes(path)
    one_text.remember(code, path)
    return cp.RawModule(code=code, options=options, name_expressions=names)


class Rungs:
    """The parts that every ladder has: a ``problem`` with a name, and ``rungs`` with distinct names, in order."""

    problem: Any
    rungs: tuple[Any, ...]

    def __post_init__(self) -> None:
        repeated = {n for n in self.names if self.names.count(n) > 1}
        if repeated:
            raise ValueError(f"ladder {self.name}: two rungs are called {sorted(repeated)}")

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def names(self) -> tuple[str, ...]:
        """The rungs' names, first to last."""
        return tuple(rung.name for rung in self.rungs)

    @cached_property
    def modules(self) -> dict[tuple[str, str], Any]:
        """Compiled modules by owner and kernel, kept for the life of the process."""
        return {}

    def inputs(self, size: Size, seed: int = 0) -> dict[str, np.ndarray]:
        """Return the problem's random inputs on the host, the same for the same seed."""
        return self.problem.make_inputs(size, np.random.default_rng(seed))

    def _rung(self, name: str) -> Any:
        for rung in self.rungs:
            if rung.name == name:
                return rung
        raise KeyError(f"ladder {self.name} has no rung '{name}'; it has {', '.join(self.names)}")


@dataclass(frozen=True)
class Ladder(Rungs):
    """A problem with its rungs in order, its peers, and the ceiling that it defines, if any.

    ``ceiling`` names the ceiling of the GPU that the ladder's fastest rung measures, ``copy_gb_s`` say, at
    ``ceiling_sizes``; without those, at the headline size with most work (``climb.bench.ceilings``).
    ``regimes`` are the regimes in which it is measured, cold first; ``climb.bench.measure`` defines them.
    """

    problem: Problem
    folder: Path
    rungs: tuple[Rung, ...]
    peers: tuple[Peer, ...] = ()
    ceiling: str | None = None
    ceiling_sizes: tuple[Size, ...] = ()
    regimes: tuple[str, ...] = REGIMES

    def __getitem__(self, name: str) -> BoundRung:
        return BoundRung(self, self._rung(name))

    def __iter__(self) -> Iterator[BoundRung]:
        return (BoundRung(self, rung) for rung in self.rungs)


def kernel_names(launches: Sequence[Launch]) -> tuple[str, ...]:
    """Return the names of the kernels of some launches, each once."""
    return tuple(dict.fromkeys(launch.kernel for launch in launches))
