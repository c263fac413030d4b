"""Calls through pointers and recursion, as `ptx.frames` lowers them, and memory on the stack (alloca).

Opcodes that begin with `frame.` and `call.` with a word behind it are the emulator's own: no PTX text contains them.
"""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .registry import Rule, register, special
from .types import DTYPES, size


@special("call.outlined")
def _outlined(emitter: Emitter, instruction: ptx.Instruction) -> None:
    """Refuse: `ptx.frames` has replaced all of these before code is generated."""
    emitter.refuse("a call was not lowered")


register("frame.return", rule=Rule(None, writes=0, terminator="exit"))


@special("call.unknown", writes=0)
def _unknown(emitter: Emitter, instruction: ptx.Instruction) -> None:
    pointer = emitter.read(instruction.operands[0], "s64")
    emitter.line(f"frame_unknown(G, {emitter.place(instruction)}, {pointer})")


@special("frame.move")
def _move(emitter: Emitter, instruction: ptx.Instruction) -> None:
    target, source = instruction.operands
    emitter.alias(target, source, emitter.kind(source.name))


def _kinds(emitter: Emitter, instruction: ptx.Instruction) -> list[str]:
    return [emitter.kind(register.name) for register in instruction.operands[0].items]


@special("frame.push", writes=0)
def _push(emitter: Emitter, instruction: ptx.Instruction) -> None:
    kinds = _kinds(emitter, instruction)
    values = (emitter.read(each, kind) for each, kind in zip(instruction.operands[0].items, kinds, strict=True))
    nbytes = sum(4 if kind == "pred" else max(size(kind), 4) for kind in kinds)
    emitter.line(f"frame_push(G, {emitter.place(instruction)}, [{', '.join(values)}], {nbytes})")


@special("frame.pop")
def _pop(emitter: Emitter, instruction: ptx.Instruction) -> None:
    kinds = _kinds(emitter, instruction)
    types = ", ".join(f"'{DTYPES[kind]}'" for kind in kinds)
    found = emitter.fresh(f"frame_pop(G, [{types}])")
    for number, (each, kind) in enumerate(zip(instruction.operands[0].items, kinds, strict=True)):
        emitter.write(each, kind, f"{found}[{number}]")


@special("frame.enter", results=("s64",))
def _enter(emitter: Emitter, instruction: ptx.Instruction) -> None:
    target, nbytes, align = instruction.operands
    size_ = emitter.read(nbytes, "s64")
    emitter.write(target, "s64", f"stack_allocate(G, {emitter.place(instruction)}, {size_}, {align.value})")


@special("frame.leave", operands=("s64",), writes=0)
@special("stackrestore.u64", operands=("s64",), writes=0)
def _leave(emitter: Emitter, instruction: ptx.Instruction) -> None:
    emitter.line(f"stack_restore(G, {emitter.read(instruction.operands[0], 's64')})")


@special("stacksave.u64", results=("s64",))
def _save(emitter: Emitter, instruction: ptx.Instruction) -> None:
    emitter.write(instruction.operands[0], "s64", "stack_top(G)")


@special("alloca.u64", results=("s64",))
def _allocate(emitter: Emitter, instruction: ptx.Instruction) -> None:
    target, nbytes, *align = instruction.operands
    align = align[0].value if align else 8
    code = f"stack_allocate(G, {emitter.place(instruction)}, {emitter.read(nbytes, 's64')}, {align})"
    emitter.write(target, "s64", code)
