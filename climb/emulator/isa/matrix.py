"""Matrix products of a warp: mma.sync, and the PTX of nvcuda::wmma for 16 x 16 x 16 halves (both formats)
and 16 x 16 x 8 tf32."""

from __future__ import annotations

from dataclasses import replace

from .. import ptx
from .emitter import Emitter
from .registry import special
from .types import dtype

FULL = ptx.Immediate(0xFFFFFFFF)
_WHOLE = ("mma.sync.", "ldmatrix.sync.", "wmma.")
LAYOUTS = ("row", "col")
SPACES = ("", ".global", ".shared", ".shared::cta")


def name_all_lanes(function: ptx.Function) -> ptx.Function:
    """Append a mask of all lanes to the operands of matrix instructions, which have no mask of their own."""
    if not any(isinstance(item, ptx.Instruction) and item.opcode.startswith(_WHOLE) for item in function.body):
        return function

    def masked(item: ptx.Instruction | ptx.Label) -> ptx.Instruction | ptx.Label:
        whole = isinstance(item, ptx.Instruction) and item.opcode.startswith(_WHOLE)
        return replace(item, operands=(*item.operands, FULL)) if whole else item

    return replace(function, body=[masked(item) for item in function.body])


def _tuple(emitter: Emitter, operand: ptx.Operand, kind: str) -> str:
    return f"({''.join(emitter.read(item, kind) + ', ' for item in operand.items)})"


def write_fragment(emitter: Emitter, operand: ptx.Operand, kind: str, code: str, count: int) -> None:
    """Write the `count` registers that `code` computes."""
    if not isinstance(operand, ptx.Vector) or len(operand.items) != count:
        emitter.refuse(f"{count} registers expected")
    result = emitter.fresh(code)
    for index, item in enumerate(operand.items):
        emitter.write(item, kind, f"{result}[{index}]")


def _type(kind: str) -> str:
    """The type of the registers of a fragment: pairs of half-precision values and tf32 are 32 bits."""
    return "f32" if kind == "f32" else "u32"


def _multiply(emitter: Emitter, instruction: ptx.Instruction, k: str, t: str, total: str) -> None:
    """mma.sync.aligned.SHAPE.row.col.D.A.B.C with D = C = `total` and A = B = `t`."""
    target, left, right, plus, _ = instruction.operands
    parts = f"{_tuple(emitter, left, 'u32')}, {_tuple(emitter, right, 'u32')}, {_tuple(emitter, plus, _type(total))}"
    code = f"matrix_multiply(G, {emitter.place(instruction)}, {int(k)}, '{t}', '{total}', {parts})"
    write_fragment(emitter, target, _type(total), code, 4 if total == "f32" else 2)


for _t, _k, _totals in (
    ("f16", ("8", "16"), ("f16", "f32")), ("bf16", ("8", "16"), ("f32",)), ("tf32", ("4", "8"), ("f32",)),
):  # fmt: skip
    special(
        "mma.sync.aligned.m16n8k{k}.row.col.{total}.{t}.{t}.{total}", gate="warp", k=_k, t=(_t,), total=_totals
    )(_multiply)  # fmt: skip


def _transfer(
    emitter: Emitter, instruction: ptx.Instruction, action: str, matrix: str, layout: str, space: str, kind: str
) -> str:
    """The arguments of a load or store: the site, what it moves, and where."""
    space = space.removeprefix(".").removesuffix("::cta")
    address = next(each for each in instruction.operands if isinstance(each, ptx.Address))
    strides = instruction.operands[2:-1]
    stride = emitter.read(strides[0], "u32") if strides else emitter.read(ptx.Immediate(16), "u32")
    if kind == "f32":
        site = emitter.site(instruction, space, action, dtype("f32"), 2 if layout == "row" else 1)
    elif kind == "tf32":
        site = emitter.site(instruction, space, action, dtype("u32"), 1)
    elif space == "shared" and matrix in "ab":
        site = emitter.site(instruction, space, action, dtype("u32"), 4)
    else:
        site = emitter.site(instruction, space, action, dtype("u32"), 1)
    return f"{site}, '{space}', '{matrix}', {layout == 'row'}, '{kind}', {emitter.address(address, space)}, {stride}"


def _load_tile(
    emitter: Emitter, instruction: ptx.Instruction, matrix: str, layout: str, space: str, t: str, **_: str
) -> None:
    code = f"tile_load(G, {_transfer(emitter, instruction, 'load', matrix, layout, space, t)})"
    few = t in ("bf16", "tf32") or (matrix == "c" and t == "f16")
    write_fragment(emitter, instruction.operands[0], _type(t), code, 4 if few else 8)


def _store_tile(emitter: Emitter, instruction: ptx.Instruction, layout: str, space: str, t: str, **_: str) -> None:
    where = _transfer(emitter, instruction, "store", "d", layout, space, t)
    emitter.line(f"tile_store(G, {where}, {_tuple(emitter, instruction.operands[1], _type(t))})")


for _matrices, _shape, _types in (
    (("a", "b"), "m16n16k16", ("f16", "bf16")),
    (("a", "b"), "m16n16k8", ("tf32",)),
    (("c",), "m16n16k16", ("f16", "f32")),
    (("c",), "m16n16k8", ("f32",)),
):
    _choices = {"layout": LAYOUTS, "shape": (_shape,), "space": SPACES, "t": _types}
    special(
        "wmma.load.{matrix}.sync.aligned.{layout}.{shape}{space}.{t}", gate="warp", matrix=_matrices, **_choices
    )(_load_tile)  # fmt: skip
    if _matrices == ("c",):
        special("wmma.store.d.sync.aligned.{layout}.{shape}{space}.{t}", writes=0, gate="warp", **_choices)(_store_tile)


def _multiply_tiles(emitter: Emitter, instruction: ptx.Instruction, d: str, c: str, t: str = "f16", **_: str) -> None:
    """Multiply fragments, in which the layouts of the matrices no longer show."""
    target, left, right, plus, _ = instruction.operands
    parts = f"{_tuple(emitter, left, 'u32')}, {_tuple(emitter, right, 'u32')}, {_tuple(emitter, plus, _type(c))}"
    code = f"tile_multiply(G, {emitter.place(instruction)}, '{t}', '{d}', {parts})"
    write_fragment(emitter, target, _type(d), code, 8 if d == "f32" else 4)


_LAYOUTS = {"left": LAYOUTS, "right": LAYOUTS}
special(
    "wmma.mma.sync.aligned.{left}.{right}.m16n16k16.{d}.{c}", gate="warp", d=("f16", "f32"), c=("f16", "f32"),
    **_LAYOUTS,
)(_multiply_tiles)  # fmt: skip
for _shape, _t in (("m16n16k16", "bf16"), ("m16n16k8", "tf32")):
    special(
        "wmma.mma.sync.aligned.{left}.{right}.{shape}.{d}.{t}.{t}.{c}", gate="warp", shape=(_shape,), d=("f32",),
        t=(_t,), c=("f32",), **_LAYOUTS,
    )(_multiply_tiles)  # fmt: skip
