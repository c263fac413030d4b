"""What the threads of a block do for each other: shared memory, shuffles."""

from __future__ import annotations

import re

import numpy as np

from climb.validation.sass_interpreter.operands import Operand, UnsupportedSass, operand
from climb.validation.sass_interpreter.state import View

_TERM = re.compile(r"^(R\d+|RZ|UR\d+|URZ|-?0x[0-9a-f]+)((?:\.X\d+)?)$")
#: What the system keeps of the shared memory of each block, in front of the block's own (sm_90).
RESERVED = 1024


class Shared:
    """The shared memory of all blocks: uint8 (blocks, bytes). Only aligned accesses inside of it are allowed."""

    def __init__(self, blocks: int, nbytes: int) -> None:
        self.data = np.zeros((blocks, RESERVED + nbytes), np.uint8)

    def at(self, view: View, text: str, width: int, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each byte that lanes access, (lanes, 1) and (lanes, width). Raises IndexError, UnsupportedSass."""
        start = _offsets(view, text)
        if ((start < RESERVED) | (start + width > self.data.shape[1]) | (start % width != 0)).any():
            raise IndexError("machine code accesses shared memory that is not its block's, or is not aligned")
        return block[:, None], start[:, None] + np.arange(width)


def _offsets(view: View, text: str) -> np.ndarray:
    """int64 (lanes,), of [R2+UR4+0x10] and the like."""
    total = np.zeros(view.at.shape, np.uint32)
    for part in text.strip("[]").replace("+-", "+ -").split("+"):
        term = _TERM.match(part.strip())
        if not term:
            raise UnsupportedSass(f"the address {text}")
        scale = np.uint32(int(term[2][2:] or "1"))
        total = total + view.words(operand(term[1])) * scale
    return total.astype(np.int64)


def shuffle(view: View, mode: str, operands: tuple[Operand, ...], held: np.ndarray) -> None:
    """SHFL: as PTX's shfl, whose bound and segments the last operand packs. ``held`` bool (lanes of the launch,): who
    takes part; what a lane gets from one that does not is not known, and refused."""
    inside, target, value, by, bounds = operands
    lane = view.at % 32
    first = view.at - lane
    amount = np.broadcast_to(view.words(by), lane.shape).astype(np.int64) & 31
    packed = np.broadcast_to(view.words(bounds), lane.shape).astype(np.int64)
    clamp, segment = packed & 31, packed >> 8 & 31
    low = lane & segment
    bound = low | (clamp & ~segment & 31)
    match mode:
        case "UP":
            source = lane - amount
            fits = source >= bound
        case "DOWN":
            source = lane + amount
            fits = source <= bound
        case "BFLY":
            source = lane ^ amount
            fits = source <= bound
        case "IDX":
            source = low | (amount & ~segment & 31)
            fits = source <= bound
        case _:
            raise UnsupportedSass(f"a shuffle {mode}")
    source = np.where(fits, source, lane) + first
    if not held[source].all():
        raise UnsupportedSass("a shuffle from a lane that takes no part")
    words = np.zeros(1, np.uint32) if value.index < 0 else view.state.registers[value.index][source]
    view.set_words(target, words)
    view.set_holds(inside, fits)
