"""The call of BLAS: ``sgemm(A, B, C, alpha=2.0, beta=1.0)`` on matrices with any distance between their rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from climb import ArgumentError, BoundRung, cp
from climb.bench.arguments import check_device
from climb.bench.binding import bound
from climb.bench.identity import expand_includes
from kernels.sgemm.sgemm import ladder
from kernels.sgemm.sgemm.product import MAX_EXTENT, Plan, Product, Scratch
from kernels.sgemm.sgemm.rungs import PLANS, SCRATCH

FLOAT = 4
QUAD = 16

_modules: dict[tuple[str, str], Any] = {}


def sgemm(A: Any, B: Any, C: Any, *, alpha: float = 1.0, beta: float = 0.0, rung: str | None = None) -> None:
    """C = alpha A B + beta C, in place; with beta = 0 whatever C holds is not read.

    A is (m, k), B (k, n), C (m, n), float32 on the device; each may be a view with rows farther apart than they are
    long, as ``whole[2:30, 5:25]``. ``rung`` is the ladder's last if not given. Raises ArgumentError for another dtype,
    shapes that do not fit, elements of a row that are apart, rows that overlap, and a C that shares memory with A or B.
    """
    product = product_of(A, B, C, alpha, beta)
    if product is not None:
        name = rung or ladder.names[-1]
        launch(ladder[name], PLANS[name], SCRATCH.get(name, lambda _: {}), product, {"A": A, "B": B, "C": C})


def product_of(A: Any, B: Any, C: Any, alpha: float, beta: float) -> Product | None:
    """The product of three matrices on the device, or None if C is empty. Raises ArgumentError, as ``sgemm`` does."""
    for name, array in (("A", A), ("B", B), ("C", C)):
        check_device(name, array, cp.ndarray, "cp")
        if array.dtype != np.float32:
            raise ArgumentError(f"argument '{name}' is {array.dtype}; expected float32")
        if array.ndim != 2:
            raise ArgumentError(f"argument '{name}' has {array.ndim} dimension(s); expected 2")
    (m, k), n = A.shape, B.shape[1]
    for name, array, shape in (("B", B, (k, n)), ("C", C, (m, n))):
        if array.shape != shape:
            raise ArgumentError(f"argument '{name}' has shape {array.shape}; expected {shape}")
    pitches = [_pitch(name, array) for name, array in (("A", A), ("B", B), ("C", C))]
    for name, array in (("A", A), ("B", B)):
        if C.size and array.size and _start(C) < _end(array) and _start(array) < _end(C):
            raise ArgumentError(f"argument 'C' overlaps argument '{name}' in memory; expected separate arrays")
    if C.size == 0:
        return None
    quads = all(p % 4 == 0 for p in pitches) and all(_start(x) % QUAD == 0 for x in (A, B, C))
    width = 4 if quads and n % 4 == 0 and k % 4 == 0 else 1
    return Product(m, n, k, *pitches, alpha=alpha, beta=beta, width=width)


def _pitch(name: str, array: Any) -> int:
    """The floats from one row to the next. Raises ArgumentError."""
    rows, cols = array.shape
    if array.size == 0:  # CuPy gives the strides of an empty array as zeros
        return cols
    if cols > 1 and array.strides[1] != FLOAT:
        raise ArgumentError(
            f"argument '{name}' has strides {array.strides} bytes; expected the floats of a row adjoining"
        )
    pitch = array.strides[0] // FLOAT if rows > 1 else cols
    if (array.strides[0] % FLOAT and rows > 1) or pitch < cols or max(pitch, rows) > MAX_EXTENT:
        raise ArgumentError(
            f"argument '{name}' has strides {array.strides} bytes; expected rows of {cols} floats that do not overlap"
        )
    return pitch


def _start(array: Any) -> int:
    return array.data.ptr


def _end(array: Any) -> int:
    """One past the array's last byte."""
    return (
        array.data.ptr
        + sum((extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True))
        + FLOAT
    )


def launch(bound_rung: BoundRung, plan: Plan, scratch: Scratch, product: Product, arrays: dict[str, Any]) -> None:
    """Compute a product by a rung's launches on arrays of the device. Raises ArgumentError for one it does not take."""
    reason = bound_rung.rung.requires({"m": product.m, "n": product.n, "k": product.k})
    if reason is not None:
        raise ArgumentError(f"rung '{bound_rung.name}' does not take {product}: {reason}")
    everything = {**arrays, **{name: cp.empty(shape, dtype) for name, (shape, dtype) in scratch(product).items()}}
    for each in plan(product):
        key = (str(bound_rung.path), each.kernel)
        if key not in _modules:
            code = expand_includes(bound_rung.path)
            _modules[key] = cp.RawModule(code=code, options=bound_rung.options, name_expressions=(each.kernel,))
        function = _modules[key].get_function(each.kernel)
        if each.shared_mem > 48 << 10:
            function.max_dynamic_shared_size_bytes = each.shared_mem
        function(each.grid, each.block, tuple(bound(a, everything) for a in each.args), shared_mem=each.shared_mem)
