"""The state of a launch: registers, predicates, constants, memory."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

import numpy as np

from climb.validation.sass_interpreter.operands import Operand, UnsupportedSass, operand

#: Offset of the kernel's parameters in the constant bank, on sm_90 and the later architectures that the book uses.
PARAMETERS = 0x210
_BASE, _ALIGNED = 1 << 36, 512


class Memory:
    """The arrays of a launch, one after the other in one address space."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.arrays = arrays
        self.addresses, place = [], _BASE
        for array in arrays:
            self.addresses.append(place)
            place += -(-max(array.nbytes, 1) // _ALIGNED) * _ALIGNED + _ALIGNED
        self.data = np.zeros(place - _BASE, np.uint8)
        for array, address in zip(arrays, self.addresses, strict=True):
            self._part(array, address)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.starts = np.array(self.addresses, np.uint64)
        self.ends = self.starts + np.array([array.nbytes for array in arrays], np.uint64)

    def _part(self, array: np.ndarray, address: int) -> np.ndarray:
        return self.data[address - _BASE :][: array.nbytes]

    def at(self, addresses: np.ndarray, nbytes: int) -> np.ndarray:
        """Return indices into `data` of the bytes accessed, (lanes, nbytes). Raises IndexError outside of every
        array."""
        which = np.searchsorted(self.starts, addresses, side="right") - 1
        bad = (which < 0) | (addresses + np.uint64(nbytes) > self.ends[which])
        if bad.any():
            raise IndexError(f"machine code accesses {int(addresses[bad][0]):#x}, which is in no array")
        return (addresses - np.uint64(_BASE)).astype(np.int64)[:, None] + np.arange(nbytes)

    def copy_back(self) -> None:
        """Copy results into the arrays that are writeable."""
        for array, address in zip(self.arrays, self.addresses, strict=True):
            if array.flags.writeable:
                array[...] = self._part(array, address).view(array.dtype).reshape(array.shape)


def constants(grid: tuple[int, int, int], block: tuple[int, int, int], packed: Sequence[bytes]) -> bytes:
    """Return the constant bank of a launch: extents of block and grid, then the parameters, each aligned to its
    size."""
    bank = bytearray(PARAMETERS)
    struct.pack_into("<6I", bank, 0, *block, *grid)
    for one in packed:
        bank += bytes(-len(bank) % min(len(one), 16)) + one
    return bytes(bank) + bytes(16)


class State:
    """Registers of all threads and warps.

    `registers` uint32 (256, threads) and `predicates` bool (7, threads); `uniform` and `uniform_predicates` are the
    same for warps.
    """

    def __init__(self, blocks: int, threads: int) -> None:
        self.blocks, self.threads = blocks, threads
        self.warps = -(-threads // 32)  # of a block
        lanes, warps = blocks * self.warps * 32, blocks * self.warps
        self.registers = np.zeros((256, lanes), np.uint32)
        self.predicates = np.zeros((7, lanes), np.bool_)
        self.uniform = np.zeros((64, warps), np.uint32)
        self.uniform_predicates = np.zeros((7, warps), np.bool_)


class View:
    """Some lanes of a launch, or with `is_uniform` some of its warps; `at` holds their flat indices.

    A view of warps cannot read the registers of lanes.
    """

    def __init__(self, state: State, bank: bytes, at: np.ndarray, uniform: bool) -> None:
        self.state, self.bank, self.at, self.is_uniform = state, bank, at, uniform

    def _where(self, kind: str) -> np.ndarray:
        if kind[0] == "U":
            return self.at if self.is_uniform else self.at // 32
        if self.is_uniform:
            raise UnsupportedSass("a uniform instruction that reads a lane's register")
        return self.at

    def words(self, one: Operand, part: int = 0) -> np.ndarray:
        match one.kind:
            case "R" | "UR":
                if one.index < 0:
                    return np.zeros(1, np.uint32)
                file = self.state.registers if one.kind == "R" else self.state.uniform
                return file[one.index + part][self._where(one.kind)]
            case "number":
                value = int(one.value, 0) >> 32 * part & 0xFFFFFFFF
                return np.array([value], np.uint32)
            case "c":
                return np.frombuffer(self.bank, np.uint32, 1, self._constant(one) + 4 * part)
        raise UnsupportedSass(f"{one.kind} {one.text} as a number")

    def _constant(self, one: Operand) -> int:
        if one.index != 0:
            raise UnsupportedSass(f"constant bank {one.index}")
        offset = operand(one.text)
        if offset.kind == "number":
            place = int(offset.value, 0)
        elif offset.index < 0:
            place = 0
        else:
            raise UnsupportedSass("a constant whose address is computed")
        if not place + 8 <= len(self.bank):
            raise UnsupportedSass(f"the constant at {place:#x}")
        return place

    def holds(self, one: Operand) -> np.ndarray:
        if one.index < 0:
            value = np.ones(1, np.bool_)
        else:
            file = self.state.predicates if one.kind == "P" else self.state.uniform_predicates
            value = file[one.index][self._where(one.kind)]
        return ~value if one.inverted else value

    def set_words(self, one: Operand, values: np.ndarray, part: int = 0) -> None:
        if one.index >= 0:
            file = self.state.registers if one.kind == "R" else self.state.uniform
            file[one.index + part][self._where(one.kind)] = values

    def set_holds(self, one: Operand, values: np.ndarray) -> None:
        if one.index >= 0:
            file = self.state.predicates if one.kind == "P" else self.state.uniform_predicates
            file[one.index][self._where(one.kind)] = values

    def addresses(self, text: str) -> np.ndarray:
        """Return the address of each lane, uint64, from an operand such as [R2.64+0x10], with or without a
        descriptor."""
        found = _ADDRESS.match(text)
        if not found:
            raise UnsupportedSass(f"the address {text}")
        pair = self.words(operand(found[1])).astype(np.uint64) | self.words(operand(found[1]), 1).astype(
            np.uint64
        ) << np.uint64(32)
        return np.broadcast_to(pair, self.at.shape) + np.array(int(found[2] or "0", 0)).astype(np.int64).view(np.uint64)


_ADDRESS = re.compile(r"^(?:desc\[UR\d+\])?\[(R\d+)\.64(?:\+(-?0x[0-9a-f]+))?\]$")
