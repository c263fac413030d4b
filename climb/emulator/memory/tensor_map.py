"""Tensor maps: the 128 bytes that tell bulk tensor copies about a tensor in global memory.

The driver's layout of these bytes is not public. Here they hold the fields of `TensorMap` in a layout of our own, with
a checksum: a changed byte is noticed. The rules are those of `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col`
in the CUDA Driver API.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass

NBYTES = 128
MAX_RANK = 5
#: Names of the data types, as in CUtensorMapDataType; the index is the number of the enumeration.
TYPES = (
    "uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "bfloat16",
    "float32_ftz", "tfloat32", "tfloat32_ftz",
)  # fmt: skip
SIZES = {
    "uint8": 1, "uint16": 2, "uint32": 4, "int32": 4, "uint64": 8, "int64": 8, "float16": 2, "float32": 4,
    "float64": 8, "bfloat16": 2, "float32_ftz": 4, "tfloat32": 4, "tfloat32_ftz": 4,
}  # fmt: skip
#: Types whose values a copy may round.
ROUNDED = ("float32_ftz", "tfloat32", "tfloat32_ftz")
SWIZZLES = (0, 32, 64, 128)  # bytes; the index is the number in CUtensorMapSwizzle
L2_PROMOTIONS = (0, 64, 128, 256)
#: The largest bytes of a box: the shared memory of a block. The driver refuses 256 x 256 floats; its exact limit was
#: not tested.
MAX_BOX = 227 * 1024
_MAGIC = b"climb TM"
_FORM = "<8s5BQ5Q4Q5H5B6h2H"
#: The range of the corners of an im2col map, as bits of a signed number, by the number of dimensions.
CORNER_BITS = {3: 16, 4: 8, 5: 5}
MAX_CHANNELS, MAX_PIXELS = 256, 1024
_SPAN = struct.calcsize(_FORM)


class TensorMapError(ValueError):
    """A tensor map that the driver refuses; the message names the argument and its allowed values."""


@dataclass(frozen=True)
class Im2col:
    """The box of a copy in im2col mode: `channels` of each of `pixels` pixels, one after the other in a bounding box.

    The innermost dimension of the tensor holds the channels of a pixel, the outermost numbers the images. Between them,
    the bounding box reaches from `lower` to the size of the dimension plus `upper`, exclusive; W, H, D in this order.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int


