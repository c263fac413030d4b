"""Registers of warpgroups, dependent launches, and cache policies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .. import ptx
from .emitter import Emitter
from .registry import special

HINT = ".L2::cache_hint"
POLICIES = ("evict_last", "evict_normal", "evict_first", "evict_unchanged")
SECONDS = ("evict_first", "evict_unchanged")


def without_hints(function: ptx.Function) -> ptx.Function:
    """Return the function without cache hints (the modifier and its operand, the policy), which change no value."""
    if not any(isinstance(item, ptx.Instruction) and HINT in item.opcode for item in function.body):
        return function

    def plain(item: ptx.Instruction | ptx.Label) -> ptx.Instruction | ptx.Label:
        if not isinstance(item, ptx.Instruction) or HINT not in item.opcode:
            return item
        return replace(item, opcode=item.opcode.replace(HINT, ""), operands=item.operands[:-1])

    return replace(function, body=[plain(item) for item in function.body])


@special("setmaxnreg.{how}.sync.aligned.u32", writes=0, gate="warp", how=("inc", "dec"))
def _registers(emitter: Emitter, instruction: ptx.Instruction, how: str) -> None:
    number = instruction.operands[0]
    if not isinstance(number, ptx.Immediate) or number.value % 8 or not 24 <= number.value <= 256:
        emitter.refuse("the number of registers must be a constant from 24 to 256 and a multiple of 8")
    emitter.line(f"warpgroup_registers(G, {emitter.place(instruction)}, {number.value}, {how == 'inc'})")


@special("griddepcontrol.{how}", writes=0, how=("wait", "launch_dependents"))
def _dependents(emitter: Emitter, instruction: ptx.Instruction, how: str) -> None:
    """Emit nothing that changes values: launches run one after the other, and `checks.dependent_launches` finds what
    depends on that."""
    emitter.line(f"{'wait_for' if how == 'wait' else 'start_next'}_launch(G, {emitter.place(instruction)})")


@special("createpolicy.fractional.L2::{first}.b64", results=("b64",), first=POLICIES)
@special("createpolicy.fractional.L2::{first}.L2::{second}.b64", results=("b64",), first=POLICIES, second=SECONDS)
@special("createpolicy.range{space}.L2::{first}.L2::{second}.b64", results=("b64",), space=("", ".global"),
         first=POLICIES, second=SECONDS)  # fmt: skip
@special("createpolicy.cvt.L2.b64", results=("b64",))
def _policy(emitter: Emitter, instruction: ptx.Instruction, **_: str) -> None:
    """Emit a policy, which is opaque and changes no value."""
    emitter.write(instruction.operands[0], "u64", emitter.constant(np.array(1, np.uint64)))
