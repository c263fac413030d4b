"""Modules: from PTX text to kernels and variables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from climb.toolchain.names import demangled

from .. import ptx
from ..memory.device_memory import SYMBOL_BASE, SYMBOL_RANGE, SYMBOL_RANGES, Allocation, DeviceMemory
from ..ptx.call_graph import CallGraph
from ..translation.translate import translate
from .kernel import Kernel

_modules = itertools.count()


class Module:
    """A loaded PTX module. `memory` holds its variables."""

    def __init__(self, program: ptx.Program, sources: Mapping[str, str]) -> None:
        self.program = program
        self.sources = _match(program.files, sources)
        self.memory = DeviceMemory(SYMBOL_BASE + next(_modules) % SYMBOL_RANGES * SYMBOL_RANGE)
        self._symbols: dict[str, Allocation] = {}
        self._kernels: dict[str, Kernel] = {}
        for variable in program.variables.values():
            if variable.space in ("global", "const") and variable.nbytes:
                found = self._symbols[variable.name] = self.memory.allocate(variable.nbytes, variable.name)
                if variable.initial:
                    found.data[:] = np.frombuffer(variable.initial, np.uint8)
        # A function has an address, but nothing can be read there.
        self._functions = {
            name: self.memory.allocate(0, f"function {demangled(name)}") for name in CallGraph(program).addressed
        }
        symbols = self._symbols | self._functions
        for variable in program.variables.values():
            for offset, name, addend, _ in variable.relocations:
                if name in symbols:
                    address = symbols[name].address + addend
                    self._symbols[variable.name].data[offset : offset + 8] = np.frombuffer(
                        address.to_bytes(8, "little"), np.uint8
                    )

    def kernel(self, name: str) -> Kernel:
        """The kernel with this (lowered) name, translated on first use.

        Raises KeyError if there is none, UnsupportedInstruction if it has an instruction that is not supported.
        """
        found = self._kernels.get(name)
        if found is None:
            function = self.program.functions.get(name)
            if function is None or not function.entry or function.body is None:
                have = ", ".join(sorted(n for n, f in self.program.functions.items() if f.entry))
                raise KeyError(f"no kernel {name} in this module; it has: {have}")
            translated = translate(self.program, function, self.memory, self._symbols | self._functions, self.sources)
            found = self._kernels[name] = Kernel(translated)
        return found

    @property
    def symbols(self) -> Mapping[str, Allocation]:
        """The memory of all `__device__` and `__constant__` variables, by name."""
        return self._symbols

    def symbol(self, name: str) -> Allocation:
        """The memory of a `__device__` or `__constant__` variable. Raises KeyError if there is none."""
        if name not in self._symbols:
            raise KeyError(f"no variable {name} in this module; it has: {', '.join(sorted(self._symbols))}")
        return self._symbols[name]


def _match(files: Mapping[int, str], sources: Mapping[str, str]) -> dict[str, list[str]]:
    """The lines of each file in the file table that matches a source, by its whole name or by the last part."""
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
    return Module(ptx.parse(text), sources or {})
