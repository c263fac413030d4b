"""Texture reads through texture objects: at float32 coordinates, or of one dimension at a whole index."""

from __future__ import annotations

from .. import ptx
from . import special

KINDS = ("f32", "s32", "u32")


def _read(emitter, instruction: ptx.Instruction) -> None:
    target, source, *rest = instruction.operands
    parts = instruction.opcode.split(".")
    # Textures here have one level of detail: which one is asked for changes nothing.
    level = parts[1] == "level"
    if len(rest) != level or len(source.extra) != 1 or not isinstance(source.base, ptx.Register) or source.offset:
        emitter.refuse("only texture objects, read at coordinates alone, are supported")
    count, kind, of = int(parts[1 + level][0]), parts[-2], parts[-1]
    coordinates = "".join(emitter.read(item, of) + ", " for item in source.extra[0].items[:count])
    handle = emitter.read(source.base, "u64")
    values = emitter.fresh(f"texture_read(G, {emitter.place(instruction)}, '{kind}', {handle}, ({coordinates}))")
    for index, item in enumerate(target.items):
        if item != ptx.Register("_"):
            emitter.write(item, kind, f"{values}[{index}]")


for _kind in KINDS:
    special(f"tex.1d.v4.{_kind}.s32", results=("b",), operands=())(_read)
    for _count in "123":
        for _level in ("", ".level"):
            special(f"tex{_level}.{_count}d.v4.{_kind}.f32", results=("b",), operands=())(_read)
