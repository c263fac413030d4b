"""Registers of warpgroups, dependent launches, and cache policies."""

from __future__ import annotations

import numpy as np

from .. import ptx
from .emitter import Emitter
from .registry import special

POLICIES = ("evict_last", "evict_normal", "evict_first", "evict_unchanged")
SECONDS = ("evict_first", "evict_unchanged")


@special("setmaxnreg.{how}.sync.aligned.u32", writes=0, gate="warp", how=("inc", "dec"))
def _registers(emitter: Emitter, instruction: ptx.Instruction, how: str) -> None:
    number = instruction.operands[0]
    if not isinstance(number, ptx.Immediate) or number.value % 8 or not 24 <= number.value <= 256:
        emitter.refuse("the number of registers must be a constant from 24 to 256 and a multiple of 8")
    emitter.line(f"warpgroup_registers(G, {emitter.place(instruction)}, {number.value}, {how == 'inc'})")


@special("griddepcontrol.{how}", writes=0, how=("wait", "launch_dependents"))
def _dependents(emitter: Emitter, instruction: ptx.Instruction, how: str) -> None:
    """Write nothing: a launch begins when the one before it has ended."""


@special("createpolicy.fractional.L2::{first}.b64", results=("b64",), first=POLICIES)
@special("createpolicy.fractional.L2::{first}.L2::{second}.b64", results=("b64",), first=POLICIES, second=SECONDS)
@special("createpolicy.range{space}.L2::{first}.L2::{second}.b64", results=("b64",), space=("", ".global"),
         first=POLICIES, second=SECONDS)  # fmt: skip
@special("createpolicy.cvt.L2.b64", results=("b64",))
def _policy(emitter: Emitter, instruction: ptx.Instruction, **_: str) -> None:
    """A policy is opaque, and no value depends on it."""
    emitter.write(instruction.operands[0], "u64", emitter.constant(np.array(1, np.uint64)))
