"""Atomics: atom returns the old value, red does not. Scopes and orders change nothing where every access is at once."""

from __future__ import annotations

from .. import ptx
from . import special
from .types import dtype

OPERATIONS = {
    "add": ("u32", "s32", "u64", "f32", "f64"),
    "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
    "exch": ("b32", "b64"), "cas": ("b16", "b32", "b64"), "inc": ("u32",), "dec": ("u32",),
}  # fmt: skip
SCOPES = ("", ".cta", ".gpu", ".sys", ".cluster")
ORDERS = ("", ".relaxed", ".acquire", ".release", ".acq_rel")


def _atomic(emitter, instruction: ptx.Instruction) -> None:
    parts = instruction.opcode.split(".")
    returns, kind = parts[0] == "atom", parts[-1]
    how = next(part for part in parts if part in OPERATIONS)
    space = next((part for part in parts if part in ("global", "shared")), "")
    operands = instruction.operands[returns:]
    kind = "u" + kind[1:] if kind[0] == "b" else kind
    values = [emitter.read(operand, kind) for operand in operands[1:]]
    site = emitter.site(instruction, space, "atomic", dtype(kind), 1)
    other = values[1] if len(values) > 1 else "None"
    address = emitter.address(operands[0], space)
    code = f"atomic_{space}(G, {site}, '{how}', {address}, {values[0]}, {other}, {returns})"
    if returns:
        emitter.write(instruction.operands[0], kind, code)
    else:
        emitter.line(code)


for _space in (".global", ".shared", ""):
    for _scope in SCOPES:
        for _order in ORDERS:
            for _how, _kinds in OPERATIONS.items():
                for _kind in _kinds:
                    _name = f"{_order}{_scope}{_space}.{_how}.{_kind}"
                    _waits = _how in ("cas", "exch", "add", "or", "and")
                    special(f"atom{_name}", results=("b",), waits=_waits)(_atomic)
                    if _how not in ("cas", "exch"):
                        special(f"red{_name}", writes=0)(_atomic)
                    if _order == "" and _scope and _space:
                        # NVRTC 12 puts the scope after the space.
                        _other = f"{_space}{_scope}.{_how}.{_kind}"
                        special(f"atom{_other}", results=("b",), waits=_waits)(_atomic)
                        if _how not in ("cas", "exch"):
                            special(f"red{_other}", writes=0)(_atomic)