@dataclass(frozen=True)
class TensorMap:
    """A tensor of up to five dimensions in global memory and the box that a copy moves; the innermost dimension first.

    `address`: of the first element. `dims`: elements along each dimension. `strides`: bytes between neighbours along
    each dimension but the innermost, whose elements touch. `box`: elements that a copy spans along each dimension.
    `element_strides`: along each dimension, the distance between copied elements of the box (the innermost is always
    1). `swizzle`: bytes over which 16-byte chunks are permuted in shared memory, or 0. `nan_fill`: elements outside the
    tensor are read as NaN instead of zero. `l2_promotion` changes no value. A tensor map for copies in im2col mode has
    `im2col` and no `box`; `element_strides` are then the steps from pixel to pixel.
    """

    dtype: str
    address: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: int = 0
    l2_promotion: int = 0
    nan_fill: bool = False
    im2col: Im2col | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return SIZES[self.dtype]

    @property
    def tile(self) -> tuple[int, ...]:
        """The elements that a copy moves along each dimension, innermost first; in im2col mode: channels and pixels."""
        if self.im2col is not None:
            return self.im2col.channels, self.im2col.pixels
        steps = (1, *self.element_strides[1:])
        return tuple(-(-extent // step) for extent, step in zip(self.box, steps, strict=True))

    @property
    def tile_bytes(self) -> int:
        """The bytes that a copy moves to or from shared memory, and that it completes on an mbarrier."""
        return math.prod(self.tile) * self.itemsize

    @property
    def row_bytes(self) -> int:
        """The bytes from row to row of a box in shared memory: a swizzle spreads narrower rows over its width."""
        return max(self.tile[0] * self.itemsize, self.swizzle if self.im2col is None else 0)

    @property
    def shared_bytes(self) -> int:
        """The bytes from the start of a box in shared memory to its end."""
        return (math.prod(self.tile[1:]) - 1) * self.row_bytes + self.tile[0] * self.itemsize


def check(one: TensorMap) -> None:
    """Raise TensorMapError if the driver would refuse the tensor map, NotImplementedError if only the emulator does."""
    rank, size = one.rank, SIZES.get(one.dtype)
    if size is None:
        raise TensorMapError(f"dtype is {one.dtype!r}; it must be one of {', '.join(TYPES)}")
    if not 1 <= rank <= MAX_RANK:
        raise TensorMapError(f"the tensor has {rank} dimensions; it must have 1 to {MAX_RANK}")
    for name, values, count in (
        ("strides", one.strides, rank - 1), ("box", one.box, rank), ("element_strides", one.element_strides, rank),
    ):  # fmt: skip
        if name == "box" and one.im2col is not None:
            continue
        if len(values) != count:
            raise TensorMapError(f"{name} has {len(values)} entries; a tensor of {rank} dimensions needs {count}")
    if one.address % 16:
        raise TensorMapError(f"the tensor starts at {one.address:#x}; its address must be a multiple of 16")
    if not all(1 <= extent <= 1 << 32 for extent in one.dims):
        raise TensorMapError(f"the dimensions are {one.dims}; each must be 1 to 2^32")
    if not all(stride % 16 == 0 and 0 <= stride < 1 << 40 for stride in one.strides):
        raise TensorMapError(f"the strides are {one.strides} bytes; each must be a multiple of 16 and below 2^40")
    box = one.box if one.im2col is None else one.tile
    if one.im2col is not None:
        _check_im2col(one, one.im2col)
    elif not all(1 <= extent <= 256 for extent in box):
        raise TensorMapError(f"the box is {box}; each extent must be 1 to 256 elements")
    if math.prod(box) * size > MAX_BOX:
        raise TensorMapError(f"the box has {math.prod(box) * size} bytes; shared memory has at most {MAX_BOX}")
    if not all(1 <= step <= 8 for step in one.element_strides):
        raise TensorMapError(f"the element strides are {one.element_strides}; each must be 1 to 8")
    inner = box[0] * size
    if inner % 16:
        raise TensorMapError(f"the box is {inner} bytes wide ({box[0]} elements); it must be a multiple of 16")
    if one.swizzle not in SWIZZLES:
        raise TensorMapError(f"swizzle is {one.swizzle}; it must be one of {', '.join(map(str, SWIZZLES))} bytes")
    if one.swizzle and inner > one.swizzle:
        raise TensorMapError(f"the box is {inner} bytes wide; with a swizzle of {one.swizzle} at most {one.swizzle}")
    if one.l2_promotion not in L2_PROMOTIONS:
        raise TensorMapError(f"l2_promotion is {one.l2_promotion}; it must be one of {L2_PROMOTIONS}")
    if one.nan_fill and "float" not in one.dtype:
        raise TensorMapError(f"elements outside can be NaN only in a tensor of floats, not of {one.dtype}")


def _check_im2col(one: TensorMap, how: Im2col) -> None:
    if one.rank not in CORNER_BITS:
        raise TensorMapError(f"the tensor has {one.rank} dimensions; in im2col mode it must have 3 to 5")
    most = 1 << CORNER_BITS[one.rank] - 1
    for name, corner in (("lower", how.lower), ("upper", how.upper)):
        if len(corner) != one.rank - 2:
            raise TensorMapError(
                f"the {name} corner has {len(corner)} entries; a tensor of {one.rank} dimensions needs {one.rank - 2}"
            )
        if not all(-most <= each < most for each in corner):
            raise TensorMapError(f"the {name} corner is {corner}; each entry must be {-most} to {most - 1}")
    if not 1 <= how.channels <= MAX_CHANNELS:
        raise TensorMapError(f"{how.channels} channels of a pixel; it must be 1 to {MAX_CHANNELS}")
    if not 1 <= how.pixels <= MAX_PIXELS:
        raise TensorMapError(f"{how.pixels} pixels; it must be 1 to {MAX_PIXELS}")


def encode(one: TensorMap) -> bytes:
    """Encode a tensor map as 128 bytes. Raises TensorMapError."""
    check(one)
    return encode_unchecked(one)


def encode_unchecked(one: TensorMap) -> bytes:
    """Encode a tensor map that may break a rule as 128 bytes: a thread that replaces its fields passes through such
    states."""
    head = (TYPES.index(one.dtype), one.rank, SWIZZLES.index(one.swizzle), L2_PROMOTIONS.index(one.l2_promotion))

    def filled(values: tuple[int, ...], count: int, most: int) -> tuple[int, ...]:
        return (*(min(each, most) for each in values), *(0,) * (count - len(values)))

    how = one.im2col or Im2col((), (), 0, 0)
    packed = struct.pack(
        _FORM, _MAGIC, *head, one.nan_fill | (one.im2col is not None) << 1, one.address, *filled(one.dims, 5, 1 << 63),
        *filled(one.strides, 4, 1 << 63), *filled(one.box, 5, 0xFFFF), *filled(one.element_strides, 5, 0xFF),
        *filled(how.lower, 3, 0x7FFF), *filled(how.upper, 3, 0x7FFF), how.channels, how.pixels,
    )  # fmt: skip
    return (packed + struct.pack("<I", zlib.crc32(packed))).ljust(NBYTES, b"\0")


def decode(data: bytes) -> TensorMap | None:
    """Decode the tensor map in 128 bytes; None if they differ from what an encoder writes."""
    packed = data[:_SPAN]
    if len(data) != NBYTES or packed[:8] != _MAGIC:
        return None
    if data[_SPAN:] != struct.pack("<I", zlib.crc32(packed)).ljust(NBYTES - _SPAN, b"\0"):
        return None
    _, kind, rank, swizzle, promotion, flags, address, *rest = struct.unpack(_FORM, packed)
    dims, strides, box, steps = rest[:5], rest[5:9], rest[9:14], rest[14:19]
    corners, (channels, pixels) = (rest[19:22], rest[22:25]), rest[25:]
    lower, upper = (tuple(corner[: rank - 2]) for corner in corners)
    nan_fill, pixelwise = bool(flags & 1), bool(flags & 2)
    return TensorMap(
        TYPES[kind], address, tuple(dims[:rank]), tuple(strides[: rank - 1]), () if pixelwise else tuple(box[:rank]),
        tuple(steps[:rank]), SWIZZLES[swizzle], L2_PROMOTIONS[promotion], nan_fill,
        Im2col(lower, upper, channels, pixels) if pixelwise else None,
    )  # fmt: skip
