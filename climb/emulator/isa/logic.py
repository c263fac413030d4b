"""Bits: logic, shifts, fields, counting. Shift amounts clamp at the width of the type."""

from __future__ import annotations

import numpy as np

from .. import ptx
from .emitter import Emitter
from .registry import Emit, helper, simple, special
from .types import WIDTHS

for _name, _sign in (("and", "&"), ("or", "|"), ("xor", "^")):
    simple(f"{_name}.b{{n}}", "i{n}", ("i{n}", "i{n}"), f"{{0}} {_sign} {{1}}", n=WIDTHS)
    simple(f"{_name}.pred", "pred", ("pred", "pred"), f"{{0}} {_sign} {{1}}")
simple("not.b{n}", "i{n}", ("i{n}",), "~{0}", n=WIDTHS)
simple("not.pred", "pred", ("pred",), "~{0}")
for _mode, _limit in (("clamp", "np.minimum({0}, np.uint32(32))"), ("wrap", "({0} & np.uint32(31))")):
    # bmsk: {1} ones from bit {0} on.
    _start, _length = (_limit.replace("{0}", each) + ".astype(uint64)" for each in ("{0}", "{1}"))
    simple(
        f"bmsk.{_mode}.b32", "u32", ("u32", "u32"),
        f"((((np.uint64(1) << {_length}) - np.uint64(1)) << {_start}) & np.uint64(0xFFFFFFFF)).astype(uint32)",
    )  # fmt: skip
simple("cnot.b{n}", "u{n}", ("u{n}",), "({0} == 0).astype(uint{n})", n=WIDTHS)


