"""The element types that arguments of ``climb emulate`` may have."""

from __future__ import annotations

import numpy as np

from climb.cli.errors import UsageError


def numeric(kind: str, where: str) -> np.dtype:
    """Return the NumPy type of this name. Raises UsageError for one that holds no numbers."""
    try:
        dtype = np.dtype(kind)
    except TypeError:
        raise UsageError(f"{where}: '{kind}' is not a NumPy dtype") from None
    if dtype.kind not in "biuf":
        raise UsageError(f"{where}: expected a numeric type, not '{kind}'")
    return dtype
