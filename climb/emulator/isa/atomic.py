"""Atomics: atom returns the old value, red does not. Every access takes effect at once, so scope and order of memory
change nothing."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .registry import special
from .types import dtype

OPERATIONS = {
    "add": ("u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.f16x2", "noftz.bf16", "noftz.bf16x2"),
    "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
    "exch": ("b32", "b64"), "cas": ("b16", "b32", "b64"), "inc": ("u32",), "dec": ("u32",),
}  # fmt: skip
#: The operations with which a loop can wait for another thread.
WAITING = ("cas", "exch", "add", "or", "and")
#: The part of the runtime that serves a space, if its name differs.
_SERVED = {"shared::cta": "shared", "shared::cluster": "cluster"}
MEMORY = {
    "scope": ("", ".cta", ".gpu", ".sys", ".cluster"),
    "order": ("", ".relaxed", ".acquire", ".release", ".acq_rel"),
}
#: Half-precision types: the integer type that holds the value, and the operation on it.
HALVES = {
    "f16": ("u16", "add.f16"), "bf16": ("u16", "add.bf16"), "f16x2": ("u32", "add.f16x2"),
    "bf16x2": ("u32", "add.bf16x2"),
}  # fmt: skip


def _atomic(emitter: Emitter, instruction: ptx.Instruction, name: str, space: str, how: str, t: str, **_: str) -> None:
    space = _SERVED.get(space[1:], space[1:])
    operands = instruction.operands[name == "atom" :]
    returns = name == "atom" and emitter.is_read(instruction.operands[0])
    kind = t.removeprefix("noftz.")
    kind, how = HALVES.get(kind, ("u" + kind[1:] if kind[0] == "b" else kind, how))
    values = [emitter.read(operand, kind) for operand in operands[1:]]
    site = emitter.site(instruction, "shared" if space == "cluster" else space, "atomic", dtype(kind), 1)
    if not returns and how == "add" and operands[1] == ptx.Immediate(1) and kind in ("u32", "s32"):
        emitter.combine(site)
    other = values[1] if len(values) > 1 else "None"
    address = emitter.address(operands[0], space)
    code = f"atomic_{space}(G, {site}, '{how}', {address}, {values[0]}, {other}, {returns})"
    if returns:
        emitter.write(instruction.operands[0], kind, code)
    else:
        emitter.line(code)


# The orders in which compilers write the modifiers: PTX's own, NVRTC 12's for scopes, and libcu++'s.
_SPELLINGS = (
    "{name}{order}{scope}{space}.{how}.{t}",
    "{name}{space}{order}{scope}.{how}.{t}",
    "{name}{space}.{how}{order}{scope}.{t}",
    "{name}.{how}{order}{scope}{space}.{t}",
)
for _how, _types in OPERATIONS.items():
    _choices = {
        "space": ("", ".global", ".shared", *(f".{each}" for each in _SERVED)),
        "how": (_how,),
        "t": _types,
        **MEMORY,
    }
    special(*_SPELLINGS, name=("atom",), results=("b",), waits=_how in WAITING, **_choices)(_atomic)
    if _how not in ("cas", "exch"):
        special(*_SPELLINGS, name=("red",), writes=0, **_choices)(_atomic)


def _vector(emitter: Emitter, instruction: ptx.Instruction, name: str, count: str, **_: str) -> None:
    """atom.global.add.{v2,v4}.f32: neighbouring elements, each one atomic by itself."""
    returns = name == "atom" and emitter.is_read(instruction.operands[0])
    address, source = instruction.operands[name == "atom" :]
    values = [emitter.read(item, "f32") for item in source.items]
    site = emitter.site(instruction, "global", "atomic", dtype("f32"), int(count))
    where = emitter.address(address, "global")
    old = emitter.fresh(f"atomic_vector(G, {site}, {where}, ({', '.join(values)}), {returns})")
    if returns:
        for index, item in enumerate(instruction.operands[0].items):
            emitter.write(item, "f32", f"{old}[{index}]")


_VECTOR_SPELLINGS = (
    "{name}{order}{scope}.global.v{count}.f32.add",
    "{name}.global{order}{scope}.add.v{count}.f32",
    "{name}{order}{scope}.global.add.v{count}.f32",
)
special(*_VECTOR_SPELLINGS, name=("atom",), results=("b",), waits=True, count=("2", "4"), **MEMORY)(_vector)
special(*_VECTOR_SPELLINGS, name=("red",), writes=0, count=("2", "4"), **MEMORY)(_vector)
