"""mma.sync: matrix products of a warp. PTX ISA, section "mma"."""

from __future__ import annotations

from dataclasses import replace

from .. import ptx
from .emitter import Emitter
from .registry import special

FULL = ptx.Immediate(0xFFFFFFFF)
_WHOLE = (
    "mma.sync.", "mma.sp", "ldmatrix.sync.", "stmatrix.sync.", "wmma.", "wgmma.fence.", "wgmma.commit_group.",
    "wgmma.wait_group.", "setmaxnreg.", "tensormap.cp_fenceproxy.",
)  # fmt: skip
_GROUP = "wgmma.mma_async."


def complete_operands(function: ptx.Function) -> ptx.Function:
    """Append the operands that matrix instructions leave out: a mask of all lanes, or, for wgmma.mma_async, the
    accumulators, which it reads as well as writes."""
    if not any(
        isinstance(item, ptx.Instruction) and item.opcode.startswith((*_WHOLE, _GROUP)) for item in function.body
    ):
        return function

    def masked(item: ptx.Instruction | ptx.Label) -> ptx.Instruction | ptx.Label:
        if isinstance(item, ptx.Instruction) and item.opcode.startswith(_GROUP):
            return replace(item, operands=(*item.operands, item.operands[0]))
        whole = isinstance(item, ptx.Instruction) and item.opcode.startswith(_WHOLE)
        return replace(item, operands=(*item.operands, FULL)) if whole else item

    return replace(function, body=[masked(item) for item in function.body])


def register_kind(kind: str) -> str:
    """Return the type of the registers of a fragment: elements of less than 32 bits are packed, tf32 are untyped."""
    return kind if kind in ("f32", "f64", "s32") else "u32"


def read_fragment(emitter: Emitter, operand: ptx.Operand, kind: str) -> str:
    """Return an expression for the tuple of a fragment's registers. The braces may be absent around a single
    register."""
    items = operand.items if isinstance(operand, ptx.Vector) else (operand,)
    return f"({''.join(emitter.read(item, register_kind(kind)) + ', ' for item in items)})"


def write_fragment(emitter: Emitter, operand: ptx.Operand, kind: str, code: str, count: int) -> None:
    """Write the `count` registers that `code` computes."""
    items = operand.items if isinstance(operand, ptx.Vector) else (operand,)
    if len(items) != count:
        emitter.refuse(f"{count} registers expected")
    result = emitter.fresh(code)
    for index, item in enumerate(items):
        emitter.write(item, register_kind(kind), f"{result}[{index}]")


def write_product(
    emitter: Emitter, instruction: ptx.Instruction, form: str, kinds: tuple[str, str, str, str], count: int
) -> None:
    """D = A B + C: `kinds` of d, a, b and c; d has `count` registers."""
    target, left, right, plus, _ = instruction.operands
    parts = [read_fragment(emitter, each, kind) for each, kind in zip((left, right, plus), kinds[1:], strict=True)]
    code = f"matrix_multiply(G, {emitter.place(instruction)}, '{form}', {', '.join(parts)})"
    write_fragment(emitter, target, kinds[0], code, count)


def _register(
    shapes: tuple[str, ...], a: tuple[str, ...], b: tuple[str, ...], c: tuple[str, ...], *,
    after: tuple[str, ...] = ("",), before: tuple[str, ...] = ("",),
) -> None:  # fmt: skip
    """Register mma.sync.aligned.SHAPE.row.col{before}.C.A.B.C{after}."""

    @special(
        "mma.sync.aligned.{shape}.row.col{before}.{c}.{a}.{b}.{c}{after}", gate="warp", shape=shapes, before=before,
        a=a, b=b, c=c, after=after,
    )  # fmt: skip
    def _multiply(
        emitter: Emitter, instruction: ptx.Instruction, shape: str, before: str, a: str, b: str, c: str, after: str
    ) -> None:
        rows = int(shape[1:].split("n")[0])
        count = rows // 8 * (1 if c == "f16" else 2)
        write_product(emitter, instruction, f"{shape}.{c}.{a}.{b}.{c}{before}{after}", (c, a, b, c), count)


_HALF_SHAPES = ("m16n8k8", "m16n8k16")
_register(_HALF_SHAPES, ("f16",), ("f16",), ("f16", "f32"))
_register(_HALF_SHAPES, ("bf16",), ("bf16",), ("f32",))
_register(("m16n8k4", "m16n8k8"), ("tf32",), ("tf32",), ("f32",))
_register(("m16n8k16", "m16n8k32"), ("e4m3", "e5m2"), ("e4m3", "e5m2"), ("f16", "f32"))
_register(("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"), ("f64",), ("f64",), ("f64",))
_SATURATE = {"before": ("", ".satfinite")}
_register(("m8n8k16", "m16n8k16", "m16n8k32"), ("s8", "u8"), ("s8", "u8"), ("s32",), **_SATURATE)
_register(("m8n8k32", "m16n8k32", "m16n8k64"), ("s4", "u4"), ("s4", "u4"), ("s32",), **_SATURATE)
_register(
    ("m8n8k128", "m16n8k128", "m16n8k256"), ("b1",), ("b1",), ("s32",), after=(".xor.popc", ".and.popc")
)  # fmt: skip


@special("mma.sync.aligned.m8n8k4.{left}.{right}.{d}.f16.f16.{c}", gate="warp", left=("row", "col"),
         right=("row", "col"), d=("f16", "f32"), c=("f16",))  # fmt: skip
@special("mma.sync.aligned.m8n8k4.{left}.{right}.{d}.f16.f16.{c}", gate="warp", left=("row", "col"),
         right=("row", "col"), d=("f32",), c=("f32",))  # fmt: skip
def _quads(emitter: Emitter, instruction: ptx.Instruction, left: str, right: str, d: str, c: str) -> None:
    """Four products of 8 x 4 and 4 x 8 halves, each by eight lanes."""
    form = f"m8n8k4.{d}.f16.f16.{c}.{left}.{right}"
    write_product(emitter, instruction, form, (d, "f16", "f16", c), 8 if d == "f32" else 4)
