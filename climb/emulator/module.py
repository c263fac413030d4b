"""Modules and kernels: from PTX text to launches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from . import ptx
from .checks import chosen
from .counters import AccessCounters, BranchCounters, Counters
from .errors import LaunchError, UnsupportedInstruction, Where
from .inline import inline
from .isa.matrix import name_all_lanes
from .isa.types import DTYPES
from .layout import lay_out
from .memory import SYMBOL_BASE, SYMBOL_RANGE, SYMBOL_RANGES, Allocation, DeviceMemory
from .named import name_barriers
from .schedule import Batch, Tallies
from .shadow_global import StartOver
from .switches import unfold
from .system import flush
from .trace import Trace
from .translate import Code, Translation
from .watch import Watch

LANES = 1 << 15  # lanes of a batch: registers of 128 KiB, which the second-level cache holds
MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_SHARED = 227 * 1024
MAX_STEPS = 2_000_000
_modules = itertools.count()
_NAME = re.compile(r"%[\w.]+")  # of a register, in a kernel's Python


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
        for variable in program.variables.values():
            for offset, name, addend, _ in variable.relocations:
                if name in self._symbols:
                    address = self._symbols[name].address + addend
                    self._symbols[variable.name].data[offset : offset + 8] = np.frombuffer(
                        address.to_bytes(8, "little"), np.uint8
                    )

    def kernel(self, name: str) -> Kernel:
        """The kernel with this (lowered) name, translated on first use.

        Raises KeyError where there is none, UnsupportedInstruction where it has an instruction that is not known.
        """
        found = self._kernels.get(name)
        if found is None:
            function = self.program.functions.get(name)
            if function is None or not function.entry or function.body is None:
                have = ", ".join(sorted(n for n, f in self.program.functions.items() if f.entry))
                raise KeyError(f"no kernel {name} in this module; it has: {have}")
            found = self._kernels[name] = Kernel(self, function)
        return found

    def symbol(self, name: str) -> Allocation:
        """The memory of a `__device__` or `__constant__` variable.

        Raises KeyError where there is none.
        """
        if name not in self._symbols:
            raise KeyError(f"no variable {name} in this module; it has: {', '.join(sorted(self._symbols))}")
        return self._symbols[name]


def _match(files: Mapping[int, str], sources: Mapping[str, str]) -> dict[str, list[str]]:
    """The lines of each file of the file table whose name, or last part of it, is that of a source given."""
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

    Raises ptx.PtxSyntaxError where the text is not PTX.
    """
    return Module(ptx.parse(text), sources or {})


