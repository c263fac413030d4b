"""The instructions that the emulator runs: an allow-list of full opcodes, written as patterns.

To add one, register it in the module of its PTX ISA section. Without memory access or control flow it is one line:

    simple("add.{t}", "{t}", ("{t}", "{t}"), "{0} + {1}", t=("s32", "u32"))

states the opcode, the type of the result, the types of the operands, the NumPy expression, and the values of each
choice. The expression may call any function marked `@helper`. Types are those of PTX, and two open kinds leave the
dtype to the destination register: `i32` is a 32-bit integer of either sign, `b32` any 32 bits. An instruction that
needs more than an expression is a function decorated with `special`. See `registry` for both.
"""
# ruff: noqa: F401 -- importing an instruction module registers its instructions

from __future__ import annotations

from . import (
    async_copy,
    atomic,
    barrier,
    bulk,
    calls,
    cluster,
    comparison,
    control_flow,
    conversion,
    eight_bits,
    extended_precision,
    floating,
    half,
    half_comparison,
    half_conversion,
    integer,
    load_store,
    logic,
    matrix,
    matrix_rows,
    mbarrier,
    miscellaneous,
    move,
    remote_stores,
    resources,
    rounding,
    scalar_video,
    sparse,
    surface,
    tensor_copy,
    tensor_map,
    texture,
    tiles,
    video,
    warp,
    warpgroup,
)
from .registry import HELPERS, Rule, lookup

__all__ = ["HELPERS", "Rule", "lookup"]
