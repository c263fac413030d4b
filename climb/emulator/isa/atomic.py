"""Atomics: atom returns the old value, red does not. Scopes and orders change nothing where every access is at once."""

from __future__ import annotations

import itertools

from .. import ptx
from . import special
from .types import dtype

OPERATIONS = {
    "add": ("u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.f16x2", "noftz.bf16", "noftz.bf16x2"),
    "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
    "exch": ("b32", "b64"), "cas": ("b16", "b32", "b64"), "inc": ("u32",), "dec": ("u32",),
}  # fmt: skip
SPACES = ("", ".global", ".shared")
SCOPES = ("", ".cta", ".gpu", ".sys", ".cluster")
ORDERS = ("", ".relaxed", ".acquire", ".release", ".acq_rel")
#: Of types that NumPy has not: how they are kept, and the operation on what is kept.
HALVES = {
    "f16": ("u16", "add.f16"), "bf16": ("u16", "add.bf16"), "f16x2": ("u32", "add.f16x2"),
    "bf16x2": ("u32", "add.bf16x2"),
}  # fmt: skip


def _atomic(emitter, instruction: ptx.Instruction) -> None:
    parts = instruction.opcode.split(".")
    returns, kind = parts[0] == "atom", parts[-1]
    how = next(part for part in parts if part in OPERATIONS)
    space = next((part for part in parts if part in ("global", "shared")), "")
    operands = instruction.operands[returns:]
    kind, how = HALVES.get(kind, ("u" + kind[1:] if kind[0] == "b" else kind, how))
    values = [emitter.read(operand, kind) for operand in operands[1:]]
    site = emitter.site(instruction, space, "atomic", dtype(kind), 1)
    if how == "add" and operands[1] == ptx.Immediate(1) and kind in ("u32", "s32"):
        emitter.combine(site, instruction.operands[0] if returns else None)
    other = values[1] if len(values) > 1 else "None"
    address = emitter.address(operands[0], space)
    code = f"atomic_{space}(G, {site}, '{how}', {address}, {values[0]}, {other}, {returns})"
    if returns:
        emitter.write(instruction.operands[0], kind, code)
    else:
        emitter.line(code)


def _spellings(space: str, scope: str, order: str, how: str, kind: str) -> set[str]:
    """The orders in which compilers write the parts: PTX's own, NVRTC 12's for scopes, and libcu++'s."""
    return {
        f"{order}{scope}{space}.{how}.{kind}",
        f"{space}{order}{scope}.{how}.{kind}",
        f"{space}.{how}{order}{scope}.{kind}",
        f".{how}{order}{scope}{space}.{kind}",
    }


for _space, _scope, _order in itertools.product(SPACES, SCOPES, ORDERS):
    for _how, _kinds in OPERATIONS.items():
        for _kind in _kinds:
            for _name in sorted(_spellings(_space, _scope, _order, _how, _kind)):
                _waits = _how in ("cas", "exch", "add", "or", "and")
                special(f"atom{_name}", results=("b",), waits=_waits)(_atomic)
                if _how not in ("cas", "exch"):
                    special(f"red{_name}", writes=0)(_atomic)


def _vector(emitter, instruction: ptx.Instruction) -> None:
    """atom.global.add.{v2,v4}.f32: each element by itself, in neighbouring places."""
    parts = instruction.opcode.split(".")
    returns, count = parts[0] == "atom", int(next(part for part in parts if part in ("v2", "v4"))[1])
    address, source = instruction.operands[returns:]
    values = [emitter.read(item, "f32") for item in source.items]
    site = emitter.site(instruction, "global", "atomic", dtype("f32"), count)
    where = emitter.address(address, "global")
    old = emitter.fresh(f"atomic_vector(G, {site}, {where}, ({', '.join(values)}), {returns})")
    if returns:
        for index, item in enumerate(instruction.operands[0].items):
            emitter.write(item, "f32", f"{old}[{index}]")


for _count, _scope, _order in itertools.product(("v2", "v4"), SCOPES, ORDERS):
    for _name in {f"{_order}{_scope}.global.{_count}.f32.add", f".global{_order}{_scope}.add.{_count}.f32",
                  f"{_order}{_scope}.global.add.{_count}.f32"}:  # fmt: skip
        special(f"atom{_name}", results=("b",), waits=True)(_vector)
        special(f"red{_name}", writes=0)(_vector)
