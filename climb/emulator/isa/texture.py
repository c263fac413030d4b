"""Texture reads through texture objects: at float32 coordinates, or in one dimension at an integer index."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .registry import special

TYPES = ("f32", "s32", "u32")


@special("tex.{rank}d.v4.{t}.{index}", results=("b",), rank=("1",), t=TYPES, index=("s32",))
@special("tex{level}.{rank}d.v4.{t}.{index}", results=("b",), level=("", ".level"), rank=("1", "2", "3"), t=TYPES,
         index=("f32",))  # fmt: skip
def _read(emitter: Emitter, instruction: ptx.Instruction, rank: str, t: str, index: str, level: str = "") -> None:
    target, source, *rest = instruction.operands
    # Textures have one level of detail here, so the level that is asked for changes nothing.
    if len(rest) != bool(level) or len(source.extra) != 1 or not isinstance(source.base, ptx.Register) or source.offset:
        emitter.refuse("only texture objects, read at coordinates alone, are supported")
    coordinates = "".join(emitter.read(item, index) + ", " for item in source.extra[0].items[: int(rank)])
    handle = emitter.read(source.base, "u64")
    values = emitter.fresh(f"texture_read(G, {emitter.place(instruction)}, '{t}', {handle}, ({coordinates}))")
    for number, item in enumerate(target.items):
        if item != ptx.Register("_"):
            emitter.write(item, t, f"{values}[{number}]")
