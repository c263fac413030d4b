"""A case's references on the GPU, where outputs are compared without copying each to the host.

The GPU only confirms agreement. An output that is not plainly right is compared again on the host, which decides and
says what is wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from climb.bench import differences
from climb.bench.cuda import backend, cp


class DeviceReference:
    """References, and magnitudes of terms, by the name of their output; copied to the GPU when first asked for."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Any] = {}
        self._usable = backend == "cupy"

    def error(self, name: str, out: Any, expected: np.ndarray, tolerance: float) -> float | None:
        """Return the largest error of a correct output, relative to the largest reference value; None if the host must
        decide."""
        if expected.shape != out.shape:
            return None
        return self._found(lambda: differences.agreed_error(cp, out, self._there("ref", name, expected), tolerance))

    def component_error(self, name: str, out: Any, expected: np.ndarray, magnitude: np.ndarray) -> float | None:
        """Return the largest componentwise error of an output; None if the host must decide."""

        def find() -> float | None:
            terms = self._there("terms", name, magnitude)
            return differences.agreed_component_error(cp, out, self._there("ref", name, expected), terms)

        return self._found(find)

    def _there(self, kind: str, name: str, host: np.ndarray) -> Any:
        if (kind, name) not in self._kept:
            self._kept[kind, name] = cp.asarray(host)
        return self._kept[kind, name]

    def _found(self, find: Callable[[], float | None]) -> float | None:
        if not self._usable:
            return None
        with null_stream():
            try:
                return find()
            except Exception:
                # A small GPU has no room for the references, and CuPy lacks some types: the host has both.
                self._kept.clear()
                self._usable = False
                return None


@contextlib.contextmanager
def null_stream() -> Iterator[None]:
    """Wait for the current stream, and make arrays on the null stream: its memory pool outlives that of a measurement.

    The null stream is done when the block ends. Without CuPy there is nothing to wait for.
    """
    if backend != "cupy":
        yield
        return
    cp.cuda.get_current_stream().synchronize()
    with cp.cuda.Stream.null:
        yield
        cp.cuda.get_current_stream().synchronize()


def poisoned_on_device(shape: tuple[int, ...], dtype: np.dtype, pattern: int) -> Any:
    """Return a device array full of this bit pattern."""
    return cp.full(shape, pattern, dtype=f"u{dtype.itemsize}").view(dtype)
