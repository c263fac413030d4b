"""D = A B + C as each matrix instruction computes it on sm_90, from codes to codes.

Each function gives the same bits as an H200 in all sums that `climb fuzz --tensor` has compared, except for NaN
payloads of float64. Other architectures group and truncate addends differently.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...isa.half import narrow, widen
from ...isa.rounding import fma32, fma64, fma64_directed
from .accumulation import NARROW, WIDTH, fused_sum, rounded
from .operands import INTEGERS, Operand, decode, decode_normal, integers

EIGHT_BITS = ("e4m3", "e5m2")
_INVALID = np.uint64(0xFFF8 << 48)  # the NaN of an invalid operation on float64
_NO_SUM = {"f32": np.uint32(0), "f16": np.uint16(0)}


@dataclass(frozen=True)
class Types:
    """The types of a product: of a, b, c and d. `saturate`: clamp sums of integers, which otherwise wrap.

    `how`: for bits the operation instead of a multiplication, "xor" or "and"; for f64 the rounding, unless to nearest.
    """

    a: str
    b: str
    c: str
    d: str
    saturate: bool = False
    how: str = ""


def warp_product(a: np.ndarray, b: np.ndarray, c: np.ndarray, types: Types) -> np.ndarray:
    """mma.sync and wmma.mma: codes of A (products, rows, k), B (products, k, columns), C (products, rows, columns)."""
    if types.a in INTEGERS:
        return integer_product(a, b, c, types)
    if types.a == "f64":
        return _double_product(a, b, c, types.how)
    if types.a in EIGHT_BITS:
        return _byte_product(a, b, c, types)
    # Where c and d differ (wmma only), ptxas converts halves to float32 before the product, or float32 to halves after.
    plus = decode(c, types.c) if types.c == types.d else decode_normal(c, types.c)
    total = rounded(fused_sum(decode(a, types.a), decode(b, types.b), plus), "f32" if types.c == "f32" else types.d)
    return total if types.c == types.d or types.d == "f32" else narrow(total.view(np.float32).astype(np.float64), "f16")


def warpgroup_product(a: np.ndarray, b: np.ndarray, c: np.ndarray, types: Types) -> np.ndarray:
    """wgmma.mma_async, like `warp_product`. Sums of 8-bit floats are cut to 13 bits, so float32 results have 13
    bits."""
    if types.a in INTEGERS:
        return integer_product(a, b, c, types)
    width = NARROW if types.a in EIGHT_BITS else WIDTH
    total = fused_sum(decode(a, types.a), decode(b, types.b), decode(c, types.c), width)
    return rounded(total, types.d, NARROW if types.a in EIGHT_BITS else 23)


def integer_product(a: np.ndarray, b: np.ndarray, c: np.ndarray, types: Types) -> np.ndarray:
    """Products of integers: exact, then clamped or wrapped to 32 bits. Codes of s32: uint32."""
    left, right = integers(a, types.a), integers(b, types.b)
    total = np.matmul(left, right)  # exact: far below 2^53
    if types.how == "xor":  # ones in one of the two: those of a, and of b, without those of both twice
        total = left.sum(axis=2)[:, :, None] + right.sum(axis=1)[:, None] - 2 * total
    whole = total.astype(np.int64) + c.view(np.int32)
    if types.saturate:
        whole = np.clip(whole, -(1 << 31), (1 << 31) - 1)
    return whole.astype(np.uint32)


def tile_product(a: np.ndarray, b: np.ndarray, c: np.ndarray, types: Types) -> np.ndarray:
    """wmma.mma, for which ptxas writes the instructions of mma.sync; for tf32 those that multiply 4 by 4 of k."""
    if types.a != "tf32":
        return warp_product(a, b, c, types)
    for k in range(0, a.shape[2], 4):
        c = warp_product(a[:, :, k : k + 4], b[:, k : k + 4], c, types)
    return c


def _double_product(a: np.ndarray, b: np.ndarray, c: np.ndarray, how: str) -> np.ndarray:
    """Products of float64: a chain of fused multiply-adds that begins with the accumulator, by ascending k.

    The payload of NaN is that of the accumulator, else of a, else of b. For m16n8k16 an H200 sometimes keeps another.
    """
    left, right, total = (each.view(np.float64) for each in (a, b, c))
    for k in range(left.shape[2]):
        x, y = left[:, :, k, None], right[:, k, None]
        after = fma64_directed(x, y, total, how) if how else fma64(x, y, total)
        total = _quieted(after, total, x, y)
    return total.view(np.uint64)


def _quieted(value: np.ndarray, *operands: np.ndarray) -> np.ndarray:
    """Give NaN the payload of the first operand that is NaN, as a quiet NaN."""
    nan = np.isnan(value)
    if not nan.any():
        return value
    bits = np.full(value.shape, _INVALID)
    for each in reversed(operands):
        each = np.broadcast_to(each, value.shape)
        bits = np.where(np.isnan(each), each.view(np.uint64) | np.uint64(1 << 51), bits)
    return np.where(nan, bits, value.view(np.uint64)).view(np.float64)


def _byte_product(a: np.ndarray, b: np.ndarray, c: np.ndarray, types: Types) -> np.ndarray:
    """mma.sync of 8-bit floats: on sm_90 only warpgroups have such an instruction, so ptxas converts to float16.

    It makes two products of halves, of the lower and of the upper half of each register, and adds the accumulator by
    an ordinary addition. Each lane's registers hold four neighbours of a row: k modulo 4 tells the half.
    """
    kind = "f32" if types.d == "f32" else "f16"
    left, right = decode_normal(a, types.a), decode_normal(b, types.b)
    total = np.full(c.shape, _NO_SUM[kind])
    place = np.arange(a.shape[2]) % 4
    for half in (place < 2, place >= 2):
        x, y = (Operand(*(each[index] for each in one)) for one, index in
                ((left, np.s_[:, :, half]), (right, np.s_[:, half])))  # fmt: skip
        total = rounded(fused_sum(x, y, decode(total, kind)), kind)
    if kind == "f16":
        return narrow(widen(total, kind) + widen(c, kind), kind)
    with np.errstate(over="ignore", invalid="ignore"):
        found = total.view(np.float32) + c.view(np.float32)
    return np.where(np.isnan(found), np.uint32(0x7FFFFFFF), found.view(np.uint32))


def quad_product(a: np.ndarray, b: np.ndarray, c: np.ndarray, types: Types) -> np.ndarray:
    """mma.sync.m8n8k4 of halves, for which ptxas writes float32 code from sm_80 on.

    For float32 results, a chain of fused multiply-adds by ascending k is added to the accumulator; for halves, the sum
    of the first two products, then that of the other two.

    The machine code begins the chain with +0, so it never gives -0; each of the two sums begins with a plain product.
    """
    left, right = (widen(each, "f16").astype(np.float32) for each in (a, b))
    total = widen(c, "f16").astype(np.float32) if types.c == "f16" else c.view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for chain in ((0, 1, 2, 3),) if types.d == "f32" else ((0, 1), (2, 3)):
            part = left[:, :, chain[0], None] * right[:, chain[0], None]
            if types.d == "f32":
                part += np.float32(0)  # -0 becomes +0
            for k in chain[1:]:
                part = fma32(left[:, :, k, None], right[:, k, None], part)
            total = total + part
    if types.d == "f16":
        return narrow(total.astype(np.float64), "f16")
    return np.where(np.isnan(total), np.uint32(0x7FFFFFFF), total.view(np.uint32))
