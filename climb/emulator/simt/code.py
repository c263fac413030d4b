"""A translated kernel, ready to run."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from ..memory.device_memory import DeviceMemory
from ..memory.layout import Layout
from ..ptx.control_flow import Block
from ..ptx.model import Function, Immediate, Location, Register
from .site import Site

#: Functions that generated code calls to order accesses without waiting for a whole block.
_ORDERING = frozenset({"memory_fence", "mbarrier_init", "tensor_map_copy", "cluster_arrive"})
#: The spaces of sites that may access shared memory; a generic address may lie there.
_MAYBE_SHARED = ("", "shared")


@dataclass
class Loops:
    """The loops of a kernel, as far as somebody has asked: the heads of the loops around each block, and the operands
    and type of each comparison that decides whether the loop at a head goes on."""

    heads: dict[int, list[int]] | None = None
    bounds: dict[int, tuple[tuple[Register | Immediate, Register | Immediate, str], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Code:
    """The code of a kernel: its basic blocks, a Python function for each, and its access sites.

    A function takes a group of lanes and returns the predicate of the block's branch (None if it has none). `kinds`
    maps registers to the PTX type in which they are kept. `packed_source` is the generated Python, compressed.
    """

    blocks: list[Block]
    functions: list[Callable[..., np.ndarray | None]]
    sites: list[Site]
    kinds: dict[str, str]
    packed_source: bytes

    @property
    def source(self) -> str:
        """The generated Python."""
        return zlib.decompress(self.packed_source).decode()

    @cached_property
    def loops(self) -> Loops:
        """Return what is known about its loops. Batches and launches of the same code share it."""
        return Loops()

    @cached_property
    def orders_in_part(self) -> bool:
        """Return whether the code can order accesses of some lanes of a warp, or of some warps of a block, without the
        others: by masks, named barriers, mbarriers, fences, or the barrier of a cluster."""
        if any(block.gate == "named" or (block.gate == "warp" and _has_partial_mask(block)) for block in self.blocks):
            return True
        calls = (function.__code__.co_names for function in self.functions)
        return any(site.releases for site in self.sites) or not _ORDERING.isdisjoint(chain.from_iterable(calls))

    @cached_property
    def has_late_loads(self) -> bool:
        """Return whether threads may arrive at a barrier before their loads of shared memory have ended, in a kernel
        that copies to shared memory in bulk; see `translation.late_loads`."""
        return any("late_release" in function.__code__.co_names for function in self.functions)

    @cached_property
    def narrowest_shared_write(self) -> int:
        """Return the bytes of the narrowest write that may be to shared memory; 16, the most, if there is none."""
        writes = (one for one in self.sites if one.action in ("store", "atomic") and one.space in _MAYBE_SHARED)
        return min((one.width for one in writes), default=16)


def _has_partial_mask(block: Block) -> bool:
    """Return whether the warp operation at the start of a block may name only some lanes of a warp."""
    mask = block.first.operands[-1]
    return not (isinstance(mask, Immediate) and mask.value & 0xFFFFFFFF == 0xFFFFFFFF)


@dataclass(frozen=True)
class TranslatedKernel:
    """A kernel, ready to run.

    `variables` holds the module's `__device__` and `__constant__` variables. `special_registers` names those that the
    kernel reads. `zeros` maps each register to a (1,1) zero of its dtype. `sources` maps file names to lines.
    """

    function: Function
    layout: Layout
    code: Code
    variables: DeviceMemory
    special_registers: frozenset[str]
    zeros: Mapping[str, np.ndarray]
    sources: dict[str, list[str]]

    @property
    def name(self) -> str:
        """The lowered name."""
        return self.function.name

    def line_text(self, location: Location) -> str:
        """Return the source line without its indentation; empty if the source is not known."""
        return line_text(self.sources, location)


def line_text(sources: Mapping[str, list[str]], location: Location) -> str:
    """Return the line at `location`, without its indentation; empty if the source is not known."""
    lines = sources.get(location.file, ())
    return lines[location.line - 1].strip() if 0 < location.line <= len(lines) else ""
