"""A kernel that can be launched."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from climb.toolchain.names import demangled

from .. import ptx
from ..checks.dependent_launches import chain_of, lets_next_start, starts_early
from ..checks.enabled import LAUNCHES, chosen
from ..checks.global_shadow import RestartLaunch
from ..checks.hooks import LaunchChecks
from ..counters.counters import Counters
from ..counters.events import BlockTrace
from ..counters.summary import summarize
from ..counters.trace import Trace
from ..errors import EmulatorError, KernelWarning, LaunchError, Where
from ..memory.device_memory import DeviceMemory
from ..runtime.heap import note_leaks, restore_heap
from ..runtime.system_calls import print_output
from ..simt.block_order import BlockOrder
from ..simt.code import Code, TranslatedKernel
from ..simt.launch_counts import LaunchCounts
from .ahead import Experience, run
from .batches import MOST_LANES, Batches, batch_size
from .cooperative import make_workspace, resident_blocks
from .jobs import Origin
from .processes import pool
from .schedules import Schedule, current
from .workers import commutes, independent, number_of_workers, waits_for_blocks

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_SHARED = 227 * 1024
MAX_DECLARED = 48 * 1024
MAX_CLUSTER = 8
REGISTERS = 1 << 16
MAX_STEPS = 2_000_000


class Kernel:
    """A kernel that can be launched. `Module.kernel` makes it."""

    def __init__(self, translated: TranslatedKernel, origin: Origin) -> None:
        self._translated, self._origin = translated, origin
        self._experience = Experience()

    @property
    def name(self) -> str:
        """The lowered name."""
        return self._translated.name

    @property
    def parameters(self) -> list[ptx.Variable]:
        """The parameters, as PTX declares them."""
        return self._translated.function.params

    @property
    def code(self) -> Code:
        """The translated code."""
        return self._translated.code

    def launch(
        self,
        grid: Sequence[int] | int,
        block: Sequence[int] | int,
        args: Sequence[bytes],
        *,
        memory: DeviceMemory,
        shared_bytes: int = 0,
        trace: Trace | BlockTrace | None = None,
        max_steps: int = MAX_STEPS,
        checks: Iterable[str] | None = None,
        cooperative: bool = False,
        registers: int = 0,
        cluster: Sequence[int] | int | None = None,
        schedule: Schedule | None = None,
        dependent: bool | None = None,
    ) -> Counters:
        """Run the kernel and return its counters.

        `args`: the bytes of each parameter, little endian. `shared_bytes`: the size of dynamic shared memory.
        `max_steps`: the number of basic blocks that a batch may run before it counts as an endless loop. `checks`: the
        optional checks to make, see `checks.enabled`; None for the current ones. A `cooperative` launch runs all blocks
        at the same time, so that they can wait for each other; `registers` per thread, 0 if not known, tell whether
        they fit on the GPU. A launch that is not cooperative runs them so if they fit and the kernel has a load that
        acquires what other blocks wrote. `cluster`: the blocks of a cluster, as the launch attribute gives them; None
        for those of `__cluster_dims__`. `schedule`: an order of warps, blocks and asynchronous copies; None for the
        current one, see `schedules`. `dependent`: whether it is a programmatic dependent launch, which on a GPU may
        start before the launch before on the same memory has ended; None for what `checks.dependent_launches` says.
        Raises LaunchError for a launch that is not possible, and one of the other `errors` for a fault of the kernel;
        its `counters` are those up to the fault.
        """
        grid, block = self._extent(grid, "grid"), self._extent(block, "block")
        parameters = self._pack(args)
        self._check(grid, block, shared_bytes)
        clusters = self._clusters(cluster, grid)
        threads, blocks = math.prod(block), math.prod(grid)
        if cooperative:
            self._check_resident(blocks, threads, shared_bytes, registers)
        wide = blocks * threads > MOST_LANES and self._any_order
        size = blocks if cooperative else batch_size(blocks, threads, math.prod(clusters), wide)
        # Looked up only where it matters, because it unpacks the listing.
        if size < blocks <= self._resident(threads, shared_bytes, registers) and self._waits_for_blocks:
            size = blocks
        enabled, chain = chosen(checks), chain_of(memory)
        schedule = schedule or current()
        processes = number_of_workers()
        watched = trace is not None or schedule is not None
        if size >= blocks or watched or self._experience.alone or memory.heap is not None or not self._independent:
            processes = 1
        before = trace.recorded if trace is not None else 0
        thorough: set[int] = set()
        heap = memory.heap.snapshot() if memory.heap is not None else None
        while True:
            counts = LaunchCounts(len(self.code.blocks))
            dependence = None
            if LAUNCHES in enabled:
                order = BlockOrder(grid, clusters)
                dependence = chain.begin(self._translated, order, block, starts_early(dependent), self._lets_next_start)
            launch_checks = LaunchChecks(enabled, blocks, threads, thorough, dependence)
            batches = Batches(
                self._translated, grid, block, clusters, blocks, size, parameters, memory, shared_bytes,
                self._entry_registers(registers, threads), max_steps, trace, schedule, launch_checks,
                make_workspace(memory) if cooperative else None,
            )  # fmt: skip
            try:
                with np.errstate(all="ignore"):
                    alone = dependence is not None  # workers follow no accesses
                    run(batches, counts, 1 if alone else processes, self._origin, pool, self._experience)
                chain.end(dependence)
                note_leaks(memory, heap, counts)
                for warning in counts.warnings:
                    warnings.warn(f"{demangled(self.name)}, {warning}", KernelWarning, stacklevel=2)
                return summarize(self._translated, grid, block, counts)
            except RestartLaunch:
                launch_checks.global_shadow.restore()
                restore_heap(memory, heap)
                counts.printed.clear()
                counts.unprinted = 0
                if trace is not None:
                    trace.discard(before)
            except EmulatorError as error:
                chain.end(None)
                error.counters = summarize(self._translated, grid, block, counts)
                raise
            finally:
                print_output(counts)
                if batches.workspace is not None:
                    memory.free(batches.workspace)

    @cached_property
    def _independent(self) -> bool:
        return independent(self.code)

    @cached_property
    def _any_order(self) -> bool:
        return self._independent and commutes(self.code)

    @cached_property
    def _waits_for_blocks(self) -> bool:
        return waits_for_blocks(self.code)

    @cached_property
    def _lets_next_start(self) -> bool:
        return lets_next_start(self.code)

    def _check(self, grid: tuple[int, int, int], block: tuple[int, int, int], shared_bytes: int) -> None:
        """Raise LaunchError for a launch that no GPU takes."""
        threads, bound = math.prod(block), self._translated.function.max_threads
        if threads > MAX_THREADS:
            raise self._wrong(f"a block of {threads} threads; at most {MAX_THREADS} are possible")
        if bound and threads > bound:
            raise self._wrong(f"a block of {threads} threads, but __launch_bounds__ says {bound}")
        if any(extent > most for extent, most in zip(block, MAX_BLOCK, strict=True)):
            raise self._wrong(f"the block {block} is larger than {MAX_BLOCK}")
        if any(extent > most for extent, most in zip(grid, MAX_GRID, strict=True)):
            raise self._wrong(f"the grid {grid} is larger than {MAX_GRID}")
        declared = self._translated.layout.shared_bytes
        total = declared + shared_bytes
        if declared > MAX_DECLARED:
            what = f"the kernel declares {declared} bytes of shared memory; a block may declare {MAX_DECLARED}"
            raise self._wrong(what + ". For more, declare `extern __shared__` and pass shared_mem= at the launch")
        if shared_bytes < 0 or total > MAX_SHARED:
            raise self._wrong(f"{total} bytes of shared memory; a block can have {MAX_SHARED}")

    def _entry_registers(self, registers: int, threads: int) -> int:
        """Return the registers of a thread at the start: as given, or the number that the launch bounds leave; 0 if
        unknown."""
        resident = self._translated.function.min_blocks
        return registers or (min(REGISTERS // threads // resident // 8 * 8, 256) if resident else 0)

    def _clusters(self, given: Sequence[int] | int | None, grid: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return the blocks of a cluster. Raises LaunchError if no GPU launches such clusters."""
        fixed = self._translated.function.cluster
        if given is None:
            found = fixed or (1, 1, 1)
        else:
            found = self._extent(given, "cluster")
            if fixed and found != fixed:
                raise self._wrong(f"clusters of {found}, but __cluster_dims__ says {fixed}")
        if math.prod(found) > MAX_CLUSTER:
            raise self._wrong(f"clusters of {math.prod(found)} blocks; at most {MAX_CLUSTER} are portable")
        if any(extent % each for extent, each in zip(grid, found, strict=True)):
            raise self._wrong(f"the grid {grid} is no multiple of the cluster {found}")
        return found

    def _check_resident(self, blocks: int, threads: int, shared_bytes: int, registers: int) -> None:
        """Raise LaunchError if the blocks of a cooperative launch do not fit on the GPU at the same time."""
        most = self._resident(threads, shared_bytes, registers)
        if blocks > most:
            raise self._wrong(f"{blocks} blocks in a cooperative launch; {most} of them fit on the GPU at a time")

    def _resident(self, threads: int, shared_bytes: int, registers: int) -> int:
        return resident_blocks(threads, self._translated.layout.shared_bytes + shared_bytes, registers)

    def _extent(self, value: Sequence[int] | int, what: str) -> tuple[int, int, int]:
        given = (value,) if not isinstance(value, Sequence | np.ndarray) else tuple(value)
        if not 1 <= len(given) <= 3 or not all(isinstance(v, int | np.integer) and v >= 1 for v in given):
            raise self._wrong(f"{what} must be one to three positive integers, not {value!r}")
        return (*(int(v) for v in given), 1, 1)[:3]

    def _pack(self, args: Sequence[bytes]) -> np.ndarray:
        layout, parameters = self._translated.layout, self.parameters
        given, wanted = len(args), len(parameters)
        if given != wanted:
            raise self._wrong(f"{given} arguments given, {wanted} expected")
        out = np.zeros(layout.parameter_bytes, np.uint8)
        for index, (value, parameter) in enumerate(zip(args, parameters, strict=True)):
            nbytes = parameter.nbytes or ptx.TYPE_BYTES[parameter.type]
            if len(value) != nbytes:
                raise self._wrong(f"argument {index} has {len(value)} bytes, {nbytes} expected")
            start = layout.parameters[parameter.name]
            out[start : start + nbytes] = np.frombuffer(bytes(value), np.uint8)
        return out

    def _wrong(self, what: str) -> LaunchError:
        return LaunchError(f"wrong launch: {what}", Where(self.name))
