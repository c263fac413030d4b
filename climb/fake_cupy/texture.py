"""``cp.cuda.texture``: CUDA arrays and linear memory, and the texture objects that read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from climb import emulator
from climb.fake_cupy.arrays import ndarray
from climb.fake_cupy.errors import CUDARuntimeError

_ADDRESSING = ("wrap", "clamp", "mirror", "border")
_FILTERS = ("point", "linear")

#: The values of CUDA's enumerations for textures, which are members of ``cp.cuda.runtime``.
CONSTANTS = {
    "cudaChannelFormatKindSigned": 0, "cudaChannelFormatKindUnsigned": 1, "cudaChannelFormatKindFloat": 2,
    "cudaResourceTypeArray": 0, "cudaResourceTypeMipmappedArray": 1, "cudaResourceTypeLinear": 2,
    "cudaResourceTypePitch2D": 3,
    "cudaAddressModeWrap": 0, "cudaAddressModeClamp": 1, "cudaAddressModeMirror": 2, "cudaAddressModeBorder": 3,
    "cudaArrayDefault": 0, "cudaArraySurfaceLoadStore": 2,
    "cudaFilterModePoint": 0, "cudaFilterModeLinear": 1,
    "cudaReadModeElementType": 0, "cudaReadModeNormalizedFloat": 1,
}  # fmt: skip

#: Flags of a CUDAarray; CuPy names only the second one.
LAYERED, SURFACE, CUBEMAP = 1, 2, 4

#: The rows of a pitched texture are multiples of this many bytes (texturePitchAlignment of an H200).
PITCH_ALIGNMENT = 32

_DTYPES = {
    (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32",
    (2, 16): "float16", (2, 32): "float32",
}  # fmt: skip


class ChannelFormatDescriptor:
    """The bits of each channel and their kind.

    There are 1, 2 or 4 equal channels of floats (32 or 16 bits) or integers (32, 16 or 8 bits). Raises
    NotImplementedError for any other format.
    """

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
        """The bits of the channels "x" to "w", and their kind "f"."""
        return dict(self._format)


class CUDAarray:
    """Memory that textures read: (width,), (height, width) or (depth, height, width) elements of `desc`'s channels.

    `flags`: 1 for a layered array, whose layers are its depth, 4 for a cube map, 2 for surfaces.
    """

    def __init__(
        self, desc: ChannelFormatDescriptor, width: int, height: int = 0, depth: int = 0, flags: int = 0
    ) -> None:
        if flags & ~(LAYERED | SURFACE | CUBEMAP):
            raise NotImplementedError(f"the emulator's stand-in for CuPy has no arrays with the flags {flags:#x}")
        if flags & CUBEMAP and (width != height or depth % 6 or not depth or (depth > 6 and not flags & LAYERED)):
            raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument: a cube map has six square faces")
        if flags & LAYERED and not depth:
            raise CUDARuntimeError(
                "cudaErrorInvalidValue: invalid argument: the layers of a layered array are its depth"
            )
        if width < 1 or height < 0 or depth < 0 or (depth and not height):
            raise ValueError(f"a CUDA array cannot have width {width}, height {height}, depth {depth}")
        self.desc, self.width, self.height, self.depth, self.flags = desc, width, height, depth, flags
        extents = tuple(each for each in (depth, height, width) if each)
        self.ndim = len(extents)
        self.host = np.zeros((*extents, desc.channels), desc.dtype)

    def copy_from(self, in_arr: ndarray | np.ndarray, stream: Any = None) -> None:
        """Copy from `in_arr`, an array whose last axis has width x channels elements."""
        self._check(in_arr)
        values = in_arr.get() if isinstance(in_arr, ndarray) else in_arr
        self.host[...] = values.reshape(self.host.shape)

    def copy_to(self, out_arr: ndarray | np.ndarray, stream: Any = None) -> None:
        """Copy to `out_arr`, an array whose last axis has width x channels elements."""
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
    """The memory that a texture reads: a CUDAarray, or a device array (linear or pitched), which is not copied."""

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
        self.flags = 0
        self.restype, self.cuArr, self.arr, self.chDesc = restype, cuArr, arr, chDesc
        if restype == CONSTANTS["cudaResourceTypeArray"]:
            if not isinstance(cuArr, CUDAarray):
                raise ValueError("cuArr must be a CUDAarray")
            self.host, self.flags = cuArr.host, cuArr.flags
        elif restype == CONSTANTS["cudaResourceTypeLinear"]:
            if not isinstance(arr, ndarray) or not isinstance(chDesc, ChannelFormatDescriptor):
                raise ValueError("arr must be a device array, and chDesc a ChannelFormatDescriptor")
            size = chDesc.channels * chDesc.dtype.itemsize
            if not arr.flags.c_contiguous or not 0 < sizeInBytes <= arr.nbytes or sizeInBytes % size:
                raise ValueError(
                    f"sizeInBytes is {sizeInBytes}; expected a multiple of {size} (one texel) up to {arr.nbytes} "
                    "(the array, which must be C-contiguous)"
                )
            flat = arr._host.reshape(-1).view(np.uint8)[:sizeInBytes]
            self.host = flat.view(chDesc.dtype).reshape(-1, chDesc.channels)
        elif restype == CONSTANTS["cudaResourceTypePitch2D"]:
            self.host = _pitched(arr, chDesc, width, height, pitchInBytes)
        else:
            raise NotImplementedError("the emulator's stand-in for CuPy has no textures of mipmapped arrays")


def _pitched(
    arr: ndarray | None, desc: ChannelFormatDescriptor | None, width: int, height: int, pitch: int
) -> np.ndarray:
    """Return rows of `width` texels that are `pitch` bytes apart in a device array: (height, width, channels), not
    copied."""
    if not isinstance(arr, ndarray) or not isinstance(desc, ChannelFormatDescriptor) or not arr.flags.c_contiguous:
        raise ValueError("arr must be a C-contiguous device array, and chDesc a ChannelFormatDescriptor")
    size = desc.channels * desc.dtype.itemsize
    if pitch % PITCH_ALIGNMENT or not 0 < width * size <= pitch or not 0 < height * pitch <= arr.nbytes:
        raise CUDARuntimeError(
            f"cudaErrorInvalidValue: invalid argument: rows of {width} texels every {pitch} bytes, {height} times, in "
            f"{arr.nbytes} bytes; the pitch is a multiple of {PITCH_ALIGNMENT}"
        )
    rows = arr._host.reshape(-1).view(np.uint8)[: height * pitch].reshape(height, pitch)
    return rows[:, : width * size].view(desc.dtype).reshape(height, width, desc.channels)


class TextureDescriptor:
    """The way a texture reads: addressing beyond the edges, filtering, normalised coordinates or not."""

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
            raise NotImplementedError(
                "the emulator's stand-in for CuPy has no textures with sRGB or anisotropic filtering"
            )
        if readMode not in (0, 1):
            raise ValueError(f"readMode is {readMode}; CUDA has 0 and 1")
        self.as_fractions = readMode == CONSTANTS["cudaReadModeNormalizedFloat"]
        modes = tuple(addressModes or ())
        if len(modes) > 3 or any(mode not in range(4) for mode in modes) or filterMode not in (0, 1):
            raise ValueError(
                f"addressModes is {modes} and filterMode is {filterMode}; expected up to three of 0 to 3, and 0 or 1"
            )
        self.addressing = tuple(_ADDRESSING[mode] for mode in modes) + ("wrap",) * (3 - len(modes))
        self.filtering = _FILTERS[filterMode]
        self.normalised = bool(normalizedCoords)
        self.border = (*(float(each) for each in borderColors or ()), 0.0, 0.0, 0.0, 0.0)[:4]


class TextureObject:
    """A ``cudaTextureObject_t``, an argument for a kernel. It is valid as long as this object lives."""

    def __init__(self, ResDesc: ResourceDescriptor, TexDesc: TextureDescriptor) -> None:
        self.ResDesc, self.TexDesc = ResDesc, TexDesc
        self._texture = emulator.Texture(
            ResDesc.host,
            TexDesc.addressing,
            TexDesc.filtering,
            TexDesc.normalised,
            TexDesc.border,
            # Only integers of 8 or 16 bits can be read as fractions; other elements are read as they are.
            TexDesc.as_fractions and ResDesc.host.dtype.kind in "iu" and ResDesc.host.dtype.itemsize < 4,
            ResDesc.restype == CONSTANTS["cudaResourceTypeLinear"],
            layered=bool(ResDesc.flags & LAYERED),
            cube=bool(ResDesc.flags & CUBEMAP),
        )
        self.ptr = self._texture.handle


class SurfaceObject:
    """A ``cudaSurfaceObject_t``, an argument for a kernel. It is valid as long as this object lives.

    Raises CUDARuntimeError for memory that is not a CUDAarray made with ``cudaArraySurfaceLoadStore``.
    """

    def __init__(self, ResDesc: ResourceDescriptor) -> None:
        if not ResDesc.flags & SURFACE:
            raise CUDARuntimeError(
                "cudaErrorInvalidValue: invalid argument: a surface needs a CUDAarray whose flags have "
                "cudaArraySurfaceLoadStore"
            )
        self.ResDesc = ResDesc
        self._surface = emulator.Surface(ResDesc.host, bool(ResDesc.flags & (LAYERED | CUBEMAP)))
        self.ptr = self._surface.handle
