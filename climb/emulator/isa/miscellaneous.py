"""Calls that the driver serves (printf, failed assertions, malloc), trap, and hints that change no value."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .registry import special


@special("call.vprintf", results=("b64",), operands=("u64", "u64"))
def _print(emitter: Emitter, instruction: ptx.Instruction) -> None:
    target, form, values = instruction.operands
    site = emitter.place(instruction)
    found = emitter.fresh(f"system_print(G, {site}, {emitter.read(form, 's64')}, {emitter.read(values, 's64')})")
    emitter.write(target, "u64", found)


@special("call.malloc", results=("s64",))
def _malloc(emitter: Emitter, instruction: ptx.Instruction) -> None:
    target, nbytes = instruction.operands
    emitter.write(target, "s64", f"heap_malloc(G, {emitter.place(instruction)}, {emitter.read(nbytes, 's64')})")


@special("call.free", writes=0)
def _free(emitter: Emitter, instruction: ptx.Instruction) -> None:
    emitter.line(f"heap_free(G, {emitter.place(instruction)}, {emitter.read(instruction.operands[0], 's64')})")


@special("call.__assertfail", writes=0)
def _assertion(emitter: Emitter, instruction: ptx.Instruction) -> None:
    message = emitter.read(instruction.operands[0], "s64")
    emitter.line(f"system_assert(G, {emitter.place(instruction)}, {message})")


@special("trap", writes=0)
def _trap(emitter: Emitter, instruction: ptx.Instruction) -> None:
    emitter.line(f"system_trap(G, {emitter.place(instruction)})")


@special("nanosleep.u32", writes=0)
@special("pmevent", writes=0)
@special("applypriority{space}.L2::evict_normal", writes=0, space=("", ".global"))
@special("prefetch{space}.{level}", writes=0, space=("", ".global", ".local"), level=("L1", "L2"))
@special("prefetch.global.L2::{priority}", writes=0, priority=("evict_last", "evict_normal"))
@special("prefetchu.L1", writes=0)
def _nothing(emitter: Emitter, instruction: ptx.Instruction, **_: str) -> None:
    """Write nothing: no value depends on pauses, prefetches and performance events."""
