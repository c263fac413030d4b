"""``cp.cuda.texture``: CUDA arrays of float32 and the texture objects that read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from climb import emulator
from climb.fake_cupy.arrays import ndarray

_ADDRESSING = ("wrap", "clamp", "mirror", "border")
_FILTERS = ("point", "linear")

#: What ``cp.cuda.runtime`` has of them: the values of CUDA's enumerations.
CONSTANTS = {
    "cudaChannelFormatKindSigned": 0, "cudaChannelFormatKindUnsigned": 1, "cudaChannelFormatKindFloat": 2,
    "cudaResourceTypeArray": 0, "cudaResourceTypeMipmappedArray": 1, "cudaResourceTypeLinear": 2,
    "cudaResourceTypePitch2D": 3,
    "cudaAddressModeWrap": 0, "cudaAddressModeClamp": 1, "cudaAddressModeMirror": 2, "cudaAddressModeBorder": 3,
    "cudaFilterModePoint": 0, "cudaFilterModeLinear": 1,
    "cudaReadModeElementType": 0, "cudaReadModeNormalizedFloat": 1,
}  # fmt: skip

_DTYPES = {
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32",
    (2, 16): "float16", (2, 32): "float32",
}  # fmt: skip


class ChannelFormatDescriptor:
    """Bits of each channel, and their kind: 1, 2 or 4 channels of floats (32, 16 bits) or integers (32, 16, 8)."""

    def __init__(self, x: int, y: int, z: int, w: int, f: int) -> None:
        bits = (x, y, z, w)
        channels = sum(bool(each) for each in bits)
        dtype = _DTYPES.get((f, x))
        if dtype is None or bits != (x,) * channels + (0,) * (4 - channels) or channels not in (1, 2, 4):
            raise NotImplementedError(
                "the emulator's stand-in for CuPy has textures of 1, 2 or 4 equal channels, floats of 32 or 16 bits or "
                f"integers of 32, 16 or 8, not {bits}, {f}"
            )
        self.channels, self.dtype = channels, np.dtype(dtype)
        self._format = {"x": x, "y": y, "z": z, "w": w, "f": f}

    def get_channel_format(self) -> dict[str, int]:
        """The arguments."""
        return dict(self._format)


class CUDAarray:
    """Memory that textures read: (width,), (height, width) or (depth, height, width) elements of some channels."""

    def __init__(
        self, desc: ChannelFormatDescriptor, width: int, height: int = 0, depth: int = 0, flags: int = 0
    ) -> None:
        if flags:
            raise NotImplementedError("the emulator's stand-in for CuPy has no layered, cubemap or surface arrays")
        if width < 1 or height < 0 or depth < 0 or (depth and not height):
            raise ValueError(f"no array of width {width}, height {height}, depth {depth}")
        self.desc, self.width, self.height, self.depth, self.flags = desc, width, height, depth, flags
        extents = tuple(each for each in (depth, height, width) if each)
        self.ndim = len(extents)
        self.host = np.zeros((*extents, desc.channels), desc.dtype)

    def copy_from(self, in_arr: ndarray | np.ndarray, stream: Any = None) -> None:
        """Fill from an array whose last axis is channels x width."""
        self._check(in_arr)
        values = in_arr.get() if isinstance(in_arr, ndarray) else in_arr
        self.host[...] = values.reshape(self.host.shape)

    def copy_to(self, out_arr: ndarray | np.ndarray, stream: Any = None) -> None:
        """Copy to an array whose last axis is channels x width."""
        self._check(out_arr)
        values = self.host.reshape(out_arr.shape)
        if isinstance(out_arr, ndarray):
            out_arr.set(values)
        else:
            out_arr[...] = values

    def _check(self, array: ndarray | np.ndarray) -> None:
        wanted = (*self.host.shape[:-2], self.host.shape[-2] * self.desc.channels)
        if array.shape != wanted or array.dtype != self.desc.dtype:
            raise ValueError(f"the array is {array.dtype}{array.shape}; expected {self.desc.dtype}{wanted}")


class ResourceDescriptor:
    """What a texture reads: a CUDAarray, or an array in linear memory, which stays where it is."""

    def __init__(
        self,
        restype: int,
        cuArr: CUDAarray | None = None,
        arr: ndarray | None = None,
        chDesc: ChannelFormatDescriptor | None = None,
        sizeInBytes: int = 0,
        width: int = 0,
        height: int = 0,
        pitchInBytes: int = 0,
    ) -> None:
        self.restype, self.cuArr, self.arr, self.chDesc = restype, cuArr, arr, chDesc
        if restype == CONSTANTS["cudaResourceTypeArray"]:
            if not isinstance(cuArr, CUDAarray):
                raise ValueError("cuArr is needed: a CUDAarray")
            self.host = cuArr.host
        elif restype == CONSTANTS["cudaResourceTypeLinear"]:
            if not isinstance(arr, ndarray) or not isinstance(chDesc, ChannelFormatDescriptor):
                raise ValueError("arr, an array of the device, and chDesc are needed")
            size = chDesc.channels * chDesc.dtype.itemsize
            if not arr.flags.c_contiguous or not 0 < sizeInBytes <= arr.nbytes or sizeInBytes % size:
                raise ValueError(f"{sizeInBytes} bytes of an array of {arr.nbytes}, in texels of {size}")
            flat = arr._host.reshape(-1).view(np.uint8)[:sizeInBytes]
            self.host = flat.view(chDesc.dtype).reshape(-1, chDesc.channels)
        else:
            raise NotImplementedError(
                "the emulator's stand-in for CuPy has textures of a CUDAarray (cudaResourceTypeArray) and of linear "
                "memory (cudaResourceTypeLinear) only"
            )


class TextureDescriptor:
    """How a texture reads: addressing beyond the edges, filtering, whether coordinates are normalised."""

    def __init__(
        self,
        addressModes: Sequence[int] | None = None,
        filterMode: int = 0,
        readMode: int = 0,
        sRGB: int | None = None,
        borderColors: Sequence[float] | None = None,
        normalizedCoords: int | None = None,
        maxAnisotropy: int | None = None,
    ) -> None:
        if sRGB or maxAnisotropy:
            raise NotImplementedError("the emulator's stand-in for CuPy reads textures without sRGB and anisotropy")
        if readMode not in (0, 1):
            raise ValueError(f"readMode {readMode} is not CUDA's")
        self.as_fractions = readMode == CONSTANTS["cudaReadModeNormalizedFloat"]
        modes = tuple(addressModes or ())
        if len(modes) > 3 or any(mode not in range(4) for mode in modes) or filterMode not in (0, 1):
            raise ValueError(f"addressModes {modes} or filterMode {filterMode} are not CUDA's")
        self.addressing = tuple(_ADDRESSING[mode] for mode in modes) + ("wrap",) * (3 - len(modes))
        self.filtering = _FILTERS[filterMode]
        self.normalised = bool(normalizedCoords)
        self.border = (*(float(each) for each in borderColors or ()), 0.0, 0.0, 0.0, 0.0)[:4]


class TextureObject:
    """A ``cudaTextureObject_t``: an argument for a kernel, valid as long as it lives."""

    def __init__(self, ResDesc: ResourceDescriptor, TexDesc: TextureDescriptor) -> None:
        self.ResDesc, self.TexDesc = ResDesc, TexDesc
        self._texture = emulator.Texture(
            ResDesc.host,
            TexDesc.addressing,
            TexDesc.filtering,
            TexDesc.normalised,
            TexDesc.border,
            # Floats, and integers of 32 bits, are read as they are in either mode.
            TexDesc.as_fractions and ResDesc.host.dtype.kind in "iu" and ResDesc.host.dtype.itemsize < 4,
            ResDesc.restype == CONSTANTS["cudaResourceTypeLinear"],
        )
        self.ptr = self._texture.handle
