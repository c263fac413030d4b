"""Jobs of worker processes and their results: batches of a launch, run on a copy of global memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..checks.hooks import LaunchChecks
from ..memory.device_memory import Allocation, holding
from ..memory.footprint import Footprint
from ..simt.batch import Batch
from ..simt.code import TranslatedKernel
from ..simt.launch_counts import LaunchCounts
from ..translation import cache
from ..translation.object_code import link
from .batches import Batches

ALIGNMENT = 64
CANCELLED = 0  # the byte of the shared memory that tells a worker to stop; the regions follow


class Cancelled(Exception):
    """No process waits for the job any more."""


class Origin(NamedTuple):
    """The place where a process finds a translated kernel: its name among those kept on disk, and its module's
    address."""

    name: str
    base: int


class Region(NamedTuple):
    """An allocation. In the memory that two processes share, its contents begin at byte `data`, those of `written` at
    byte `marks`; -1 if all bytes hold a value. `variable`: one of the module's."""

    address: int
    nbytes: int
    name: str
    variable: bool
    data: int
    marks: int


@dataclass(frozen=True)
class Job:
    """The batches `numbers` of a launch. `memory`: its regions; `span`: the bytes that they take; `followed`: the
    addresses of those whose loads are recorded exactly; `limits`: of stack and heap. The rest is as in `Batches` and
    `LaunchChecks`."""

    origin: Origin
    numbers: range
    memory: tuple[Region, ...]
    span: int
    followed: frozenset[int]
    limits: tuple[int, int]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    blocks: int
    size: int
    parameters: bytes
    shared_bytes: int
    registers: int
    max_steps: int
    checks: frozenset[str]
    thorough: frozenset[int]


class Result(NamedTuple):
    """The counts and accesses of the batches. The new contents of memory are in the shared memory."""

    counts: LaunchCounts
    footprint: Footprint


def regions(batches: Batches) -> tuple[tuple[Region, ...], int]:
    """Return the memory that a worker is given, and its size in bytes: the targets of parameters, and the variables."""
    out, end = [], ALIGNMENT
    for variable, allocations in ((False, _pointed(batches)), (True, batches.kernel.variables.live())):
        for one in allocations:
            data, end = end, _aligned(end + one.nbytes)
            marks, end = (-1, end) if one.written is None else (end, _aligned(end + one.nbytes))
            out.append(Region(one.address, one.nbytes, one.name, variable, data, marks))
    return tuple(out), end


def _pointed(batches: Batches) -> list[Allocation]:
    """Return the allocations that the parameters of the launch point into, treating each parameter as a pointer."""
    words = batches.parameters[: batches.parameters.size // 8 * 8].view(np.uint64).tolist()
    found = (batches.memory.find(word, 0) for word in words)
    return list({one.address: one for one in found if one is not None}.values())


def _aligned(value: int) -> int:
    return -(-value // ALIGNMENT) * ALIGNMENT


def fill(shared: np.ndarray, memory: tuple[Region, ...], batches: Batches, unread: frozenset[int]) -> None:
    """Copy the contents of the regions, except those at the addresses `unread`."""
    for region in memory:
        if region.address in unread:
            continue
        found = allocation(batches, region.address)
        shared[region.data : region.data + region.nbytes] = found.data
        if region.marks >= 0:
            # The remaining bytes may have been written since the regions were laid out.
            shared[region.marks : region.marks + region.nbytes] = 1 if found.written is None else found.written


def allocation(batches: Batches, address: int) -> Allocation:
    """Return the allocation at an address; none is freed while a launch runs."""
    return batches.memory.find(address, 0) or batches.kernel.variables.find(address, 0)


def perform(job: Job, shared: np.ndarray, kernels: dict[Origin, TranslatedKernel], alone: Callable[[], bool]) -> Result:
    """Do a job. Atomics are not executed, so that the other process can execute them in order.

    `kernels`: those that this process knows already. `alone`: whether the other process has ended. Raises Cancelled,
    and the kernel's errors.
    """

    def check(_: Batch) -> None:
        if shared[CANCELLED] or alone():
            raise Cancelled

    memory, variables = (holding(_allocations(job, shared, which)) for which in (False, True))
    memory.stack_bytes, memory.heap_bytes = job.limits
    if job.origin not in kernels:
        kernels[job.origin] = link(cache.keep(job.origin.name, _unknown), variables, job.origin.base, {})
    kernel = replace(kernels[job.origin], variables=variables)
    checks = LaunchChecks(job.checks, job.blocks, job.block[0] * job.block[1] * job.block[2], set(job.thorough))
    batches = Batches(
        kernel, job.grid, job.block, job.cluster, job.blocks, job.size, np.frombuffer(job.parameters, np.uint8), memory,
        job.shared_bytes, job.registers, job.max_steps, None, None, checks,
    )  # fmt: skip
    counts, footprint = LaunchCounts(len(kernel.code.blocks)), Footprint(later=True, followed=job.followed)
    with np.errstate(all="ignore"):
        for number in job.numbers:
            batches.run(number, counts, footprint, check)
    return Result(counts, footprint)


def _allocations(job: Job, shared: np.ndarray, variable: bool) -> Iterator[Allocation]:
    for region in job.memory:
        if region.variable == variable:
            data, marks = (shared[at : at + region.nbytes] for at in (region.data, max(region.marks, 0)))
            written = marks if region.marks >= 0 else None
            yield Allocation(region.address, region.nbytes, region.name, data, written=written)


def _unknown() -> None:
    raise LookupError("translations are not kept on disk")
