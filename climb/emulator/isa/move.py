"""Moves, packing, and address-space conversions."""

from __future__ import annotations

import numpy as np

from .. import ptx
from ..memory.layout import RESERVED
from .emitter import Emitter
from .registry import helper, special
from .types import DTYPES, WIDTHS, size

#: Special registers that `system.clock` reads, and their types.
CLOCKS = {
    "%clock": "u32", "%clock_hi": "u32", "%clock64": "u64",
    "%globaltimer": "u64", "%globaltimer_lo": "u32", "%globaltimer_hi": "u32",
}  # fmt: skip
_POSITIONS = (
    "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
)  # fmt: skip
#: The driver passes the address of the grid barrier, which cooperative groups use, in these: high half, low half.
ENVIRONMENT = ("%envreg1", "%envreg2")
SPECIAL_TYPES = {
    **CLOCKS,
    "%laneid": "u32", "%warpid": "u32", "%nwarpid": "u32", "%gridid": "u64", "%smid": "u32", "%nsmid": "u32",
    "%lanemask_eq": "u32", "%lanemask_lt": "u32", "%lanemask_le": "u32", "%lanemask_gt": "u32", "%lanemask_ge": "u32",
    "%cluster_ctarank": "u32", "%cluster_nctarank": "u32", "%is_explicit_cluster": "pred", "%dynamic_smem_size": "u32",
    **dict.fromkeys(ENVIRONMENT, "u32"),
    **{f"{RESERVED}_{what}": "u32" for what in ("begin", "end", "cap", "0", "1")},
    **{f"%{name}.{axis}": "u32" for name in _POSITIONS for axis in "xyz"},
}  # fmt: skip


@special("mov.pred", results=("pred",))
@special("mov.{sign}{n}", results=("b{n}",), sign=("b", "u", "s", "f"), n=WIDTHS)
def _move(emitter: Emitter, instruction: ptx.Instruction, **_: str) -> None:
    target, source = instruction.operands
    kind = instruction.opcode.removeprefix("mov.")
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
        whole = f"u{8 * size(kind)}"
        emitter.write(target, whole, f"pack(({', '.join(parts)}), '{DTYPES[whole]}')")
        return
    if isinstance(source, ptx.Register) and source.name in CLOCKS:
        wide = CLOCKS[source.name]
        high = " >> np.uint64(32)" if source.name.endswith("_hi") else ""
        emitter.write(target, wide, f"(system_clock(G){high}).astype({DTYPES[wide]})")
        return
    if isinstance(source, ptx.Register) and source.name.startswith("%envreg") and source.name not in ENVIRONMENT:
        emitter.refuse(f"{source.name} is not supported: what the driver passes in it is not documented")
    emitter.alias(target, source, kind)


@helper
def unpack(value: np.ndarray, each: int) -> np.ndarray:
    """Split every element into parts of `each` bytes, lowest first; shape (blocks, threads, parts)."""
    value = np.ascontiguousarray(value)
    return value.reshape(*value.shape, 1).view(f"uint{8 * each}")


@helper
def pack(parts: tuple[np.ndarray, ...], dtype: str) -> np.ndarray:
    """Join parts, lowest first, to one value of `dtype`."""
    out = np.empty((*np.broadcast_shapes(*(p.shape for p in parts)), len(parts)), parts[0].dtype)
    for index, part in enumerate(parts):
        out[:, :, index] = part
    return out.view(dtype)[:, :, 0]


@special("cvta{to}.{space}.u64", results=("b64",), to=("", ".to"), space=("global", "const"))
def _same_address(emitter: Emitter, instruction: ptx.Instruction, **_: str) -> None:
    emitter.alias(*instruction.operands, "u64")


@special("cvta{to}.{space}.u64", results=("s64",), operands=("s64",), to=("", ".to"),
         space=("shared", "local", "param", "param::entry"))  # fmt: skip
def _window(emitter: Emitter, instruction: ptx.Instruction, to: str, space: str) -> None:
    """Add the base of the window that a space has in generic addresses, or subtract it."""
    target, source = instruction.operands
    base = f"{space.partition('::')[0].upper()}_WINDOW"
    emitter.write(target, "s64", f"{emitter.read(source, 's64')} {'-' if to else '+'} {base}")
