"""mma.sp: matrix products of a warp whose first factor is half zeros and stored without them. PTX ISA, "mma.sp"."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .matrix import read_fragment, write_fragment
from .registry import special


def selectors(kind: str, depth: int) -> int:
    """Return how many values the sparsity selector has for elements of a type and an extent of k."""
    lanes = depth * (2 if kind == "tf32" else 1) // 16  # of a group of four, with 32 bits for 8 of k in two rows
    return 4 // lanes


def _register(
    shapes: tuple[str, ...], a: tuple[str, ...], b: tuple[str, ...], c: tuple[str, ...], sat: tuple[str, ...] = ("",)
) -> None:
    """Register mma.sp.sync.aligned.SHAPE.row.col{sat}.C.A.B.C, with ordered metadata and without."""

    @special(
        "mma.sp{order}.sync.aligned.{shape}.row.col{sat}.{c}.{a}.{b}.{c}", gate="warp",
        order=("", "::ordered_metadata"), shape=shapes, sat=sat, a=a, b=b, c=c,
    )  # fmt: skip
    def _multiply(
        emitter: Emitter, instruction: ptx.Instruction, order: str, shape: str, sat: str, a: str, b: str, c: str
    ) -> None:
        target, left, right, plus, metadata, selector, _ = instruction.operands
        choices = selectors(a, int(shape.split("k")[1]))
        if not isinstance(selector, ptx.Immediate) or selector.value not in range(choices):
            emitter.refuse(f"the sparsity selector must be one of the constants {', '.join(map(str, range(choices)))}")
        parts = [read_fragment(emitter, each, kind) for each, kind in zip((left, right, plus), (a, b, c), strict=True)]
        code = (
            f"matrix_multiply_sparse(G, {emitter.place(instruction)}, '{shape}.{c}.{a}.{b}.{c}.sp{sat}', "
            f"{', '.join(parts)}, {emitter.read(metadata, 'u32')}, {selector.value}, {bool(order)})"
        )
        write_fragment(emitter, target, c, code, 2 if c == "f16" else 4)


_register(("m16n8k16", "m16n8k32"), ("f16",), ("f16",), ("f16", "f32"))
_register(("m16n8k16", "m16n8k32"), ("bf16",), ("bf16",), ("f32",))
_register(("m16n8k8", "m16n8k16"), ("tf32",), ("tf32",), ("f32",))
_register(("m16n8k64",), ("e4m3", "e5m2"), ("e4m3", "e5m2"), ("f32",))
_register(("m16n8k32", "m16n8k64"), ("s8", "u8"), ("s8", "u8"), ("s32",), ("", ".satfinite"))
