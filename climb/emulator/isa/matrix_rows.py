"""ldmatrix and stmatrix: load rows of matrices from shared memory, and store them."""

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


@special(
    "stmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16", writes=0, gate="warp", count=("1", "2", "4"),
    trans=("", ".trans"), space=(".shared", ".shared::cta"),
)  # fmt: skip
def _store_matrix(emitter: Emitter, instruction: ptx.Instruction, count: str, trans: str, space: str) -> None:
    address, source, _ = instruction.operands
    if not isinstance(source, ptx.Vector) or len(source.items) != int(count):
        emitter.refuse(f"{count} registers expected")
    site = emitter.site(instruction, "shared", "store", dtype("u32"), 4)
    values = "".join(emitter.read(item, "u32") + ", " for item in source.items)
    emitter.line(f"matrix_store_rows(G, {site}, {bool(trans)}, {emitter.address(address, 'shared')}, ({values}))")
