"""ldmatrix: load rows of matrices from shared memory."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .matrix import write_fragment
from .registry import special
from .types import dtype


@special(
    "ldmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16", gate="warp", count=("1", "2", "4"), trans=("", ".trans"),
    space=(".shared", ".shared::cta"),
)  # fmt: skip
def _load_matrix(emitter: Emitter, instruction: ptx.Instruction, count: str, trans: str, space: str) -> None:
    target, address, _ = instruction.operands
    site = emitter.site(instruction, "shared", "load", dtype("u32"), 4)
    where = emitter.address(address, "shared")
    write_fragment(emitter, target, "u32", f"matrix_rows(G, {site}, {count}, {bool(trans)}, {where})", int(count))
