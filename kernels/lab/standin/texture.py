"""``cp.cuda.texture``: CUDA arrays of float32 and the texture objects that read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernels import emulator
from kernels.lab.standin.arrays import ndarray

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


class ChannelFormatDescriptor:
    """Bits of each channel, and their kind: 1, 2 or 4 channels of float32 on the emulator."""

    def __init__(self, x: int, y: int, z: int, w: int, f: int) -> None:
        bits = (x, y, z, w)
        channels = sum(bool(each) for each in bits)
        if (
            f != CONSTANTS["cudaChannelFormatKindFloat"]
            or bits[:channels] != (32,) * channels
            or channels not in (1, 2, 4)
        ):
            raise NotImplementedError(
                f"the emulator's stand-in for CuPy has textures of 1, 2 or 4 channels of float32 only, not {bits}, {f}"
            )
        self.channels, self._format = channels, {"x": x, "y": y, "z": z, "w": w, "f": f}

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
        self.host = np.zeros((*extents, desc.channels), np.float32)

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
        if array.shape != wanted or array.dtype != np.float32:
            raise ValueError(f"the array is {array.dtype}{array.shape}; expected float32{wanted}")


class ResourceDescriptor:
    """What a texture reads: a CUDAarray, on the emulator."""

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
        if restype != CONSTANTS["cudaResourceTypeArray"]:
            raise NotImplementedError(
                "the emulator's stand-in for CuPy has textures of a CUDAarray only (cudaResourceTypeArray)"
            )
        if not isinstance(cuArr, CUDAarray):
            raise ValueError("cuArr is needed: a CUDAarray")
        self.restype, self.cuArr = restype, cuArr


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
        if readMode != CONSTANTS["cudaReadModeElementType"] or sRGB or maxAnisotropy:
            raise NotImplementedError(
                "the emulator's stand-in for CuPy reads textures as they are: no normalised floats, sRGB, anisotropy"
            )
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
            ResDesc.cuArr.host, TexDesc.addressing, TexDesc.filtering, TexDesc.normalised, TexDesc.border
        )
        self.ptr = self._texture.handle
