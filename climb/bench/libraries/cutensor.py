"""cuTENSOR: a transposition as a permutation of two modes, through nvmath's bindings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from climb.bench.libraries.choosing import Prepared
from climb.bench.libraries.description import Description, describe, dotted

_R_32F = 0
_IDENTITY, _DEFAULT_ALGORITHM, _NO_JIT = 1, -1, 0
#: Bytes on which both arrays begin; measured arrays begin on more.
ALIGNMENT = 128


def cutensor(algorithm: str) -> Callable[[], Description]:
    """A peer's ``describe`` for cuTENSOR, with the version that is loaded."""

    def found() -> Description:
        from nvmath.bindings import cutensor as library

        return describe("cuTENSOR", dotted(library.get_version(), 10000, 100, 1), algorithm, "fp32")

    return found


def transposition(source: Any, target: Any) -> Prepared:
    """Return a launch that writes the transpose of the matrix ``source`` into ``target``, float32 CuPy arrays."""
    import cupy
    import torch  # noqa: F401 - loads cuBLASLt, which cuTENSOR needs
    from nvmath.bindings import cutensor as library

    handle = library.create()
    rows, cols = source.shape

    def tensor(extents: tuple[int, int]) -> int:
        return library.create_tensor_descriptor(handle, 2, list(extents), [extents[1], 1], _R_32F, ALIGNMENT)

    operation = library.create_permutation(
        handle, tensor((rows, cols)), [0, 1], _IDENTITY, tensor((cols, rows)), [1, 0], library.ComputeDesc.COMPUTE_32F()
    )
    preference = library.create_plan_preference(handle, _DEFAULT_ALGORITHM, _NO_JIT)
    plan = library.create_plan(handle, operation, preference, 0)
    one = np.ones(1, np.float32)

    def enqueue() -> None:
        stream = cupy.cuda.get_current_stream().ptr
        library.permute(handle, plan, one.ctypes.data, source.data.ptr, target.data.ptr, stream)

    return Prepared(enqueue)
