"""The rounding that the copy engine applies to values on their way to shared memory, as observed on an H200.

With the type TFLOAT32 it rounds float32 to TF32, which has 10 bits after the point. FLOAT32 and FLOAT32_FTZ leave every
bit unchanged, even in subnormal numbers.
"""

from __future__ import annotations

import numpy as np

#: The bits of a float32 that TF32 lacks.
_CUT = np.uint32(0x1FFF)
_INFINITY, _NAN, _SIGN = np.uint32(0x7F800000), np.uint32(0x7FFFE000), np.uint32(0x80000000)


def rounded(dtype: str, bits: np.ndarray) -> np.ndarray:
    """Return the bits that arrive in shared memory for the bits of elements, by the type of a tensor map."""
    return _to_tf32(bits) if dtype in ("tfloat32", "tfloat32_ftz") else bits


def _to_tf32(bits: np.ndarray) -> np.ndarray:
    """Round to nearest, ties to even; subnormal numbers are rounded too; values that are too large become infinite; one
    NaN."""
    even = bits >> np.uint32(13) & np.uint32(1)
    nearest = (bits + (_CUT >> np.uint32(1)) + even) & ~_CUT
    return np.where(bits & ~_SIGN > _INFINITY, _NAN, nearest)