class Kernel:
    """A translated kernel."""

    def __init__(self, module: Module, function: ptx.Function) -> None:
        self.module, self.name = module, function.name
        self.function = name_barriers(name_all_lanes(unfold(inline(module.program, function, self._refuse))))
        spaces = {variable.name: variable.space for variable in module.program.variables.values()}
        self.layout = lay_out(self.function, module.program.variables.values(), module._symbols, spaces)
        self.code: Code = Translation(self.function, self.layout, module.sources).run()
        self.specials = frozenset(_NAME.findall(self.code.source)) - frozenset(self.function.registers)
        self.zeros = {name: np.zeros((1, 1), DTYPES[kind]) for name, kind in self.code.kinds.items()}

    def _refuse(self, instruction: ptx.Instruction, why: str) -> NoReturn:
        raise UnsupportedInstruction.at(
            self.name,
            instruction.location,
            self.module.sources,
            f"{instruction.opcode}: {why} (in: {instruction.text})",
        )

    def line_text(self, location: ptx.Location) -> str:
        """The source line, without its indentation; empty where the source is not known."""
        lines = self.module.sources.get(location.file, ())
        return lines[location.line - 1].strip() if 0 < location.line <= len(lines) else ""

    def launch(
        self,
        grid: Sequence[int] | int,
        block: Sequence[int] | int,
        args: Sequence[bytes],
        *,
        memory: DeviceMemory,
        shared_bytes: int = 0,
        trace: Trace | None = None,
        max_steps: int = MAX_STEPS,
        checks: Iterable[str] | None = None,
    ) -> Counters:
        """Run the kernel; its counters.

        `args`: the bytes of each parameter, little endian. `shared_bytes`: dynamic shared memory. `max_steps`: how many
        basic blocks a batch of blocks may run before it is taken for an endless loop. `checks`: the faults to look for,
        see `checks`; None for those that are on.
        Raises LaunchError for a wrong launch, otherwise what the kernel does wrong, as in `errors`.
        """
        grid, block = self._extent(grid, "grid"), self._extent(block, "block")
        parameters = self._pack(args)
        threads = block[0] * block[1] * block[2]
        blocks = grid[0] * grid[1] * grid[2]
        if threads > MAX_THREADS:
            raise self._wrong(f"a block of {threads} threads; at most {MAX_THREADS} are possible")
        if self.function.max_threads and threads > self.function.max_threads:
            raise self._wrong(f"a block of {threads} threads, but __launch_bounds__ says {self.function.max_threads}")
        if any(extent > most for extent, most in zip(block, MAX_BLOCK, strict=True)):
            raise self._wrong(f"the block {block} is larger than {MAX_BLOCK}")
        if any(extent > most for extent, most in zip(grid, MAX_GRID, strict=True)):
            raise self._wrong(f"the grid {grid} is larger than {MAX_GRID}")
        total = self.layout.shared_bytes + shared_bytes
        if shared_bytes < 0 or total > MAX_SHARED:
            raise self._wrong(f"{total} bytes of shared memory; a block can have {MAX_SHARED}")
        size = max(1, LANES // threads)
        before = len(trace.accesses) if trace is not None else 0
        thorough: set[int] = set()
        while True:
            counts = Tallies(len(self.code.blocks))
            watch = Watch(chosen(checks), blocks, threads, thorough)
            try:
                with np.errstate(all="ignore"):
                    for start in range(0, blocks, size):
                        number = min(size, blocks - start)
                        Batch(
                            self,
                            grid,
                            block,
                            start,
                            number,
                            parameters,
                            memory,
                            shared_bytes,
                            counts,
                            trace,
                            max_steps,
                            watch,
                        ).run()
                return self._counters(grid, block, counts)
            except StartOver:
                watch.globals.restore()
                counts.printed.clear()
                counts.unprinted = 0
                if trace is not None:
                    del trace.accesses[before:]
            finally:
                flush(counts)

    def _extent(self, value: Sequence[int] | int, what: str) -> tuple[int, int, int]:
        given = (value,) if not isinstance(value, Sequence | np.ndarray) else tuple(value)
        if not 1 <= len(given) <= 3 or not all(isinstance(v, int | np.integer) and v >= 1 for v in given):
            raise self._wrong(f"{what} must be one to three positive integers, not {value!r}")
        return (*(int(v) for v in given), 1, 1)[:3]

    def _pack(self, args: Sequence[bytes]) -> np.ndarray:
        given, wanted = len(args), len(self.function.params)
        if given != wanted:
            raise self._wrong(f"{given} arguments given, {wanted} expected")
        out = np.zeros(self.layout.parameter_bytes, np.uint8)
        for index, (value, parameter) in enumerate(zip(args, self.function.params, strict=True)):
            nbytes = parameter.nbytes or ptx.TYPE_BYTES[parameter.type]
            if len(value) != nbytes:
                raise self._wrong(f"argument {index} has {len(value)} bytes, {nbytes} expected")
            start = self.layout.parameters[parameter.name]
            out[start : start + nbytes] = np.frombuffer(bytes(value), np.uint8)
        return out

    def _wrong(self, what: str) -> LaunchError:
        return LaunchError(f"wrong launch: {what}", Where(self.name))

    def _counters(self, grid: tuple[int, int, int], block: tuple[int, int, int], counts: Tallies) -> Counters:
        warps = threads = branches = divergent = 0
        by_line: dict[tuple, list[int]] = {}
        for one, executed, branched in zip(self.code.blocks, counts.executed, counts.branches, strict=True):
            number = len(one.instructions) + (one.branch is not None)
            warps += number * executed[0]
            threads += number * executed[1]
            if one.guard is not None and not one.predicated:
                branches += branched[0]
                divergent += branched[1]
                where = one.branch.location
                sums = by_line.setdefault((where.file, where.line), [0, 0])
                sums[0] += branched[0]
                sums[1] += branched[1]
        groups: dict[tuple, list[int]] = {}
        for (space, index), values in counts.sites.items():
            site = self.code.sites[index]
            key = (site.location.file, site.location.line, f"{space} {site.action}", site.width)
            sums = groups.setdefault(key, [0, 0, 0, 0, 0])
            for i, value in enumerate(values):
                sums[i] += value
        lines = []
        for (file, line, kind, width), (requests, lanes, achieved, ideal, same) in sorted(groups.items()):
            shared = kind.startswith("shared")
            lines.append(
                AccessCounters(
                    file,
                    line,
                    self.line_text(ptx.Location(file, line)),
                    kind,
                    width,
                    requests,
                    lanes,
                    *((0, 0, achieved, ideal) if shared else (achieved, ideal, 0, 0)),
                    same,
                )
            )
        branch_lines = tuple(
            BranchCounters(file, line, self.line_text(ptx.Location(file, line)), *sums)
            for (file, line), sums in sorted(by_line.items())
        )
        return Counters(
            self.name,
            grid,
            block,
            tuple(lines),
            branch_lines,
            warps,
            threads,
            branches,
            divergent,
            counts.barriers,
            files=self.module.sources,
        )
