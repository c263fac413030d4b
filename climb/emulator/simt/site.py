"""Sites: the places of a kernel at which memory is accessed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..ptx.model import Location

_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel"})
_SCOPES = ("cta", "cluster", "gpu", "sys")
_OPERATIONS = frozenset({"add", "inc", "dec", "min", "max", "and", "or", "xor", "cas", "exch"})
_ASYNCHRONOUS = {"cp": "copy", "wgmma": "matrix product", "st.async": "store", "red.async": "reduction"}
_CONTAINERS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}


@dataclass(frozen=True)
class Site:
    """An instruction that accesses memory.

    `element` is the dtype of one destination, `count` the number of destinations, `offset` a constant added to the
    address. `space` is empty for a generic address. `action`: "load", "store", "atomic", or "warp" for an instruction
    that accesses nothing and only needs a place for its errors. `spin`: in a loop that may wait for other lanes.
    `combined`: an atomic of shared memory that adds one and whose result is unused; hardware serves all lanes at one
    address together. `part`: part of an access that another site counts as a whole.
    """

    index: int
    space: str
    action: str
    element: np.dtype
    count: int
    offset: int
    location: Location
    text: str
    ptx: str
    spin: bool
    combined: bool = False
    part: bool = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        # NumPy compares dtypes by identity before it takes some fast paths (ufunc.at), and unpickling makes new ones.
        vars(self).update(state, element=np.dtype(state["element"].str))

    @cached_property
    def opcode(self) -> list[str]:
        """The parts of the opcode, such as ["ld", "global", "f32"]."""
        words = self.ptx.split()
        return next(word for word in words if not word.startswith("@")).rstrip(";").split(".")

    @cached_property
    def asynchronous(self) -> str:
        """The name in messages of the asynchronous operation that accesses memory here: "copy", ...; empty for
        others."""
        first, second = self.opcode[:2]
        return _ASYNCHRONOUS.get(f"{first}.async" if second == "async" and first != "cp" else first, "")

    @cached_property
    def strong(self) -> bool:
        """Return whether the access is volatile or ordered."""
        return not _STRONG.isdisjoint(self.opcode)

    @cached_property
    def read_only(self) -> bool:
        """Return whether the access promises that nothing writes to its memory while the kernel runs: ld.global.nc."""
        return "nc" in self.opcode

    @cached_property
    def releases(self) -> bool:
        """Return whether the access publishes the thread's earlier writes, like a fence before it."""
        return not {"release", "acq_rel"}.isdisjoint(self.opcode)

    @cached_property
    def acquires(self) -> bool:
        """Return whether the thread's later accesses are ordered after the write whose value this access reads.

        By PTX's memory model that takes an acquiring access, or a relaxed or volatile one and a fence after it. An
        atomic operation is taken to be enough, because much code in use relies on it.
        """
        return self.action == "atomic" or not {"acquire", "acq_rel"}.isdisjoint(self.opcode)

    @cached_property
    def scope(self) -> str:
        """The threads for which an ordered access is ordered: "cta", "cluster", "gpu" or "sys"; "" if not stated."""
        return next((part for part in self.opcode if part in _SCOPES), "")

    @cached_property
    def operation(self) -> str:
        """The operation of an atomic: "add", "cas", ...; empty for other accesses."""
        return next((part for part in self.opcode if part in _OPERATIONS), "")

    @cached_property
    def bypasses_l1(self) -> bool:
        """Return whether the access is an asynchronous copy to shared memory that bypasses the L1 cache."""
        return self.opcode[:3] == ["cp", "async", "cg"]

    @cached_property
    def uncounted(self) -> Site:
        """The same access, excluded from the counters."""
        return replace(self, part=True)

    @cached_property
    def native(self) -> bool:
        """Return whether shared memory has this atomic in hardware: 32-bit integers and exchanges, but no
        compare-and-swap."""
        whole = self.opcode[-1] in ("u32", "s32", "b32")
        return self.operation == "exch" or (whole and self.operation != "cas")

    @cached_property
    def carried_out(self) -> str:
        """The way shared memory performs the access, a key of `SHARED_MEASURES`: "load", "store", or for an atomic
        "combined" (lanes at one address together), "native", or "swapped" (a loop of compare-and-swap)."""
        if self.action != "atomic":
            return "load" if self.action == "load" else "store"
        return "combined" if self.combined else "native" if self.native else "swapped"

    @property
    def width(self) -> int:
        """Bytes per lane."""
        return self.element.itemsize * self.count

    @property
    def container(self) -> np.dtype:
        """The dtype that moves all bytes of a lane at once."""
        return self.element if self.count == 1 else np.dtype(_CONTAINERS[self.width])