@helper
def shift_left(a: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Return a << amount (uint32); zero if the amount reaches the width."""
    width = 8 * a.itemsize
    moved = a << np.minimum(amount, width - 1).astype(a.dtype)
    return moved if amount.max() < width else np.where(amount < width, moved, a.dtype.type(0))


@helper
def shift_right(a: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Return a >> amount (uint32), filled with zeros, or with the sign for signed types."""
    width = 8 * a.itemsize
    moved = a >> np.minimum(amount, width - 1).astype(a.dtype)
    if a.dtype.kind == "i" or amount.max() < width:
        return moved
    return np.where(amount < width, moved, a.dtype.type(0))


def _shift(kind: str, sign: str, function: str) -> Emit:
    """Shift by an operator if the amount is a constant below the width, else by a function that clamps it."""

    def emit(emitter: Emitter, instruction: ptx.Instruction, n: str) -> None:
        amount = instruction.operands[2]
        value, by = emitter.sources(instruction)
        result = emitter.resolve(kind + n, instruction.operands[0])
        if isinstance(amount, ptx.Immediate) and 0 <= amount.value < int(n):
            emitter.write(instruction.operands[0], result, f"{value} {sign} {amount.value}")
        else:
            emitter.write(instruction.operands[0], result, f"{function}({value}, {by})")

    return emit


for _opcode, _kind, _sign, _function in (
    ("shl.b{n}", "i", "<<", "shift_left"),
    ("shr.b{n}", "u", ">>", "shift_right"),
    ("shr.u{n}", "u", ">>", "shift_right"),
    ("shr.s{n}", "s", ">>", "shift_right"),
):
    _type = f"{_kind}{{n}}"
    special(_opcode, results=(_type,), operands=(_type, "u32"), n=WIDTHS)(_shift(_kind, _sign, _function))


@helper
def population(a: np.ndarray) -> np.ndarray:
    """Count the set bits, as uint32."""
    count = np.zeros(a.shape, np.uint32)
    table = _POPULATION
    for byte in range(a.itemsize):
        count += table[((a >> a.dtype.type(8 * byte)) & a.dtype.type(255)).astype(np.intp)]
    return count


_POPULATION = np.array([bin(i).count("1") for i in range(256)], np.uint32)


@helper
def leading_zeros(a: np.ndarray) -> np.ndarray:
    """Count the zero bits above the highest set bit, as uint32; zero gives the width."""
    width = 8 * a.itemsize
    count = np.zeros(a.shape, np.uint32)
    value = a.copy()
    step = width // 2
    while step:
        high = (value >> a.dtype.type(width - step)) == 0
        count += np.where(high, np.uint32(step), np.uint32(0))
        value = np.where(high, value << a.dtype.type(step), value)
        step //= 2
    return count + (value >> a.dtype.type(width - 1) == 0)


@helper
def reverse_bits(a: np.ndarray) -> np.ndarray:
    """Reverse the order of the bits."""
    kind = a.dtype.type
    step, width = 1, 8 * a.itemsize
    while step < width:
        mask = kind(sum(((1 << step) - 1) << at for at in range(0, width, 2 * step)))
        a = ((a & mask) << kind(step)) | ((a >> kind(step)) & mask)
        step *= 2
    return a


_TYPES = ("s32", "u32", "s64", "u64")
simple("popc.b{n}", "u32", ("u{n}",), "population({0})", n=("32", "64"))
simple("clz.b{n}", "u32", ("u{n}",), "leading_zeros({0}).astype(uint32)", n=("32", "64"))
simple("brev.b{n}", "u{n}", ("u{n}",), "reverse_bits({0})", n=("32", "64"))


@helper
def highest_bit(a: np.ndarray) -> np.ndarray:
    """Return the position of the highest set bit, for signed types of the highest that differs from the sign.

    All bits are set if there is none.
    """
    width = 8 * a.itemsize
    if a.dtype.kind == "i":
        a = np.where(a < 0, ~a, a)
    zeros = leading_zeros(a.view(f"uint{width}"))
    return (np.uint32(width - 1) - zeros).astype(np.uint32)


@helper
def highest_shift(a: np.ndarray) -> np.ndarray:
    """Return how far to shift left to bring the highest significant bit to the top; all bits set if there is none."""
    at = highest_bit(a)
    none = np.uint32(0xFFFFFFFF)
    return np.where(at == none, none, np.uint32(8 * a.itemsize - 1) - at)


simple("bfind.{t}", "u32", ("{t}",), "highest_bit({0})", t=_TYPES)
simple("bfind.shiftamt.{t}", "u32", ("{t}",), "highest_shift({0})", t=_TYPES)


@helper
def extract_field(a: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Extract `length` bits of a from `position` on (both modulo 256), extended by zeros or by the field's sign."""
    width = 8 * a.itemsize
    position, length = (position & np.uint32(255)).astype(np.int64), (length & np.uint32(255)).astype(np.int64)
    bits = a.view(f"uint{width}").astype(np.uint64)
    top = np.minimum(position + length - 1, width - 1)
    moved = np.where(position < width, bits >> np.minimum(position, width - 1).astype(np.uint64), np.uint64(0))
    field = np.where(
        length < 64, (np.uint64(1) << np.minimum(length, 63).astype(np.uint64)) - np.uint64(1), ~np.uint64(0)
    )
    out = moved & field
    if a.dtype.kind == "i":
        sign = (bits >> np.maximum(top, 0).astype(np.uint64)) & np.uint64(1)
        known = np.clip(top - position + 1, 0, width)
        fill = np.where(known < 64, ~np.uint64(0) << np.minimum(known, 63).astype(np.uint64), np.uint64(0))
        out = np.where(sign == 1, out | fill, out)
        out = np.where(length == 0, np.uint64(0), out)
    return out.astype(f"uint{width}").view(a.dtype)


simple("bfe.{t}", "{t}", ("{t}", "u32", "u32"), "extract_field({0}, {1}, {2})", t=_TYPES)


@helper
def insert_field(a: np.ndarray, b: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Replace `length` bits of b from `position` on (both modulo 256) by the low bits of a."""
    width = 8 * a.itemsize
    position, length = (position & np.uint32(255)).astype(np.int64), (length & np.uint32(255)).astype(np.int64)
    index = np.minimum(position, width - 1).astype(np.uint64)
    ones = np.where(
        length < 64, (np.uint64(1) << np.minimum(length, 63).astype(np.uint64)) - np.uint64(1), ~np.uint64(0)
    )
    mask = np.where(position < width, ones << index, np.uint64(0))
    moved = a.astype(np.uint64) << index
    return ((b.astype(np.uint64) & ~mask) | (moved & mask)).astype(a.dtype)


simple("bfi.{t}", "{t}", ("{t}", "{t}", "u32", "u32"), "insert_field({0}, {1}, {2}, {3})", t=("b32", "b64"))


@helper
def lookup3(a: np.ndarray, b: np.ndarray, c: np.ndarray, table: int) -> np.ndarray:
    """Apply a bitwise function of three inputs, given as a truth table: bit 4*a + 2*b + c of `table`."""
    out = np.zeros((1, 1), a.dtype)
    for row in range(8):
        if table >> row & 1:
            out = out | ((a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c))
    return out


@special("lop3.{boolean}.b32", results=("u32", "pred"), writes=1, boolean=("or", "and"))
def _lop3_and_test(emitter: Emitter, instruction: ptx.Instruction, boolean: str) -> None:
    """lop3.BoolOp d|p, a, b, c, table, q: p tells whether d is not zero, combined with q."""
    target, *operands = instruction.operands
    sources = [emitter.read(operand, "u32") for operand in operands[:3]]
    found = emitter.fresh(f"lookup3({', '.join(sources)}, {operands[3].value})")
    other = emitter.read(operands[4], "pred")
    if target.first != ptx.Register("_"):
        emitter.write(target.first, "u32", found)
    emitter.write(target.second, "pred", f"({found} != 0) {'|' if boolean == 'or' else '&'} {other}")


@special("lop3.b32", results=("u32",), operands=("u32", "u32", "u32", "u32"))
def _lop3(emitter: Emitter, instruction: ptx.Instruction) -> None:
    sources = [emitter.read(operand, "u32") for operand in instruction.operands[1:4]]
    emitter.write(instruction.operands[0], "u32", f"lookup3({', '.join(sources)}, {instruction.operands[4].value})")


@helper
def funnel(low: np.ndarray, high: np.ndarray, amount: np.ndarray, left: bool, clamp: bool) -> np.ndarray:
    """Return the upper (left) or lower 32 bits of high:low shifted by `amount`, which wraps at 32 or clamps to 32."""
    by = (np.minimum(amount, 32) if clamp else amount & np.uint32(31)).astype(np.uint64)
    both = (high.astype(np.uint64) << np.uint64(32)) | low
    moved = (both << by) >> np.uint64(32) if left else both >> by
    return (moved & np.uint64(0xFFFFFFFF)).astype(np.uint32)


simple(
    "shf.{side}.{mode}.b32", "u32", ("u32", "u32", "u32"),
    lambda side, mode: f"funnel({{0}}, {{1}}, {{2}}, {side == 'l'}, {mode == 'clamp'})",
    side=("l", "r"), mode=("wrap", "clamp"),
)  # fmt: skip


@helper
def permute_bytes(a: np.ndarray, b: np.ndarray, control: np.ndarray) -> np.ndarray:
    """Pick four bytes of b:a by the nibbles of `control`; bit 3 of a nibble replicates the byte's sign."""
    both = (b.astype(np.uint64) << np.uint64(32)) | a
    out = np.zeros((1, 1), np.uint32)
    for place in range(4):
        pick = (control >> np.uint32(4 * place)) & np.uint32(15)
        byte = (both >> ((pick & np.uint32(7)) * np.uint32(8)).astype(np.uint64)).astype(np.uint32) & np.uint32(255)
        byte = np.where(pick & np.uint32(8), np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0)), byte)
        out = out | (byte << np.uint32(8 * place))
    return out


simple("prmt.b32", "u32", ("u32", "u32", "u32"), "permute_bytes({0}, {1}, {2})")
#: The control nibbles, lowest first, that a mode of prmt derives from the lower two bits of its third operand.
_MODES = {
    "f4e": ("3210", "4321", "5432", "6543"), "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"), "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"), "rc16": ("1010", "3232", "1010", "3232"),
}  # fmt: skip


