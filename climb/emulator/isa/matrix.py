"""Matrix instructions of a warp: mma.sync, ldmatrix, and the PTX of nvcuda::wmma for 16 x 16 x 16 halves (both formats)
and 16 x 16 x 8 tf32."""

from __future__ import annotations

from dataclasses import replace

from .. import ptx
from . import special
from .types import dtype

FULL = ptx.Immediate(0xFFFFFFFF)
_WHOLE = ("mma.sync.", "ldmatrix.sync.", "wmma.")
LAYOUTS = ("row", "col")
SPACES = (".global", ".shared", ".shared::cta", "")


def name_all_lanes(function: ptx.Function) -> ptx.Function:
    """The function with a mask of all lanes after the operands of matrix instructions, which name none."""
    if not any(isinstance(item, ptx.Instruction) and item.opcode.startswith(_WHOLE) for item in function.body):
        return function

    def masked(item: ptx.Instruction | ptx.Label) -> ptx.Instruction | ptx.Label:
        whole = isinstance(item, ptx.Instruction) and item.opcode.startswith(_WHOLE)
        return replace(item, operands=(*item.operands, FULL)) if whole else item

    return replace(function, body=[masked(item) for item in function.body])


def _tuple(emitter, operand: ptx.Operand, kind: str) -> str:
    return f"({''.join(emitter.read(item, kind) + ', ' for item in operand.items)})"


def _write(emitter, operand: ptx.Operand, kind: str, code: str, count: int) -> None:
    if not isinstance(operand, ptx.Vector) or len(operand.items) != count:
        emitter.refuse(f"{count} registers expected")
    result = emitter.fresh(code)
    for index, item in enumerate(operand.items):
        emitter.write(item, kind, f"{result}[{index}]")


def _register(kind: str) -> str:
    return "f32" if kind == "f32" else "u32"


def _multiply(emitter, instruction: ptx.Instruction) -> None:
    """mma.sync.aligned.SHAPE.row.col.D.A.B.C"""
    shape, _, _, d, a, _, c = instruction.opcode.split(".")[3:]
    target, left, right, plus, _ = instruction.operands
    parts = f"{_tuple(emitter, left, 'u32')}, {_tuple(emitter, right, 'u32')}, {_tuple(emitter, plus, _register(c))}"
    code = f"matrix_multiply(G, {emitter.place(instruction)}, {int(shape[6:])}, '{a}', '{d}', {parts})"
    _write(emitter, target, _register(d), code, 4 if d == "f32" else 2)


for _shape, _kind, _sums in (
    ("m16n8k8", "f16", ("f16", "f32")), ("m16n8k16", "f16", ("f16", "f32")), ("m16n8k8", "bf16", ("f32",)),
    ("m16n8k16", "bf16", ("f32",)), ("m16n8k4", "tf32", ("f32",)), ("m16n8k8", "tf32", ("f32",)),
):  # fmt: skip
    for _sum in _sums:
        special(f"mma.sync.aligned.{_shape}.row.col.{_sum}.{_kind}.{_kind}.{_sum}", gate="warp")(_multiply)


def _load_matrix(emitter, instruction: ptx.Instruction) -> None:
    target, address, _ = instruction.operands
    parts = instruction.opcode.split(".")
    count = int(next(part for part in parts if part in ("x1", "x2", "x4"))[1])
    site = emitter.site(instruction, "shared", "load", dtype("u32"), 4)
    where = emitter.address(address, "shared")
    _write(emitter, target, "u32", f"matrix_rows(G, {site}, {count}, {'trans' in parts}, {where})", count)


for _count in ("x1", "x2", "x4"):
    for _turn in ("", ".trans"):
        for _space in (".shared", ".shared::cta"):
            special(f"ldmatrix.sync.aligned.m8n8.{_count}{_turn}{_space}.b16", gate="warp")(_load_matrix)


def _transfer(emitter, instruction: ptx.Instruction, action: str, matrix: str, layout: str, kind: str) -> str:
    """The arguments of a load or store: the site, what it moves, and where."""
    space = next(
        (each for each in ("global", "shared") if each in instruction.opcode.replace("::", ".").split(".")), ""
    )
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


def _load_tile(emitter, instruction: ptx.Instruction) -> None:
    """wmma.load.MATRIX.sync.aligned.LAYOUT.SHAPE.SPACE.TYPE"""
    parts = instruction.opcode.split(".")
    matrix, layout, kind = parts[2], parts[5], parts[-1]
    code = f"tile_load(G, {_transfer(emitter, instruction, 'load', matrix, layout, kind)})"
    few = kind in ("bf16", "tf32") or (matrix == "c" and kind == "f16")
    _write(emitter, instruction.operands[0], _register(kind), code, 4 if few else 8)


def _store_tile(emitter, instruction: ptx.Instruction) -> None:
    """wmma.store.d.sync.aligned.LAYOUT.m16n16k16.SPACE.TYPE"""
    parts = instruction.opcode.split(".")
    layout, kind = parts[5], parts[-1]
    where = _transfer(emitter, instruction, "store", "d", layout, kind)
    emitter.line(f"tile_store(G, {where}, {_tuple(emitter, instruction.operands[1], _register(kind))})")


def _multiply_tiles(emitter, instruction: ptx.Instruction) -> None:
    """wmma.mma.sync.aligned.LAYOUT.LAYOUT.SHAPE.D.C, or .D.A.B.C: layouts do not show in fragments."""
    d, *kinds, c = instruction.opcode.split(".")[7:]
    kind = kinds[0] if kinds else "f16"
    target, left, right, plus, _ = instruction.operands
    parts = f"{_tuple(emitter, left, 'u32')}, {_tuple(emitter, right, 'u32')}, {_tuple(emitter, plus, _register(c))}"
    code = f"tile_multiply(G, {emitter.place(instruction)}, '{kind}', '{d}', {parts})"
    _write(emitter, target, _register(d), code, 8 if d == "f32" else 4)


for _layout in LAYOUTS:
    for _space in SPACES:
        for _matrix, _kind in (
            *((m, k) for m in "ab" for k in ("m16n16k16.f16", "m16n16k16.bf16", "m16n16k8.tf32")),
            ("c", "m16n16k16.f16"), ("c", "m16n16k16.f32"), ("c", "m16n16k8.f32"),
        ):  # fmt: skip
            _shape, _type = _kind.split(".")
            _name = f"wmma.load.{_matrix}.sync.aligned.{_layout}.{_shape}{_space}.{_type}"
            special(_name, gate="warp")(_load_tile)
        for _shape, _type in (("m16n16k16", "f16"), ("m16n16k16", "f32"), ("m16n16k8", "f32")):
            _name = f"wmma.store.d.sync.aligned.{_layout}.{_shape}{_space}.{_type}"
            special(_name, writes=0, gate="warp")(_store_tile)
    for _other in LAYOUTS:
        for _rest in (
            *(f"m16n16k16.{d}.{c}" for d in ("f16", "f32") for c in ("f16", "f32")),
            "m16n16k16.f32.bf16.bf16.f32", "m16n16k8.f32.tf32.tf32.f32",
        ):  # fmt: skip
            special(f"wmma.mma.sync.aligned.{_layout}.{_other}.{_rest}", gate="warp")(_multiply_tiles)
