"""Describe a foreign program as data, so that the emulator and a GPU can both run it.

The sources are in ``sources/``. ``-DFAULT=n`` plants the n-th fault of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from climb.emulator import EmulatorError
from climb.toolchain import Compiled, compile_cuda

SOURCES = Path(__file__).with_name("sources")

#: The effect of a planted fault: an error of the emulator, or a wrong result.
Outcome = type[BaseException] | tuple[type[BaseException], ...]
WRONG = AssertionError


@dataclass(frozen=True, eq=False)
class Empty:
    """An output that is uninitialised before the first launch."""

    shape: tuple[int, ...]
    dtype: type


@dataclass(frozen=True)
class Launch:
    """One launch: arrays are device buffers, NumPy scalars and Python numbers (int32, float32) are passed by value."""

    kernel: str
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    args: tuple[object, ...]
    shared: int = 0


@dataclass(frozen=True)
class Expected:
    """The value of a buffer after the last launch; exact if both tolerances are 0."""

    buffer: np.ndarray | Empty
    value: np.ndarray
    atol: float = 0.0
    rtol: float = 0.0

    def check(self, found: np.ndarray) -> None:
        value = np.asarray(self.value)
        assert found.size == value.size, f"expected {value.size} elements, found {found.size}"
        np.testing.assert_allclose(found.reshape(value.shape), value, atol=self.atol, rtol=self.rtol)


@dataclass(frozen=True)
class Steps:
    """The launches of a program, in order, and their expected results."""

    launches: list[Launch]
    expected: list[Expected]


@dataclass(frozen=True)
class Program:
    """A program of a project. ``origin`` names the file whose idea it follows."""

    name: str
    file: str
    project: str
    origin: str
    make: Callable[[np.random.Generator], Steps]
    faults: Mapping[int, Outcome] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    thorough: bool = False

    def steps(self) -> Steps:
        """Draw the same inputs at every call."""
        return self.make(np.random.default_rng(7))

    def source(self) -> str:
        """The CUDA of the program's file."""
        return (SOURCES / f"{self.file}.cu").read_text(encoding="utf-8")

    def compiled(self, fault: int = 0) -> Compiled:
        """Return the program's file, compiled with one planted fault, or with none."""
        return _compiled(self.source(), f"{self.file}.cu", fault, self.names)


@lru_cache(maxsize=4)
def _compiled(source: str, filename: str, fault: int, names: tuple[str, ...]) -> Compiled:
    return compile_cuda(source, filename=filename, options=(f"-DFAULT={fault}",), name_expressions=names)


PROGRAMS: dict[str, Program] = {}


class Project:
    """A public project; its programs are functions decorated with it."""

    def __init__(self, name: str, file: str) -> None:
        self.name, self.file = name, file

    def __call__(
        self, origin: str, faults: Mapping[int, Outcome] | None = None, **more: object
    ) -> Callable[[Callable[[np.random.Generator], Steps]], Program]:
        def register(make: Callable[[np.random.Generator], Steps]) -> Program:
            name = make.__name__
            assert name not in PROGRAMS, name
            PROGRAMS[name] = Program(name, self.file, self.name, origin, make, faults or {}, **more)
            return PROGRAMS[name]

        return register


def launch(kernel: str, grid: int | tuple, block: int | tuple, *args: object, shared: int = 0) -> Launch:
    return Launch(kernel, grid, block, args, shared)


def empty(*shape: int, dtype: type = np.float32) -> Empty:
    return Empty(shape, dtype)


def close(buffer: np.ndarray | Empty, value: np.ndarray, atol: float = 1e-5, rtol: float = 1e-5) -> Expected:
    return Expected(buffer, value, atol, rtol)


def exact(buffer: np.ndarray | Empty, value: np.ndarray) -> Expected:
    return Expected(buffer, value)


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def integers(rng: np.random.Generator, low: int, high: int, *shape: int, dtype: type = np.int32) -> np.ndarray:
    return rng.integers(low, high, shape).astype(dtype)


def words(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(0, 2**32, shape, np.uint32)


__all__ = [
    "PROGRAMS", "WRONG", "Empty", "EmulatorError", "Expected", "Launch", "Outcome", "Program", "Project", "Steps",
    "close", "empty", "exact", "floats", "integers", "launch", "words",
]  # fmt: skip
