"""The sums of a Hopper tensor core, bit for bit.

A tensor core adds many products and an accumulator in one step, which no floating-point addition of IEEE 754 describes:

1. Products are exact. A product's exponent is the sum of its factors' exponents: its significand is not normalised.
2. All addends, the accumulator among them, are aligned to the largest exponent, and each is cut to `WIDTH` bits after
   the binary point, towards zero. Zeros have no say in the largest exponent, which is -133 at least.
3. What is left is added exactly, in any order.
4. The sum is normalised and rounded once: to float32 towards zero, to float16 to nearest, ties to even. Zero has no
   sign.

The model and its parameters go back to Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores"
(2021); Xie et al., "MMA-Sim" (2025), have Hopper's; `climb fuzz --tensor` compares this code with a GPU.
"""

from __future__ import annotations

import numpy as np

from .operands import Operand

WIDTH = 25  # bits after the binary point, f16, bf16 and tf32, and e4m3 and e5m2 as float16
NARROW = 13  # the same for wgmma with e4m3 and e5m2, whose float32 results also keep 13 bits
_FLOOR = -133  # the least exponent to which addends are aligned
_CHUNK = 1 << 18  # products that are worked on at a time
_NAN = {"f32": np.uint32(0x7FFFFFFF), "f16": np.uint16(0x7FFF)}
_MINUS_ZERO = {"f32": np.uint32(1 << 31), "f16": np.uint16(1 << 15)}


def fused_sum(left: Operand, right: Operand, plus: Operand, width: int = WIDTH) -> np.ndarray:
    """Return the exact sum of the aligned and cut addends of steps 1 to 3: float64 (products, rows, columns).

    `left` (products, rows, k), `right` (products, k, columns), `plus` (products, rows, columns).
    """
    count, rows, depth = left.value.shape
    columns = right.value.shape[2]
    out = np.empty((count, rows, columns))
    step = max(1, _CHUNK // (rows * depth * columns))
    for start in range(0, count, step):
        part = slice(start, start + step)
        a, b = (Operand(*(each[part] for each in one)) for one in (left, right))
        out[part] = _sum(a, b, Operand(plus.value[part], plus.exponent[part]), width)
    return out


def _sum(left: Operand, right: Operand, plus: Operand, width: int) -> np.ndarray:
    a, ea = (np.ascontiguousarray(np.moveaxis(each, 2, 0))[..., None] for each in left)  # (k, products, rows, 1)
    b, eb = (np.ascontiguousarray(np.moveaxis(each, 1, 0))[:, :, None] for each in right)  # (k, products, 1, columns)
    top = (ea + eb).max(axis=0)
    np.maximum(top, plus.exponent, out=top)
    np.maximum(top, np.int16(_FLOOR), out=top)
    unit = np.ldexp(1.0, width - top)
    with np.errstate(invalid="ignore"):
        cut = a * b
        cut *= unit
        np.trunc(cut, out=cut)
        total = cut.sum(axis=0)
        total += np.trunc(plus.value * unit)
        total /= unit
    return total


def rounded(total: np.ndarray, kind: str, fraction_bits: int = 23) -> np.ndarray:
    """Return codes of exact sums (float64): "f32" cut to `fraction_bits`, uint32, or "f16" rounded to nearest, uint16.

    NaN becomes the canonical NaN, all bits but the sign.
    """
    nan = np.isnan(total)
    if kind == "f16":
        with np.errstate(over="ignore"):
            codes = total.astype(np.float16).view(np.uint16)
    else:
        kept = (total.view(np.uint64) & np.uint64(~((1 << 52 - fraction_bits) - 1) & (1 << 64) - 1)).view(np.float64)
        small = np.abs(kept) < 2.0**-126
        if small.any():
            least = np.ldexp(1.0, -126 - fraction_bits)
            kept = np.where(small, np.trunc(total / least) * least, kept)
        with np.errstate(over="ignore", invalid="ignore"):
            codes = kept.astype(np.float32).view(np.uint32)
    codes = np.where(codes == _MINUS_ZERO[kind], codes.dtype.type(0), codes)
    return np.where(nan, _NAN[kind], codes) if nan.any() else codes
