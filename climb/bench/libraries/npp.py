"""NPP: a convolution of an image by ``nppiFilterBorder_32f_C1R``, or by ``nppiFilter_32f_C1R`` on a wider image.

NPP has no binding for Python: the few calls go through ctypes to ``libnppif``, which the package ``nvidia-npp`` holds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from climb.bench.libraries.choosing import Enqueue, Prepared, fastest
from climb.bench.libraries.description import Description, describe
from climb.bench.problem import PeerUnavailable

#: The borders of the ladder conv2d as values of NppiBorderType.
BORDERS = {"zero": 1, "clamp": 2, "reflect": 4}
#: numpy.pad's names for the borders.
PADDINGS = {"zero": "constant", "clamp": "edge", "reflect": "reflect"}


class Size(ctypes.Structure):
    """NppiSize: width and height."""

    _fields_ = (("width", ctypes.c_int), ("height", ctypes.c_int))


class Point(ctypes.Structure):
    """NppiPoint."""

    _fields_ = (("x", ctypes.c_int), ("y", ctypes.c_int))


class Context(ctypes.Structure):
    """NppStreamContext: the stream, and the device properties that NPP would otherwise query in each call."""

    _fields_ = (
        ("stream", ctypes.c_void_p),
        ("device", ctypes.c_int),
        ("multiprocessors", ctypes.c_int),
        ("threads_per_multiprocessor", ctypes.c_int),
        ("threads_per_block", ctypes.c_int),
        ("shared_memory_per_block", ctypes.c_size_t),
        ("compute_major", ctypes.c_int),
        ("compute_minor", ctypes.c_int),
        ("stream_flags", ctypes.c_uint),
        ("workspace", ctypes.c_uint),
    )


def npp(algorithm: str) -> Callable[[], Description]:
    """A peer's ``describe`` for NPP, with the version that is loaded."""

    def found() -> Description:
        class Version(ctypes.Structure):
            _fields_ = (("major", ctypes.c_int), ("minor", ctypes.c_int), ("build", ctypes.c_int))

        query = _load("nppc").nppGetLibVersion
        query.restype = ctypes.POINTER(Version)
        version = query().contents
        return describe("NPP", f"{version.major}.{version.minor}.{version.build}", algorithm, "fp32")

    return found


def convolution(image: Any, weights: Any, result: Any, border: str) -> Prepared:
    """A launch that convolves an image (rows, columns) with a filter of odd extents, float32 CuPy arrays.

    Around zeros, the image may also be copied into a wider one first, in each call; the faster way is taken. NPP
    accepts any border without an error, but uses a different one at some sizes. So the sides of each result are first
    compared with NumPy's. Raises :class:`PeerUnavailable` if neither way computes the requested border.
    """
    library = _load("nppif")
    import cupy

    rows, cols = image.shape
    extent = Size(weights.shape[1], weights.shape[0])
    anchor = Point(extent.width // 2, extent.height // 2)
    flipped = cupy.ascontiguousarray(weights[::-1, ::-1])  # NPP stores coefficients in reverse order
    region, device = Size(cols, rows), _context()

    def checked(enqueue: Enqueue, choice: str) -> Prepared:
        enqueue()
        if not keeps_border(image, weights, result, border):
            raise PeerUnavailable(f"{choice} computes another border than {border}")
        return Prepared(enqueue, {"choice": choice})

    def filter_border() -> None:
        device.stream = cupy.cuda.get_current_stream().ptr
        _check(
            library.nppiFilterBorder_32f_C1R_Ctx(
                ctypes.c_void_p(image.data.ptr), 4 * cols, region, Point(0, 0),
                ctypes.c_void_p(result.data.ptr), 4 * cols, region,
                ctypes.c_void_p(flipped.data.ptr), extent, anchor, BORDERS[border], device,
            )
        )  # fmt: skip

    def by_border() -> Prepared:
        return checked(filter_border, "nppiFilterBorder_32f_C1R")

    def by_copy() -> Prepared:
        run = library.nppiFilter_32f_C1R_Ctx
        wide = cupy.zeros((rows + extent.height - 1, cols + extent.width - 1), dtype=cupy.float32)
        inner = wide[anchor.y : anchor.y + rows, anchor.x : anchor.x + cols]

        def enqueue() -> None:
            inner[...] = image
            device.stream = cupy.cuda.get_current_stream().ptr
            _check(
                run(
                    ctypes.c_void_p(inner.data.ptr), 4 * wide.shape[1], ctypes.c_void_p(result.data.ptr), 4 * cols,
                    region, ctypes.c_void_p(flipped.data.ptr), extent, anchor, device,
                )
            )  # fmt: skip

        return checked(enqueue, "copy with zeros around, then nppiFilter_32f_C1R")

    return fastest((by_border, by_copy) if border == "zero" else (by_border,))


def keeps_border(image: Any, weights: Any, result: Any, border: str) -> bool:
    """Return whether the four sides of a result are the convolution of an image whose border is continued in this way.

    Arrays of NumPy or CuPy: image and result (rows, columns), a filter of odd extents. Each side is compared over as
    many rows or columns as the filter has. Differences from float32 rounding are ignored.
    """
    height, width = weights.shape
    factors = _host(weights)
    sides = (
        (np.s_[: 2 * height], np.s_[:height]), (np.s_[-2 * height :], np.s_[-height:]),
        (np.s_[:, : 2 * width], np.s_[:, :width]), (np.s_[:, -2 * width :], np.s_[:, -width:]),
    )  # fmt: skip
    return all(_equal(_host(image[near]), factors, _host(result[near]), border, at) for near, at in sides)


def _equal(image: np.ndarray, weights: np.ndarray, result: np.ndarray, border: str, at: Any) -> bool:
    """Return whether these rows or columns of a result are the convolution of the image."""
    height, width = weights.shape
    edges = ((height // 2, height // 2), (width // 2, width // 2))
    padded = np.pad(image.astype(np.float64), edges, mode=PADDINGS[border])  # type: ignore[call-overload]
    windows = np.lib.stride_tricks.sliding_window_view(padded, weights.shape)
    expected = np.einsum("ijkl,kl->ij", windows, weights)
    return bool(np.allclose(result[at], expected[at], rtol=0, atol=1e-4 * np.abs(expected).max()))


def _host(array: Any) -> np.ndarray:
    return array.get() if hasattr(array, "get") else array


def _context() -> Context:
    import cupy

    device = cupy.cuda.Device()
    found, capability = device.attributes, device.compute_capability
    return Context(
        stream=0,
        device=device.id,
        multiprocessors=found["MultiProcessorCount"],
        threads_per_multiprocessor=found["MaxThreadsPerMultiProcessor"],
        threads_per_block=found["MaxThreadsPerBlock"],
        shared_memory_per_block=found["MaxSharedMemoryPerBlock"],
        compute_major=int(capability[:-1]),
        compute_minor=int(capability[-1]),
        stream_flags=0,
        workspace=0,
    )


def _load(name: str) -> ctypes.CDLL:
    from cuda.pathfinder import load_nvidia_dynamic_lib

    return ctypes.CDLL(load_nvidia_dynamic_lib(name).abs_path)


def _check(status: int) -> None:
    """Raise RuntimeError for an error; positive values are warnings."""
    if status < 0:
        raise RuntimeError(f"NPP returned the error {status}")
