"""wgmma: asynchronous matrix products of a warpgroup, 128 threads. PTX ISA, section "wgmma.mma_async"."""

from __future__ import annotations

from dataclasses import replace

from .. import ptx
from .emitter import Emitter
from .matrix import read_fragment, write_fragment
from .registry import special
from .sparse import selectors
from .types import dtype

_COLUMNS = tuple(f"n{n}" for n in range(8, 257, 8))
_INTEGER_COLUMNS = tuple(f"n{n}" for n in (8, 16, 24, *range(32, 257, 16)))
_EIGHT_BITS = ("e4m3", "e5m2")


def _constant(emitter: Emitter, operand: ptx.Operand, choices: tuple[int, ...], name: str) -> int:
    if not isinstance(operand, ptx.Immediate) or operand.value not in choices:
        emitter.refuse(f"{name} must be one of the constants {', '.join(map(str, choices))}")
    return operand.value


def _multiply(
    emitter: Emitter, instruction: ptx.Instruction, n: str, k: str, d: str, a: str, b: str, sat: str = "", sp: str = ""
) -> None:
    """Emit D = A B + D, or A B where the predicate scale-d is false."""
    target, left, right, *rest = instruction.operands[:-1]  # the last one repeats d, which is read too
    sparse = ""
    if sp:
        metadata, selector, *rest = rest
        chosen = _constant(emitter, selector, tuple(range(selectors(a, int(k[1:])))), "the sparsity selector")
        sparse = f", {emitter.read(metadata, 'u32')}, {chosen}"
    use, *rest = rest
    negated = transposed = (False, False)
    if d == "s32":
        if rest:
            emitter.refuse("products of integers have neither signs nor layouts")
    else:
        signs, layouts = rest[:2], rest[2:]
        of_sixteen = a in ("f16", "bf16")
        in_registers = isinstance(left, ptx.Vector)
        if len(signs) != 2 or len(layouts) != of_sixteen * (2 - in_registers):
            emitter.refuse(f"{2 + of_sixteen * (2 - in_registers)} constants expected after scale-d")
        negated = tuple(_constant(emitter, each, (1, -1), "imm-scale") < 0 for each in signs)
        layouts = [_constant(emitter, each, (0, 1), "imm-trans") == 1 for each in layouts]
        transposed = (False, *layouts) if len(layouts) == 1 else tuple(layouts) or transposed
    columns = int(n[1:])
    count = columns // (4 if d == "f16" else 2)
    if not isinstance(target, ptx.Vector) or len(target.items) != count:
        emitter.refuse(f"{count} registers expected")
    if isinstance(left, ptx.Vector):
        if len(left.items) != 4:
            emitter.refuse("4 registers of a expected")
        first = read_fragment(emitter, left, a)
    else:
        first = emitter.read(left, "u64")
    # Every access has 16 bytes at an address that the descriptor gives.
    where = replace(instruction, operands=(ptx.Address(right, 0),))
    site = emitter.site(where, "shared", "load", dtype("u32"), 4)
    emitter.uncounted(site)
    form = f"m64{n}{k}.{d}.{a}.{b}.{d}{sp}{sat}"
    code = (
        f"group_multiply(G, {site}, '{form}', {emitter.product_number(instruction)}, {first}, "
        f"{emitter.read(right, 'u64')}, {read_fragment(emitter, target, d)}, {emitter.read(use, 'pred')}, "
        f"{negated}, {transposed}{sparse})"
    )
    write_fragment(emitter, target, d, code, count)


def _register(
    columns: tuple[str, ...], depth: int, d: tuple[str, ...], a: tuple[str, ...], b: tuple[str, ...],
    sat: tuple[str, ...] = ("",),
) -> None:  # fmt: skip
    """Register the dense products of `depth` elements of k, and the sparse ones, which have twice as many."""
    for sp, k in (("", depth), (".sp", 2 * depth)):
        special("wgmma.mma_async{sp}.sync.aligned.m64{n}{k}{sat}.{d}.{a}.{b}", gate="warpgroup", sp=(sp,),
                n=columns, k=(f"k{k}",), sat=sat, d=d, a=a, b=b)(_multiply)  # fmt: skip


_register(_COLUMNS, 16, ("f16", "f32"), ("f16",), ("f16",))
_register(_COLUMNS, 16, ("f32",), ("bf16",), ("bf16",))
_register(_COLUMNS, 8, ("f32",), ("tf32",), ("tf32",))
_register(_COLUMNS, 32, ("f16", "f32"), _EIGHT_BITS, _EIGHT_BITS)
_register(_INTEGER_COLUMNS, 32, ("s32",), ("s8", "u8"), ("s8", "u8"), ("", ".satfinite"))


@special("wgmma.fence.sync.aligned", writes=0, gate="warp")
def _fence(emitter: Emitter, instruction: ptx.Instruction) -> None:
    """Order the accesses to registers before it; `translation.product_registers` checks that a fence is there."""


@special("wgmma.commit_group.sync.aligned", writes=0, gate="warp")
def _commit(emitter: Emitter, instruction: ptx.Instruction) -> None:
    emitter.line("group_commit(G)")


@special("wgmma.wait_group.sync.aligned", writes=0, gate="warp")
def _wait(emitter: Emitter, instruction: ptx.Instruction) -> None:
    number = instruction.operands[0]
    if not isinstance(number, ptx.Immediate):
        emitter.refuse("the number of groups must be a constant")
    emitter.line(f"group_wait(G, {number.value}, {emitter.place(instruction)})")
