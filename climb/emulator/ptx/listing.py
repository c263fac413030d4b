"""The instructions of a kernel's blocks, packed until they are needed: most launches run without."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Sequence
from typing import Protocol

from .model import Instruction


class _Holder(Protocol):
    instructions: list[Instruction]


class Listing:
    """The instructions of `blocks`, which it takes away from them."""

    def __init__(self, blocks: Sequence[_Holder]) -> None:
        self._blocks = blocks
        lists = [block.instructions for block in blocks]
        self._packed = zlib.compress(pickle.dumps(lists, pickle.HIGHEST_PROTOCOL), 1)
        for block in blocks:
            del block.instructions

    def restore(self) -> None:
        """Give the blocks their instructions back."""
        for block, instructions in zip(self._blocks, pickle.loads(zlib.decompress(self._packed)), strict=True):
            block.instructions = instructions
