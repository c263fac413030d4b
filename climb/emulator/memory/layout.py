"""The addresses of a kernel's variables: shared, local, global and constant variables, and parameters.

Shared variables are separated by gaps, and so are local ones, so that an access past the end of one variable does not
land in the next; on a GPU they touch. A gap is a multiple of the distance after which banks repeat, so bank conflicts
stay the same. The gaps do not count as shared memory that a block uses.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .. import ptx

#: Bytes between two variables.
RESERVED = "%reserved_smem_offset"  # the names of the special registers about it begin so
RESERVED_BYTES = 1024
GAPS = {"shared": 1024, "local": 64, "param": 4096}


@dataclass(frozen=True)
class Extents:
    """The variables of one memory space: `starts` and `ends` in bytes, ascending, and their names."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    names: tuple[str, ...]

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.starts), np.array(self.ends)

    def contains(self, lowest: int, highest: int, width: int) -> bool:
        """Return whether accesses of `width` bytes between the addresses `lowest` and `highest` stay in one
        variable."""
        at = bisect_right(self.starts, lowest) - 1
        return at >= 0 and highest + width <= self.ends[at]

    def outside(self, address: np.ndarray, width: int) -> np.ndarray:
        """Return where an access of `width` bytes is not within one variable: bool, the shape of `address`."""
        if not self.starts:
            return np.ones(address.shape, np.bool_)
        starts, ends = self._arrays
        at = np.searchsorted(starts, address, side="right") - 1
        return (at < 0) | (address + width > ends[np.maximum(at, 0)])

    def nearest(self, address: int) -> int:
        """Return the index of the variable that holds the address; in a gap, of the variable before it."""
        return max(bisect_right(self.starts, address) - 1, 0)


@dataclass(frozen=True)
class Layout:
    """The places of the kernel's variables: `addresses` maps names to (space, address in it).

    `parameters` holds byte offsets in the packed arguments. Parameters have addresses too, for kernels that index
    them: `param_span` bytes, gaps included. `shared_span` and `local_bytes` include gaps, `shared_bytes` does not.
    `dynamic` names the variables that the launch sizes; they begin at `shared_span`. `symbols` names the variables and
    functions of the module that have an address.
    """

    addresses: dict[str, tuple[str, int]]
    parameters: dict[str, int]
    parameter_bytes: int
    param_span: int
    shared_bytes: int
    shared_span: int
    local_bytes: int
    sizes: dict[str, int]
    dynamic: tuple[str, ...]
    symbols: frozenset[str]

    def relocated(self, base: int) -> Layout:
        """Return the layout for a module that is loaded at `base`, made from one whose symbols are relative to the
        module."""
        moved = {name: (space, at + base) for name, (space, at) in self.addresses.items() if name in self.symbols}
        return replace(self, addresses=self.addresses | moved)

    def extents(self, space: str, dynamic_bytes: int = 0) -> Extents:
        """Return the variables of `space` ("shared", "local" or "param"), with `dynamic_bytes` of dynamic shared
        memory."""
        found = sorted((at, at + self.sizes[name], name) for name, (where, at) in self.addresses.items()
                       if where == space and name in self.sizes)  # fmt: skip
        if space == "shared" and self.dynamic:
            found.append((self.shared_span, self.shared_span + dynamic_bytes, self.dynamic[0]))
        return Extents(*(tuple(column) for column in zip(*found, strict=True))) if found else Extents((), (), ())


def lay_out(function: ptx.Function, variables: Iterable[ptx.Variable], symbols: Mapping[str, int],
            spaces: Mapping[str, str]) -> Layout:  # fmt: skip
    """Lay out the variables of a kernel.

    `variables` are the module's; `symbols` maps those in global and constant memory to their addresses, `spaces` each
    name to its space.
    """
    addresses: dict[str, tuple[str, int]] = {}
    sizes: dict[str, int] = {}
    packed, span = {"shared": 0, "local": 0}, {"shared": 0, "local": 0}
    used = {
        name
        for item in function.body
        if isinstance(item, ptx.Instruction)
        for operand in item.operands
        if type(operand) is not ptx.Register  # as most are
        for name in _symbols(operand)
    }
    dynamic = []
    for variable in [*function.variables, *(v for v in variables if v.name in used)]:
        space = variable.space
        if space not in packed:
            continue
        if variable.extern or not variable.nbytes:
            dynamic.append(variable)
            continue
        start = _aligned(packed[space], variable.align)
        packed[space] = start + variable.nbytes
        at = start if not span[space] else start + _aligned(span[space] - start, GAPS[space]) + GAPS[space]
        addresses[variable.name] = (space, at)
        sizes[variable.name] = variable.nbytes
        span[space] = at + variable.nbytes
    if any(operand.name.startswith(RESERVED) for operand in _registers(function)):
        # The system's part of shared memory, where tiles of more than a warp have their barriers.
        at = _aligned(span["shared"], GAPS["shared"]) + GAPS["shared"] * bool(span["shared"])
        addresses[RESERVED], sizes[RESERVED] = ("shared", at), RESERVED_BYTES
        span["shared"] = at + RESERVED_BYTES
    if dynamic:
        align = max(16, *(v.align for v in dynamic))
        start = packed["shared"] = _aligned(packed["shared"], align)
        if span["shared"]:
            span["shared"] = start + _aligned(span["shared"] - start, GAPS["shared"]) + GAPS["shared"]
        for variable in dynamic:
            addresses[variable.name] = ("shared", span["shared"])
    for name, address in symbols.items():
        addresses[name] = (spaces[name], address)
    parameters, end, place = {}, 0, 0
    for parameter in function.params:
        end, place = _aligned(end, parameter.align), _aligned(place, parameter.align)
        parameters[parameter.name] = end
        addresses[parameter.name] = ("param", place)
        sizes[parameter.name] = parameter.nbytes or ptx.TYPE_BYTES[parameter.type]
        end += sizes[parameter.name]
        place += sizes[parameter.name] + GAPS["param"]
    names = tuple(variable.name for variable in dynamic)
    return Layout(
        addresses, parameters, end, place, packed["shared"], span["shared"], span["local"], sizes, names,
        frozenset(symbols),
    )  # fmt: skip


def _aligned(value: int, to: int) -> int:
    return -(-value // to) * to


def _registers(function: ptx.Function) -> Iterator[ptx.Register]:
    """Return the registers that are read as they are, among them special ones."""
    for item in function.body:
        if isinstance(item, ptx.Instruction) and item.opcode.startswith("mov."):
            yield from (operand for operand in item.operands[1:] if isinstance(operand, ptx.Register))


def _symbols(operand: ptx.Operand) -> list[str]:
    if isinstance(operand, ptx.Symbol):
        return [operand.name]
    if isinstance(operand, ptx.Address) and isinstance(operand.base, ptx.Symbol):
        return [operand.base.name]
    if isinstance(operand, ptx.Vector | ptx.Arguments):
        return [name for item in operand.items for name in _symbols(item)]
    return []
