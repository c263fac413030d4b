"""The functions of CuPy's namespace by name.

:mod:`climb.fake_cupy.functions` enters them, and :mod:`climb.fake_cupy.arrays` looks them up when a function of NumPy
is called on a device array. The dictionary is in a separate module so that neither of the two imports the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[str, Callable[..., Any]] = {}
