"""Arguments that are neither pointers nor numbers: an array passed by value, a texture, a tensor map.

All are made when a rung is prepared, the first two from the array's contents, and stay the same for all its launches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from climb import emulator
from climb.bench.cuda import cp
from climb.bench.problem import ByValue, Tensor, Textured
from climb.bench.tensor_maps import encoded
from climb.emulator.memory.tensor_map import TensorMap


def bound(arg: Any, arrays: Mapping[str, Any]) -> Any:
    """Return what a launch passes for ``arg``, given the device arrays by name; numbers are passed unchanged."""
    if isinstance(arg, str):
        return arrays[arg]
    if isinstance(arg, ByValue):
        return by_value(cp.asnumpy(arrays[arg.array]))
    if isinstance(arg, Textured):
        return texture(arrays[arg.array], arg.beyond)
    if isinstance(arg, Tensor):
        return encoded(tensor(arg, int(arrays[arg.array].data.ptr)))
    return arg


def tensor(arg: Tensor, address: int) -> TensorMap:
    """Return the fields of the tensor map of an array at an address, innermost dimension first."""
    dims, strides, box = (tuple(reversed(each)) for each in (arg.shape, arg.strides[:-1], arg.box))
    return TensorMap(arg.dtype, address, dims, strides, box, (1,) * len(dims), arg.swizzle, arg.l2_promotion, False)


def by_value(array: np.ndarray) -> np.ndarray:
    """One element of a structure whose only member is the array: CuPy passes such a structure by value."""
    structure = np.zeros(1, dtype=[("at", array.dtype, array.shape)])
    structure["at"][0] = array
    return structure


def texture(array: Any, beyond: str) -> Any:
    """A texture of a two-dimensional float32 array, copied into the layout of textures."""
    runtime, textures = cp.cuda.runtime, cp.cuda.texture
    channel = textures.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    copied = textures.CUDAarray(channel, array.shape[1], array.shape[0])
    copied.copy_from(array)
    mode = {"border": runtime.cudaAddressModeBorder, "clamp": runtime.cudaAddressModeClamp}[beyond]
    return textures.TextureObject(
        textures.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=copied),
        textures.TextureDescriptor((mode, mode), runtime.cudaFilterModePoint, runtime.cudaReadModeElementType),
    )


def emulated(arg: ByValue | Textured, host: Mapping[str, np.ndarray]) -> tuple[bytes, Any]:
    """Return the bytes of such an argument for the emulator, and the object that must live as long as the launch."""
    if isinstance(arg, ByValue):
        return np.ascontiguousarray(host[arg.array]).tobytes(), None
    texels = np.ascontiguousarray(host[arg.array])[..., None]
    made = emulator.Texture(texels, (arg.beyond, arg.beyond))
    return int(made.handle).to_bytes(8, "little"), made
