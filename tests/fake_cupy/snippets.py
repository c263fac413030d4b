"""Pieces of CuPy code: some that must run here and give CuPy's results, and some that both must refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fake_cupy.source import EXPRESSIONS, SOURCE

# Each takes a namespace and returns a NumPy array, a number or a str; on a GPU, CuPy must return the same.
SNIPPETS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda cp: (cp.arange(6, dtype=cp.float32) * 2 - 1).get(),
    "power": lambda cp: (cp.arange(6) ** 2).get(),
    "dtype of a Python float": lambda cp: str((cp.arange(6, dtype=cp.float32) * 2.5).dtype),
    "dtype of a NumPy scalar": lambda cp: str((cp.arange(6, dtype=cp.float32) * np.float64(2.5)).dtype),
    "dtype of arange": lambda cp: f"{cp.arange(3).dtype} {cp.arange(3.0).dtype} {cp.ones(3).dtype}",
    "reflected": lambda cp: (1 / cp.full(3, 4.0)).get(),
    "NumPy scalar first": lambda cp: (np.float32(2) * cp.ones(3, dtype=cp.float32)).get(),
    "in place": lambda cp: _in_place(cp).get(),
    "comparison": lambda cp: (cp.arange(6) > 2).get(),
    "mask": lambda cp: _masked(cp).get(),
    "index array": lambda cp: cp.arange(10)[cp.asarray([3, 1, 3])].get(),
    "matmul": lambda cp: (cp.arange(6.0).reshape(2, 3) @ cp.ones((3, 2))).get(),
    "sum": lambda cp: cp.arange(10).sum().item(),
    "sum of an axis": lambda cp: cp.arange(6).reshape(2, 3).sum(axis=1).get(),
    "dtype of a sum": lambda cp: f"{cp.ones(3, dtype=cp.int32).sum().dtype} {cp.ones(3, dtype=cp.float16).sum().dtype}",
    "a sum is an array": lambda cp: repr(cp.arange(4, dtype=cp.float32).sum()),
    "an element is an array": lambda cp: repr(cp.arange(4, dtype=cp.float32)[2]),
    "a number in text": lambda cp: f"{cp.arange(4, dtype=cp.float32)[2]:.3f} {cp.arange(4)[3]}",
    "an array in text": lambda cp: str(cp.arange(4, dtype=cp.float32)),
    "conversions": lambda cp: (int(cp.arange(4)[3]), float(cp.ones(1)[0]), bool(cp.ones(1)[0])),
    "iteration": lambda cp: [int(v) for v in cp.arange(4)],
    "length": lambda cp: len(cp.zeros((3, 4))),
    "tolist": lambda cp: cp.arange(4).reshape(2, 2).tolist(),
    "NumPy's functions": lambda cp: np.sum(cp.arange(6).reshape(2, 3), axis=0).get(),
    "NumPy's ufuncs": lambda cp: np.sqrt(cp.arange(4, dtype=cp.float32) ** 2).get(),
    "type of NumPy's ufunc": lambda cp: isinstance(np.sqrt(cp.ones(3)), cp.ndarray),
    "maximum": lambda cp: cp.maximum(cp.arange(4), 2).get(),
    "where": lambda cp: cp.where(cp.arange(4) > 1, cp.arange(4), 0).get(),
    "allclose": lambda cp: bool(cp.allclose(cp.ones(3), cp.ones(3) + 1e-9)),
    "array_equal": lambda cp: bool(cp.array_equal(cp.ones(3), cp.zeros(3))),
    "isnan": lambda cp: cp.isnan(cp.full(3, cp.nan)).get(),
    "bincount": lambda cp: cp.bincount(cp.asarray([1, 1, 3]), minlength=5).get(),
    "concatenate": lambda cp: cp.concatenate((cp.ones(2), cp.zeros(2))).get(),
    "stack": lambda cp: cp.stack([cp.ones(2), cp.zeros(2)], axis=1).get(),
    "flip": lambda cp: cp.flip(cp.arange(4)).get(),
    "cumsum": lambda cp: cp.cumsum(cp.arange(4)).get(),
    "clip": lambda cp: cp.clip(cp.arange(6), 1, 3).get(),
    "outer": lambda cp: cp.outer(cp.arange(3), cp.arange(2)).get(),
    "pad": lambda cp: cp.pad(cp.arange(3.0), (1, 2)).get(),
    "pad with a constant": lambda cp: cp.pad(cp.ones((2, 2)), 1, mode="constant", constant_values=7).get(),
    "tile": lambda cp: cp.tile(cp.arange(3), (2, 2)).get(),
    "repeat": lambda cp: cp.repeat(cp.arange(4).reshape(2, 2), 2, axis=1).get(),
    "diff": lambda cp: cp.diff(cp.arange(4) ** 2).get(),
    "eye": lambda cp: cp.eye(3, dtype=cp.float32).get(),
    "events": lambda cp: _events(cp),
    "linspace": lambda cp: cp.linspace(0, 1, 5).get(),
    "like": lambda cp: (
        cp.zeros_like(cp.ones((2, 3), dtype=cp.int8)) + cp.full_like(cp.ones((2, 3), dtype=cp.int8), 3)
    ).get(),
    "astype": lambda cp: cp.asarray([1.9, -1.9]).astype(cp.int32).get(),
    "strides": lambda cp: cp.zeros((3, 4), dtype=cp.float32)[:, ::2].T.strides,
    "flags": lambda cp: (cp.zeros((3, 4)).T.flags.f_contiguous, cp.zeros((3, 4)).T.flags.c_contiguous),
    "layout of a transposed host array": lambda cp: cp.asarray(np.ones((3, 4)).T).strides,
    "layout of a strided host array": lambda cp: cp.asarray(np.ones((6, 4))[::2]).strides,
    "layout of a copy": lambda cp: (cp.zeros((3, 4)).T.copy().strides, cp.zeros((3, 4)).T.astype(cp.float32).strides),
    "layout of a sum": lambda cp: (cp.zeros((3, 4)).T + 1).strides,
    "address of a view": lambda cp: _offset(cp, lambda a: a[1:, 2:]),
    "address of a reversed view": lambda cp: _offset(cp, lambda a: a[::-1]),
    "address of a flat transpose": lambda cp: _offset(cp, lambda a: a.T.ravel()) != 0,
    "address of an empty array": lambda cp: cp.zeros((0, 3)).data.ptr,
    "alignment": lambda cp: cp.zeros(3, dtype=cp.uint8).data.ptr % 512,
    "division by zero": lambda cp: (cp.ones(2) / cp.zeros(2)).get(),
    "overflow": lambda cp: (cp.full(2, 200, dtype=cp.uint8) + cp.full(2, 100, dtype=cp.uint8)).get(),
    "broadcast assignment": lambda cp: _broadcast(cp).get(),
    "squeeze": lambda cp: cp.zeros((1, 3, 1)).squeeze().shape,
    "device": lambda cp: (
        cp.cuda.Device().synchronize(),
        cp.cuda.get_current_stream().synchronize(),
        int(cp.cuda.Device().id),
    ),
    "kernel": lambda cp: _kernel(cp).get(),
    "shared memory of a kernel": lambda cp: (
        cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS).get_function(EXPRESSIONS[0]).shared_size_bytes
    ),
    "dynamic shared memory of a kernel": lambda cp: (
        cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)
        .get_function(EXPRESSIONS[0])
        .max_dynamic_shared_size_bytes
    ),
    "threads of a kernel": lambda cp: cp.RawKernel(SOURCE, "small").max_threads_per_block,
    "local memory of a kernel": lambda cp: cp.RawKernel(SOURCE, "small").local_size_bytes,
}


def _events(cp: Any) -> tuple[bool, bool]:
    start, stop = cp.cuda.Event(), cp.cuda.Event(disable_timing=False)
    start.record()
    stop.record(cp.cuda.Stream.null)
    stop.synchronize()
    return stop.done, cp.cuda.get_elapsed_time(start, stop) < 0  # NaN on the emulator


def _in_place(cp: Any) -> Any:
    a = cp.arange(6, dtype=cp.float32)
    a += 1
    a[2:] *= cp.full(4, 2.0)
    return a


def _masked(cp: Any) -> Any:
    a = cp.arange(6)
    a[a > 3] = 0
    return a[a < 3]


def _broadcast(cp: Any) -> Any:
    a = cp.zeros((3, 4))
    a[...] = cp.arange(4.0)
    a[1] = 7
    return a


def _offset(cp: Any, view: Callable[[Any], Any]) -> int:
    a = cp.arange(12.0).reshape(3, 4)
    return view(a).data.ptr - a.data.ptr


def _kernel(cp: Any) -> Any:
    module = cp.RawModule(code=SOURCE, name_expressions=EXPRESSIONS)
    x, y = cp.arange(100, dtype=cp.float32), cp.empty(100, dtype=cp.float32)
    y.fill(1)
    module.get_function("axpy")((1,), (128,), (x, y, np.float32(3), 100))
    return y


# Each must be refused, here and by CuPy. (One difference: CuPy passes a NumPy array of one element to a kernel by
# value. TestArguments holds that fake_cupy refuses it.)
REFUSED: dict[str, Callable[[Any], Any]] = {
    "np.asarray": lambda cp: np.asarray(cp.ones(3)),
    "np.array of arrays": lambda cp: np.array([cp.ones(3), cp.ones(3)]),
    "numpy.testing": lambda cp: np.testing.assert_allclose(cp.ones(3), np.ones(3)),
    "NumPy array on the right": lambda cp: cp.ones(3) + np.ones(3),
    "NumPy array on the left": lambda cp: np.ones(3) + cp.ones(3),
    "NumPy output": lambda cp: np.add(cp.ones(3), cp.ones(3), out=np.zeros(3)),
    "adding to a NumPy array": lambda cp: _add_to_host(cp),
    "text": lambda cp: cp.asarray(["a"]),
    "objects": lambda cp: cp.asarray([object()]),
    "hashing": lambda cp: hash(cp.ones(3)),
    "float of many": lambda cp: float(cp.ones(3)),
    "truth of many": lambda cp: bool(cp.ones(3)),
    "wrong shape set": lambda cp: cp.ones(3).set(np.ones(4)),
    "options as a list": lambda cp: cp.RawModule(code=SOURCE, options=["-DX"]),
    "grid as a number": lambda cp: cp.RawKernel(SOURCE, "small")(1, (1,), (cp.zeros(1, dtype=cp.int32),)),
    "grid as a list": lambda cp: cp.RawKernel(SOURCE, "small")([1], (1,), (cp.zeros(1, dtype=cp.int32),)),
    "block too large": lambda cp: cp.RawKernel(SOURCE, "axpy")(
        (1,), (2048,), (cp.zeros(1, "f4"), cp.zeros(1, "f4"), np.float32(1), 0)
    ),
    "block over its launch bound": lambda cp: cp.RawKernel(SOURCE, "small")(
        (1,), (128,), (cp.zeros(128, dtype=cp.int32),)
    ),
    "shared memory without leave": lambda cp: cp.RawKernel(SOURCE, "dynamic")(
        (1,), (32,), (cp.zeros(32, "f4"),), shared_mem=49153
    ),
    "more shared memory than there is": lambda cp: setattr(
        cp.RawKernel(SOURCE, "dynamic"), "max_dynamic_shared_size_bytes", 227 * 1024 + 1
    ),
    "a kernel that is not there": lambda cp: cp.RawModule(code=SOURCE).get_function("saxpy"),
    "a mangled kernel": lambda cp: cp.RawModule(code="__global__ void f(int* a) {}").get_function("f"),
    "a variable that is not there": lambda cp: cp.RawModule(code=SOURCE).get_global("filters"),
    "a source with an error": lambda cp: cp.RawModule(code="__global__ void f() { x; }").get_function("f"),
    "matrices that do not fit": lambda cp: cp.ones((2, 3)) @ cp.ones((2, 3)),
    "shapes that do not fit": lambda cp: cp.ones(3) + cp.ones(4),
    "a time between events that were not recorded": lambda cp: cp.cuda.get_elapsed_time(
        cp.cuda.Event(), cp.cuda.Event()
    ),
    "an index out of range": lambda cp: cp.ones(3)[3],
}


def _add_to_host(cp: Any) -> None:
    host = np.ones(3)
    host += cp.ones(3)
