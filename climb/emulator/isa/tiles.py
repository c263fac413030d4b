"""wmma: the PTX of nvcuda::wmma. Section "Matrix operations: wmma" of the PTX ISA."""

from __future__ import annotations

from .. import ptx
from .emitter import Emitter
from .matrix import read_fragment, write_fragment, write_product
from .registry import special
from .types import dtype

LAYOUTS = ("row", "col")
SPACES = ("", ".global", ".shared", ".shared::cta")
_SIXTEEN = ("m16n16k16", "m32n8k16", "m8n32k16")
_HALVES = ("f16", "bf16")
_ROUNDING = ("", ".rn", ".rz", ".rm", ".rp")


def _sizes(shape: str) -> tuple[int, int, int]:
    m, n, k = shape[1:].replace("n", " ").replace("k", " ").split()
    return int(m), int(n), int(k)


def _registers(matrix: str, shape: str, kind: str) -> int:
    """Return the registers that PTX has for a fragment. Those of a and b of f16 repeat if a fragment needs fewer than
    8."""
    m, n, k = _sizes(shape)
    if matrix in "ab":
        if kind == "f16":
            return 8
        bits = {"bf16": 16, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}[kind]
        return (m if matrix == "a" else n) * k // 32 // max(1, 32 // bits)
    return m * n // 32 // (2 if kind == "f16" else 1)


def _site(emitter: Emitter, instruction: ptx.Instruction, action: str, matrix: str, shape: str, layout: str, space: str,
          kind: str) -> str:  # fmt: skip
    """Return the sites of the accesses that ptxas makes for sm_90; see `runtime.tensor_cores.tiles`."""
    m, n, _ = _sizes(shape)
    element, count = dtype("u32"), 1
    if matrix in "cd":
        turned = (m, n) == (8, 32)
        if kind != "f16":
            element, count = dtype(kind), 2 if (layout == "row") != turned else 1
    elif kind == "f64":
        element = dtype("f64")
    else:
        along_k = (layout == "row") == (matrix == "a")
        by_bytes = kind in ("s8", "u8") and not along_k
        if by_bytes:
            element = dtype("u8")
        elif space == "shared" and kind not in ("bf16", "tf32"):
            count = 4
    return emitter.site(instruction, space, action, element, count)


def _arguments(
    emitter: Emitter, instruction: ptx.Instruction, action: str, matrix: str, layout: str, shape: str, space: str,
    kind: str,
) -> str:  # fmt: skip
    """Return the arguments of a load or store: the site, the registers or values, and the place."""
    space = space.removeprefix(".").removesuffix("::cta")
    address = next(each for each in instruction.operands if isinstance(each, ptx.Address))
    site = _site(emitter, instruction, action, matrix, shape, layout, space, kind)
    m, n, k = _sizes(shape)
    rows, columns = {"a": (m, k), "b": (k, n)}.get(matrix, (m, n))
    strides = instruction.operands[2:-1]
    stride = emitter.read(strides[0] if strides else ptx.Immediate(columns if layout == "row" else rows), "u32")
    where = emitter.address(address, space)
    return f"{site}, '{space}', '{matrix}.{shape}.{kind}', {layout == 'row'}, {where}, {stride}"


def _load(
    emitter: Emitter, instruction: ptx.Instruction, matrix: str, layout: str, shape: str, space: str, t: str
) -> None:
    code = f"tile_load(G, {_arguments(emitter, instruction, 'load', matrix, layout, shape, space, t)})"
    count = _registers(matrix, shape, t)
    if matrix in "ab" and t == "f16":
        code = f"({code} * 8)[:8]"
    write_fragment(emitter, instruction.operands[0], t, code, count)


def _store(emitter: Emitter, instruction: ptx.Instruction, layout: str, shape: str, space: str, t: str) -> None:
    where = _arguments(emitter, instruction, "store", "d", layout, shape, space, t)
    emitter.line(f"tile_store(G, {where}, {read_fragment(emitter, instruction.operands[1], t)})")


def _transfers(
    shapes: tuple[str, ...], types: tuple[str, ...], sums: tuple[str, ...], a: tuple[str, ...] = LAYOUTS,
    b: tuple[str, ...] = LAYOUTS,
) -> None:  # fmt: skip
    """Register the loads of a, b and c, and the stores of d, of some shapes; `types` of a and b, `sums` of c and d."""
    for matrix, layouts, kinds in (("a", a, types), ("b", b, types), ("c", LAYOUTS, sums)):
        special("wmma.load.{matrix}.sync.aligned.{layout}.{shape}{space}.{t}", gate="warp", matrix=(matrix,),
                layout=layouts, shape=shapes, space=SPACES, t=kinds)(_load)  # fmt: skip
    special("wmma.store.d.sync.aligned.{layout}.{shape}{space}.{t}", writes=0, gate="warp", layout=LAYOUTS,
            shape=shapes, space=SPACES, t=sums)(_store)  # fmt: skip


_transfers(_SIXTEEN, ("f16", "bf16", "s8", "u8"), ("f16", "f32", "s32"))
_transfers(("m16n16k8",), ("tf32",), ("f32",))
_transfers(("m8n8k4",), ("f64",), ("f64",))
_transfers(("m8n8k32",), ("s4", "u4"), ("s32",), ("row",), ("col",))
_transfers(("m8n8k128",), ("b1",), ("s32",), ("row",), ("col",))


def _multiply(
    emitter: Emitter, instruction: ptx.Instruction, shape: str, d: str, c: str, t: str = "f16", rest: str = "", **_: str
) -> None:
    """Multiply fragments; the layouts of the matrices no longer matter."""
    form = f"{shape}.{d}.{t}.{t}.{c}.wmma{rest}"
    write_product(emitter, instruction, form, (d, t, t, c), _registers("d", shape, d))


def _products(opcode: str, shapes: tuple[str, ...], left: tuple[str, ...] = LAYOUTS, right: tuple[str, ...] = LAYOUTS,
              **choices: tuple[str, ...]) -> None:  # fmt: skip
    special(opcode, gate="warp", shape=shapes, left=left, right=right, **choices)(_multiply)


_SAME = "wmma.mma.sync.aligned.{left}.{right}.{shape}.{d}.{t}.{t}.{c}"
_products("wmma.mma.sync.aligned.{left}.{right}.{shape}.{d}.{c}", _SIXTEEN, d=("f16", "f32"), c=("f16", "f32"))
_products(_SAME, _SIXTEEN, d=("f32",), t=("bf16",), c=("f32",))
_products(_SAME, ("m16n16k8",), d=("f32",), t=("tf32",), c=("f32",))
_products(_SAME + "{rest}", ("m8n8k4",), d=("f64",), t=("f64",), c=("f64",), rest=_ROUNDING)
_INTEGERS = {"d": ("s32",), "c": ("s32",), "rest": ("", ".satfinite")}
_products(_SAME + "{rest}", _SIXTEEN, t=("s8", "u8"), **_INTEGERS)
_products(_SAME + "{rest}", ("m8n8k32",), ("row",), ("col",), t=("s4", "u4"), **_INTEGERS)
_products(
    "wmma.mma{rest}.popc.sync.aligned.{left}.{right}.{shape}.{d}.{t}.{t}.{c}", ("m8n8k128",), ("row",), ("col",),
    d=("s32",), t=("b1",), c=("s32",), rest=(".xor", ".and"),
)  # fmt: skip
