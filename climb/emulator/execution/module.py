"""Modules: from PTX text to kernels and variables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from climb.toolchain.names import demangled

from .. import ptx
from ..memory.device_memory import SYMBOL_BASE, SYMBOL_RANGE, SYMBOL_RANGES, Allocation, DeviceMemory
from ..ptx.call_graph import CallGraph
from ..translation import cache
from ..translation.object_code import ObjectCode, link
from ..translation.translate import translate
from .jobs import Origin
from .kernel import Kernel

_modules = itertools.count()


@dataclass(frozen=True)
class Outline:
    """The declarations of a module: its variables, file table and kernels, and the functions whose address it takes."""

    variables: dict[str, ptx.Variable]
    files: dict[int, str]
    kernels: tuple[str, ...]
    addressed: tuple[str, ...]

    @classmethod
    def of(cls, program: ptx.Program) -> Outline:
        """Return the outline of a parsed module."""
        entries = (name for name, one in program.functions.items() if one.entry and one.body is not None)
        return cls(program.variables, program.files, tuple(sorted(entries)), CallGraph(program).addressed)


class Module:
    """A loaded PTX module. `memory` holds its variables.

    The text is parsed if this emulator has not translated all of it before; see `translation.cache`.
    """

    def __init__(self, text: str, sources: Mapping[str, str]) -> None:
        self._text = text
        outline = self._outline = cache.keep(cache.name_of(text), lambda: Outline.of(self._program))
        self.sources = _match(outline.files, sources)
        self._base = SYMBOL_BASE + next(_modules) % SYMBOL_RANGES * SYMBOL_RANGE
        self.memory = DeviceMemory(self._base)
        self._symbols: dict[str, Allocation] = {}
        self._kernels: dict[str, Kernel] = {}
        for variable in outline.variables.values():
            if variable.space in ("global", "const") and variable.nbytes:
                found = self._symbols[variable.name] = self.memory.allocate(variable.nbytes, variable.name)
                if variable.initial:
                    found.data[:] = np.frombuffer(variable.initial, np.uint8)
        # A function has an address, but nothing can be read there.
        self._functions = {name: self.memory.allocate(0, f"function {demangled(name)}") for name in outline.addressed}
        symbols = self._symbols | self._functions
        for variable in outline.variables.values():
            for offset, name, addend, _ in variable.relocations:
                if name in symbols:
                    address = symbols[name].address + addend
                    self._symbols[variable.name].data[offset : offset + 8] = np.frombuffer(
                        address.to_bytes(8, "little"), np.uint8
                    )

    @cached_property
    def _digest(self) -> str:
        """A digest of the text and sources from which all kernels of the module are made."""
        return cache.name_of(self._text, sorted(self.sources.items()))

    @cached_property
    def _program(self) -> ptx.Program:
        return ptx.parse(self._text)

    def kernel(self, name: str) -> Kernel:
        """Return the kernel with this (lowered) name, translated on first use.

        Raises KeyError if there is none, UnsupportedInstruction if it has an instruction that is not supported.
        """
        found = self._kernels.get(name)
        if found is None:
            if name not in self._outline.kernels:
                raise KeyError(f"no kernel {name} in this module; it has: {', '.join(self._outline.kernels)}")
            key = cache.name_of(self._digest, name)
            code = cache.keep(key, lambda: self._translate(name))
            linked = link(code, self.memory, self._base, self.sources)
            found = self._kernels[name] = Kernel(linked, Origin(key, self._base))
        return found

    def _translate(self, name: str) -> ObjectCode:
        symbols = {key: one.address - self._base for key, one in (self._symbols | self._functions).items()}
        return translate(self._program, self._program.functions[name], symbols, self.sources)

    @property
    def symbols(self) -> Mapping[str, Allocation]:
        """The memory of all `__device__` and `__constant__` variables, by name."""
        return self._symbols

    def symbol(self, name: str) -> Allocation:
        """Return the memory of a `__device__` or `__constant__` variable. Raises KeyError if there is none."""
        if name not in self._symbols:
            raise KeyError(f"no variable {name} in this module; it has: {', '.join(sorted(self._symbols))}")
        return self._symbols[name]


def _match(files: Mapping[int, str], sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the lines of each file in the file table that matches a source, by its whole name or by the last part."""
    lines = {name: text.splitlines() for name, text in sources.items()}
    short = {name.rsplit("/", 1)[-1]: text for name, text in lines.items()}
    out = {}
    for file in files.values():
        found = lines.get(file, short.get(file.rsplit("/", 1)[-1]))
        if found is not None:
            out[file] = found
    return out


def load(text: str, sources: Mapping[str, str] | None = None) -> Module:
    """Load a PTX module. `sources` maps file names to their text, for messages and counters.

    Raises ptx.PtxSyntaxError if the text is not PTX.
    """
    return Module(text, sources or {})
