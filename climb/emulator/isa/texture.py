"""Texture reads through texture objects: plain, with a level of detail or gradients, and gathers of four texels."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .registry import special

TYPES = ("f32", "s32", "u32")
#: The coordinates of each geometry in PTX: how many there are, and whether the first is the layer.
GEOMETRIES = {"1d": (1, 0), "2d": (2, 0), "3d": (3, 0), "a1d": (1, 1), "a2d": (2, 1), "cube": (3, 0), "acube": (3, 1)}


@special("tex.{geometry}.v4.{t}.{index}", results=("b",), geometry=("1d", "2d", "3d", "a1d", "a2d"), t=TYPES,
         index=("s32",))  # fmt: skip
@special("tex{detail}.{geometry}.v4.{t}.{index}", results=("b",), detail=("", ".level", ".grad"),
         geometry=tuple(GEOMETRIES), t=TYPES, index=("f32",))  # fmt: skip
def _read(emitter: Emitter, instruction: ptx.Instruction, geometry: str, t: str, index: str, detail: str = "") -> None:
    target, source, *rest = instruction.operands
    # Textures have one level of detail here, so neither a level nor gradients change anything.
    if len(rest) != {"": 0, ".level": 1, ".grad": 2}[detail]:
        emitter.refuse("offsets and depth comparisons of textures are not supported")
    handle, coordinates, layer = _place(emitter, source, geometry, index)
    code = f"'{geometry}', '{t}', {handle}, ({coordinates}), {layer}"
    _write(emitter, target, t, f"texture_read(G, {emitter.place(instruction)}, {code})")


@special("tld4.{channel}.{geometry}.v4.{t}.f32", results=("b",), channel=("r", "g", "b", "a"), geometry=("2d", "a2d"),
         t=TYPES)  # fmt: skip
def _gather(emitter: Emitter, instruction: ptx.Instruction, channel: str, geometry: str, t: str) -> None:
    target, source, *rest = instruction.operands
    if rest:
        emitter.refuse("offsets and depth comparisons of textures are not supported")
    handle, coordinates, layer = _place(emitter, source, geometry, "f32")
    code = f"'{geometry}', '{t}', {handle}, ({coordinates}), {layer}, {'rgba'.index(channel)}"
    _write(emitter, target, t, f"texture_gather(G, {emitter.place(instruction)}, {code})")


def _place(emitter: Emitter, source: ptx.Address, geometry: str, index: str) -> tuple[str, str, str]:
    if len(source.extra) != 1 or not isinstance(source.base, ptx.Register) or source.offset:
        emitter.refuse("only texture objects, read at coordinates alone, are supported")
    count, layered = GEOMETRIES[geometry]
    items = source.extra[0].items
    layer = emitter.read(items[0], "u32") if layered else "None"
    coordinates = "".join(f"{emitter.read(item, index)}, " for item in items[layered : layered + count])
    return emitter.read(source.base, "u64"), coordinates, layer


def _write(emitter: Emitter, target: ptx.Vector, t: str, code: str) -> None:
    values = emitter.fresh(code)
    for number, item in enumerate(target.items):
        if item != ptx.Register("_"):
            emitter.write(item, t, f"{values}[{number}]")
