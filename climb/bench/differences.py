"""Compare outputs with their references element by element, on the host or on a GPU: ``xp`` is NumPy or CuPy.

CuPy compiles with ``-ftz=true``, which flushes subnormal float32 numbers to zero. A GPU's result therefore counts only
if such a number cannot change it; ``None`` means that the host has to compare.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: Elements compared at a time on a GPU; the float64 temporaries of one chunk stay below 1 GB.
GPU_CHUNK = 1 << 23
#: A subnormal float32 number, less than 1.2e-38, is below the last digit of anything divided by this.
_LEAST_SCALE = 1e-20


def relative_errors(xp: Any, got: Any, want: Any, scale: float) -> Any:
    """Return the relative error of each element; inf where only one of the two is NaN or infinite."""
    with np.errstate(all="ignore"):
        difference = xp.abs(got.astype(xp.float64) - want.astype(xp.float64))
        if got.dtype.kind != "f":
            # Two large integers may differ and still be one float64: a difference must never vanish.
            difference = xp.where(got == want, 0.0, xp.maximum(difference, 1.0))
            return difference / scale if scale else xp.where(difference > 0, xp.inf, 0.0)
        rounded = want.astype(got.dtype)
        errors = difference / scale if scale else xp.where(difference > 0, xp.inf, 0.0)
        errors = xp.where(xp.isinf(got) | xp.isinf(want), xp.where(got == rounded, 0.0, xp.inf), errors)
        nan_got, nan_want = xp.isnan(got), xp.isnan(want)
        return xp.where(nan_got | nan_want, xp.where(nan_got & nan_want, 0.0, xp.inf), errors)


def largest_finite(xp: Any, expected: Any, dtype: np.dtype) -> float:
    """Return the largest absolute reference value that is finite in the output's type; 0 if there is none."""
    values = expected
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            values = expected[xp.isfinite(expected.astype(dtype, copy=False))]
    # Two comparisons instead of abs(): the smallest integer has no absolute value in its type.
    return max(float(values.max()), -float(values.min()), 0.0) if values.size else 0.0


def component_errors(xp: Any, got: Any, want: Any, terms: Any) -> Any:
    """Return ``|got - want| / terms`` of each finite element, 0 for the others; inf where only the terms are zero."""
    got, want, terms = (array.astype(xp.float64) for array in (got, want, terms))
    with np.errstate(all="ignore"):
        difference = xp.where(xp.isfinite(got) & xp.isfinite(want), xp.abs(got - want), 0.0)
        return xp.where(difference > 0, difference / terms, 0.0)


def agreed_error(xp: Any, out: Any, reference: Any, tolerance: float, chunk: int = GPU_CHUNK) -> float | None:
    """Return the largest relative error of an output; None if an element is wrong or the GPU cannot tell."""
    flat, expected = out.reshape(-1), reference.reshape(-1)
    starts = range(0, flat.size, chunk)
    scale = max((largest_finite(xp, expected[at : at + chunk], flat.dtype) for at in starts), default=0.0)
    if scale < _LEAST_SCALE:
        return None
    largest = 0.0
    for at in starts:
        errors = relative_errors(xp, flat[at : at + chunk], expected[at : at + chunk], scale)
        if not bool((errors <= tolerance).all()):
            return None
        largest = max(largest, float(errors.max()))
    return largest


def agreed_component_error(xp: Any, out: Any, reference: Any, magnitude: Any, chunk: int = GPU_CHUNK) -> float | None:
    """Return the largest componentwise error of an output; None if the GPU cannot tell."""
    flat, expected, terms = out.reshape(-1), reference.reshape(-1), magnitude.reshape(-1)
    largest = 0.0
    for at in range(0, flat.size, chunk):
        part = slice(at, at + chunk)
        if not bool((terms[part] >= _LEAST_SCALE).all()):
            return None
        largest = max(largest, float(component_errors(xp, flat[part], expected[part], terms[part]).max()))
    return largest
