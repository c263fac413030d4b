"""Surface instructions on surface objects: unformatted loads, stores and reductions."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .registry import special
from .types import size

#: The coordinates of each geometry, outermost first.
GEOMETRIES = {"1d": ("x",), "2d": ("y", "x"), "3d": ("z", "y", "x"), "a1d": ("layer", "x"), "a2d": ("layer", "y", "x")}
UPDATES = ("add", "min", "max", "and", "or")
MODES = ("trap", "clamp", "zero")
_WIDTHS = ("b8", "b16", "b32", "b64")
#: PTX's order of the coordinates of each geometry; a fourth one is padding.
_ORDER = {"1d": ("x",), "2d": ("x", "y"), "3d": ("x", "y", "z"), "a1d": ("layer", "x"), "a2d": ("layer", "x", "y")}


def _place(emitter: Emitter, instruction: ptx.Instruction, geometry: str) -> str:
    """Return the surface object and the coordinates, outermost first, as arguments."""
    address = next(operand for operand in instruction.operands if isinstance(operand, ptx.Address))
    if len(address.extra) != 1 or not isinstance(address.base, ptx.Register) or address.offset:
        emitter.refuse("only surface objects are supported")
    given = address.extra[0].items if isinstance(address.extra[0], ptx.Vector) else (address.extra[0],)
    named = dict(zip(_ORDER[geometry], given, strict=False))
    at = "".join(f"{emitter.read(named[axis], 's32')}, " for axis in GEOMETRIES[geometry])
    return f"{emitter.read(address.base, 'u64')}, ({at})"


def _items(operand: ptx.Operand) -> tuple[ptx.Operand, ...]:
    return operand.items if isinstance(operand, ptx.Vector) else (operand,)


_SHAPE = {"geometry": tuple(GEOMETRIES), "vector": ("", ".v2", ".v4"), "t": _WIDTHS, "mode": MODES}


@special("suld.b.{geometry}{vector}.{t}.{mode}", results=("b",), **_SHAPE)
def _load(emitter: Emitter, instruction: ptx.Instruction, geometry: str, t: str, mode: str, **_: str) -> None:
    targets, kind = _items(instruction.operands[0]), f"u{t[1:]}"
    place = _place(emitter, instruction, geometry)
    code = f"'{mode}', '{geometry}', {size(kind)}, {len(targets)}, {place}"
    values = emitter.fresh(f"surface_load(G, {emitter.place(instruction)}, {code})")
    for number, item in enumerate(targets):
        if item != ptx.Register("_"):
            emitter.write_extended(item, kind, f"{values}[{number}]")


@special("sust.b.{geometry}{vector}.{t}.{mode}", writes=0, **_SHAPE)
def _store(emitter: Emitter, instruction: ptx.Instruction, geometry: str, t: str, mode: str, **_: str) -> None:
    kind = f"u{t[1:]}"
    values = "".join(f"{emitter.read(item, kind)}, " for item in _items(instruction.operands[1]))
    code = f"'{mode}', '{geometry}', {size(kind)}, {_place(emitter, instruction, geometry)}, ({values})"
    emitter.line(f"surface_store(G, {emitter.place(instruction)}, {code})")


def _update(emitter: Emitter, instruction: ptx.Instruction, how: str, geometry: str, t: str, mode: str) -> None:
    (value,) = _items(instruction.operands[1])
    place = _place(emitter, instruction, geometry)
    code = f"'{mode}', '{geometry}', '{how}', {place}, {emitter.read(value, t.replace('b', 'u'))}"
    emitter.line(f"surface_update(G, {emitter.place(instruction)}, {code})")


for _how in UPDATES:
    special(
        "sured.b.{how}.{geometry}.{t}.{mode}", writes=0, how=(_how,), geometry=tuple(GEOMETRIES), mode=MODES,
        t=("b32",) if _how in ("and", "or") else ("u32", "s32", "u64", "s64")[: 3 if _how == "add" else 4],
    )(_update)  # fmt: skip