@helper
def permute_by_mode(a: np.ndarray, b: np.ndarray, control: np.ndarray, controls: tuple[int, ...]) -> np.ndarray:
    """prmt with a mode: the control word is one of four."""
    return permute_bytes(a, b, np.array(controls, np.uint32)[control & np.uint32(3)])


simple(
    "prmt.b32.{mode}", "u32", ("u32", "u32", "u32"),
    lambda mode: f"permute_by_mode({{0}}, {{1}}, {{2}}, {tuple(int(each, 16) for each in _MODES[mode])})",
    mode=tuple(_MODES),
)  # fmt: skip


@helper
def extend_from(a: np.ndarray, width: np.ndarray, clamp: bool) -> np.ndarray:
    """szext: the lowest `width` bits of a, extended by zeros, or for int32 by their sign; none give zero.

    The width is clamped to 32, or taken modulo 32.
    """
    width = (np.minimum(width, 32) if clamp else width & np.uint32(31)).astype(np.int64)
    part = a.view(np.uint32).astype(np.int64) & (np.int64(1) << width) - 1
    if a.dtype.kind == "i":
        part = part - (((part << 1) >> width & 1) << width) * (width > 0)
    return part.astype(a.dtype)


simple(
    "szext.{mode}.{t}", "{t}", ("{t}", "u32"), lambda mode, t: f"extend_from({{0}}, {{1}}, {mode == 'clamp'})",
    mode=("clamp", "wrap"), t=("u32", "s32"),
)  # fmt: skip


@helper
def find_nth_set(mask: np.ndarray, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """fns: the position of the n-th set bit from `base` on, upwards for a positive offset n, downwards for a negative.

    Offset 0 means the bit at `base` itself. All bits set if there is none.
    """
    bits = mask[..., None] >> np.arange(32, dtype=np.uint32) & np.uint32(1) != 0
    position, base, offset = np.arange(32), base.astype(np.int64)[..., None], offset.astype(np.int64)[..., None]
    ahead = bits & np.where(offset == 0, position == base, np.where(offset > 0, position >= base, position <= base))
    upwards, downwards = ahead.cumsum(axis=-1), ahead[..., ::-1].cumsum(axis=-1)[..., ::-1]
    found = ahead & np.where(offset < 0, downwards == -offset, upwards == np.maximum(offset, 1))
    return np.where(found.any(axis=-1), found.argmax(axis=-1), 0xFFFFFFFF).astype(np.uint32)


simple("fns.b32", "u32", ("u32", "u32", "s32"), "find_nth_set({0}, {1}, {2})")
