"""Exchange between the threads of a block: shared memory and shuffles."""

from __future__ import annotations

import re

import numpy as np

from climb.validation.sass_interpreter.operands import Operand, UnsupportedSass, operand
from climb.validation.sass_interpreter.state import View

_TERM = re.compile(r"^(R\d+|RZ|UR\d+|URZ|-?0x[0-9a-f]+)((?:\.X\d+)?)$")
#: Bytes that the system reserves at the start of each block's shared memory (sm_90).
RESERVED = 1024


class Shared:
    """The shared memory of all blocks, uint8 (blocks, bytes). Accesses must be aligned and within their block's."""

    def __init__(self, blocks: int, nbytes: int) -> None:
        self.data = np.zeros((blocks, RESERVED + nbytes), np.uint8)

    def at(self, view: View, text: str, width: int, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the row (lanes, 1) and column (lanes, width) of each byte that the lanes access.

        Raises IndexError for an access that is misaligned or outside, UnsupportedSass for an unknown address.
        """
        start = _offsets(view, text)
        if ((start < RESERVED) | (start + width > self.data.shape[1]) | (start % width != 0)).any():
            raise IndexError("machine code accesses shared memory that is not its block's, or is not aligned")
        return block[:, None], start[:, None] + np.arange(width)


def _offsets(view: View, text: str) -> np.ndarray:
    """Return the address of each lane, int64 (lanes,), from an operand such as [R2+UR4+0x10]."""
    total = np.zeros(view.at.shape, np.uint32)
    for part in text.strip("[]").replace("+-", "+ -").split("+"):
        term = _TERM.match(part.strip())
        if not term:
            raise UnsupportedSass(f"the address {text}")
        scale = np.uint32(int(term[2][2:] or "1"))
        total = total + view.words(operand(term[1])) * scale
    return total.astype(np.int64)


def shuffle(view: View, mode: str, operands: tuple[Operand, ...], held: np.ndarray) -> None:
    """Execute SHFL, which is PTX's shfl with bound and segments packed into the last operand.

    ``held`` bool (lanes of the launch,) marks the lanes that take part. Raises UnsupportedSass for a lane that reads
    from one that does not, since that value is undefined.
    """
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
