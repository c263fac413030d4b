"""Tensor maps as arguments of kernels that CuPy, or its stand-in, launches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from climb import cp, tensor_map
from climb.bench.tensor_maps import describe, encode_by_driver
from climb.emulator.memory.tensor_map import TensorMapError

FOLDER = Path(__file__).parents[1] / "emulator" / "hopper"


def _kernel(name: str):
    source = (FOLDER / f"{name}.cu").read_text(encoding="utf-8")
    header = (FOLDER / "ptx.cuh").read_text(encoding="utf-8").replace("#pragma once", "")
    return cp.RawModule(code=source.replace('#include "ptx.cuh"', header)).get_function(name)


def test_kernel_takes_tensor_maps() -> None:
    values = np.random.default_rng(0).standard_normal((96, 64)).astype(np.float32)
    a, b = cp.asarray(values), cp.zeros((64, 96), np.float32)
    _kernel("transpose")((2, 3), (128,), (tensor_map(a, (32, 32), swizzle=128), tensor_map(b, (32, 32), swizzle=128)))
    assert (cp.asnumpy(b) == values.T).all()


def test_kernel_of_a_cluster_is_launched_as_any_other() -> None:
    values = np.random.default_rng(0).integers(0, 1 << 32, 500, dtype=np.uint32)
    bins = cp.zeros(64, np.uint32)
    _kernel("cluster_histogram")((2,), (96,), (cp.asarray(values), bins, np.int32(500)))
    assert (cp.asnumpy(bins) == np.bincount(values % 64, minlength=64)).all()


def test_fields_are_in_the_order_of_the_shape() -> None:
    array = cp.zeros((3, 5, 8), np.float16)
    one = describe(array, (1, 2, 8), swizzle=32, element_strides=(1, 2, 1))
    assert (one.dims, one.strides, one.box, one.element_strides) == ((8, 5, 3), (16, 80), (8, 2, 1), (1, 2, 1))
    assert (one.dtype, one.address, one.swizzle) == ("float16", array.data.ptr, 32)


def test_one_column_touches_itself_whatever_its_stride() -> None:
    column = cp.zeros((16, 36), np.float32)[:, ::36]
    one = describe(column, (4, 1))
    assert column.strides == (144, 144) and (one.dims, one.strides) == ((1, 16), (144,))


def test_wrong_tensor_maps_are_refused() -> None:
    array = cp.zeros((16, 36), np.float32)
    with pytest.raises(TensorMapError, match="at most 64"):
        tensor_map(array, (4, 32), swizzle=64)
    with pytest.raises(TensorMapError, match="multiple of 16"):
        tensor_map(cp.zeros((16, 35), np.float32), (4, 32))
    with pytest.raises(TensorMapError, match="262144 bytes; shared memory has at most 232448"):
        tensor_map(cp.zeros((256, 256), np.float32), (256, 256))
    with pytest.raises(NotImplementedError, match="interleave of 32 bytes"):
        tensor_map(array, (4, 32), interleave=32)
    with pytest.raises(ValueError, match="they must touch"):
        tensor_map(array.T, (4, 16))
    # The driver would only say that a value is invalid; without one, the import would fail first.
    with pytest.raises(TensorMapError, match="at most 64"):
        encode_by_driver(describe(array, (4, 32), swizzle=64))
