"""Texture reads with float32 coordinates and values, through texture objects."""

from __future__ import annotations

from .. import ptx
from . import special


@special("tex.{n}d.v4.f32.f32", choices={"n": ("1", "2", "3")}, results=("b",), operands=())
def _read(emitter, instruction: ptx.Instruction) -> None:
    target, source, *rest = instruction.operands
    if rest or len(source.extra) != 1 or not isinstance(source.base, ptx.Register) or source.offset:
        emitter.refuse("only texture objects, read at coordinates alone, are supported")
    count = int(instruction.opcode[4])
    coordinates = "".join(emitter.read(item, "f32") + ", " for item in source.extra[0].items[:count])
    handle = emitter.read(source.base, "u64")
    values = emitter.fresh(f"texture_read(G, {emitter.place(instruction)}, {handle}, ({coordinates}))")
    for index, item in enumerate(target.items):
        if item != ptx.Register("_"):
            emitter.write(item, "f32", f"{values}[{index}]")
