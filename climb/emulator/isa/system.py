"""What the driver does for a kernel: printf, and stopping it."""

from __future__ import annotations

from .. import ptx
from . import special


@special("call.vprintf", results=("b64",), operands=("u64", "u64"))
def _print(emitter, instruction: ptx.Instruction) -> None:
    target, form, values = instruction.operands
    site = emitter.place(instruction)
    found = emitter.fresh(f"system_print(G, {site}, {emitter.read(form, 's64')}, {emitter.read(values, 's64')})")
    emitter.write(target, "u64", found)


@special("call.__assertfail", writes=0)
def _assertion(emitter, instruction: ptx.Instruction) -> None:
    message = emitter.read(instruction.operands[0], "s64")
    emitter.line(f"system_assert(G, {emitter.place(instruction)}, {message})")


@special("trap", writes=0)
def _trap(emitter, instruction: ptx.Instruction) -> None:
    emitter.line(f"system_trap(G, {emitter.place(instruction)})")


def _nothing(emitter, instruction: ptx.Instruction) -> None:
    """Pauses and hints: no value depends on them."""


for _name in (
    "nanosleep.u32", "prefetch.global.L1", "prefetch.global.L2", "prefetch.L1", "prefetch.L2", "prefetchu.L1",
    "prefetch.local.L1", "prefetch.local.L2", "prefetch.global.L2::evict_last", "prefetch.global.L2::evict_normal",
    "pmevent", "cp.async.bulk.prefetch.L2.global",
):  # fmt: skip
    special(_name, writes=0)(_nothing)
