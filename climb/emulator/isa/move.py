"""Moves, packing, and address-space conversions."""

from __future__ import annotations

import numpy as np

from .. import ptx
from . import helper, special
from .types import DTYPES, size

#: Clocks, and their types: see `system.clock`.
CLOCKS = {
    "%clock": "u32", "%clock_hi": "u32", "%clock64": "u64",
    "%globaltimer": "u64", "%globaltimer_lo": "u32", "%globaltimer_hi": "u32",
}  # fmt: skip
SPECIAL_TYPES = {
    **CLOCKS,
    "%laneid": "u32", "%warpid": "u32", "%nwarpid": "u32", "%gridid": "u64", "%smid": "u32", "%nsmid": "u32",
    "%lanemask_eq": "u32", "%lanemask_lt": "u32", "%lanemask_le": "u32", "%lanemask_gt": "u32", "%lanemask_ge": "u32",
    **{f"%{name}.{axis}": "u32" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"},
}  # fmt: skip


def _move(emitter, instruction: ptx.Instruction) -> None:
    target, source = instruction.operands
    kind = instruction.opcode.split(".")[1]
    if isinstance(target, ptx.Vector):
        each = size(kind) // len(target.items)
        packed = emitter.fresh(f"unpack({emitter.read(source, kind)}, {each})")
        for index, item in enumerate(target.items):
            if item != ptx.Register("_"):
                emitter.write(item, f"u{8 * each}", f"{packed}[:, :, {index}]")
        return
    if isinstance(source, ptx.Vector):
        each = size(kind) // len(source.items)
        parts = [emitter.read(item, f"u{8 * each}") for item in source.items]
        emitter.write(
            target, f"u{8 * size(kind)}", f"pack(({', '.join(parts)}), '{DTYPES['u' + str(8 * size(kind))]}')"
        )
        return
    if isinstance(source, ptx.Register) and source.name in CLOCKS:
        wide = CLOCKS[source.name]
        high = " >> np.uint64(32)" if source.name.endswith("_hi") else ""
        emitter.write(target, wide, f"(system_clock(G){high}).astype({DTYPES[wide]})")
        return
    if isinstance(source, ptx.Register) and source.name.startswith("%envreg"):
        emitter.refuse("grid.sync() and other waits of a whole grid need a cooperative launch, which is not supported")
    emitter.alias(target, source, kind)


for _kind in ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f16", "f32", "f64", "pred"):
    special(f"mov.{_kind}", results=("b" + _kind[1:] if _kind != "pred" else "pred",), operands=())(_move)


@helper
def unpack(value: np.ndarray, each: int) -> np.ndarray:
    """(b, t, n): the parts of `each` bytes of every element, lowest first."""
    value = np.ascontiguousarray(value)
    return value.reshape(*value.shape, 1).view(f"uint{8 * each}")


@helper
def pack(parts: tuple[np.ndarray, ...], dtype: str) -> np.ndarray:
    """One value of the parts, lowest first."""
    out = np.empty((*np.broadcast_shapes(*(p.shape for p in parts)), len(parts)), parts[0].dtype)
    for index, part in enumerate(parts):
        out[:, :, index] = part
    return out.view(dtype)[:, :, 0]


def _convert(emitter, instruction: ptx.Instruction) -> None:
    emitter.alias(*instruction.operands, "u64")


def _window(sign: str, name: str):
    def emit(emitter, instruction: ptx.Instruction) -> None:
        target, source = instruction.operands
        emitter.write(target, "s64", f"{emitter.read(source, 's64')} {sign} {name}")

    return emit


for _space in ("global", "const"):
    for _to in ("", "to."):
        special(f"cvta.{_to}{_space}.u64", results=("b64",), operands=())(_convert)
for _space in ("shared", "local", "param"):
    special(f"cvta.{_space}.u64", results=("s64",), operands=("s64",))(_window("+", f"{_space.upper()}_WINDOW"))
    special(f"cvta.to.{_space}.u64", results=("s64",), operands=("s64",))(_window("-", f"{_space.upper()}_WINDOW"))
