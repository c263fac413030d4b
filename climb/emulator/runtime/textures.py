"""Textures: arrays that kernels read at coordinates, with point or linear filtering, or by integer index.

CUDA C++ Programming Guide, "Texture Fetching": texel i spans i to i + 1. Linear filtering weights the texels on both
sides of x - 0.5; the weight has 8 fractional bits (rounded to nearest here). Wrap and mirror addressing need normalised
coordinates; otherwise they act as clamp. Sums are formed in float64 and rounded once.

Texels are float32 or float16, which are read as float32; integers of 8, 16 or 32 bits, read as they are; or integers of
8 or 16 bits that `as_fractions` maps to float32 in [0, 1] or [-1, 1]. Beyond the end of linear memory (`linear`), reads
return zero. If a texture has fewer than four channels, the fourth reads as one and the other missing ones as zero.

Texture reads are not counted: their cost depends on an undocumented memory layout.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np

from ..checks.faults import place_of
from ..errors import OutOfBounds, UnsupportedInstruction
from ..simt.groups import Group
from ..simt.site import Site

ADDRESSING = ("wrap", "clamp", "mirror", "border")
FILTERS = ("point", "linear")
TEXELS = ("float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32")
FRACTIONS = ("int8", "uint8", "int16", "uint16")
FIRST_HANDLE = 0x0400_0000_0001  # outside the addresses of any memory space
_numbers = itertools.count(FIRST_HANDLE)
_FAR = 2.0**30


@dataclass(eq=False)
class Texture:
    """A texture. `data`: (width, channels), (height, width, channels) or (depth, height, width, channels) of `TEXELS`.

    `addressing` holds the modes of x, y and z. `handle` is the texture object to pass to a kernel; it is valid as long
    as the Texture lives. Raises ValueError for an unsupported combination.
    """

    data: np.ndarray
    addressing: tuple[str, ...] = ("clamp", "clamp", "clamp")
    filtering: str = "point"
    normalised: bool = False
    border: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    as_fractions: bool = False
    linear: bool = False

    def __post_init__(self) -> None:
        if self.data.dtype.name not in TEXELS:
            raise ValueError(f"textures of {self.data.dtype} are not supported, only of {', '.join(TEXELS)}")
        if self.as_fractions and self.data.dtype.name not in FRACTIONS:
            raise ValueError(f"only integers of 8 or 16 bits can be read as fractions, not {self.data.dtype}")
        if self.filtering == "linear" and self.reads != "f32":
            raise ValueError(f"linear filtering returns floats; {self.data.dtype} must be read as fractions for it")
        if self.linear and self.data.ndim != 2:
            raise ValueError("linear memory has one dimension")
        if self.data.ndim not in (2, 3, 4) or self.data.shape[-1] not in (1, 2, 4):
            raise ValueError(f"a texture has one to three dimensions and 1, 2 or 4 channels, not {self.data.shape}")
        if self.filtering not in FILTERS or any(mode not in ADDRESSING for mode in self.addressing):
            raise ValueError(f"unknown filtering or addressing mode: {self.filtering}, {self.addressing}")
        self.addressing = (*self.addressing, *("clamp",) * 3)[:3]
        self.handle = next(_numbers)
        _live[self.handle] = self

    @property
    def dimensions(self) -> int:
        """The number of coordinates of a read."""
        return self.data.ndim - 1

    @property
    def reads(self) -> str:
        """The PTX type of the values read: f32, s32 or u32."""
        if self.as_fractions or self.data.dtype.kind == "f":
            return "f32"
        return "s32" if self.data.dtype.kind == "i" else "u32"

    def values(self, texels: np.ndarray) -> np.ndarray:
        """Texels as float64, which holds 32-bit integers exactly."""
        wide = texels.astype(np.float64)
        if not self.as_fractions:
            return wide
        return np.maximum(wide / np.iinfo(texels.dtype).max, -1.0)


_live: WeakValueDictionary[int, Texture] = WeakValueDictionary()


def _scaled(texture: Texture, axis: int, x: np.ndarray, extent: int) -> tuple[np.ndarray, str]:
    """The coordinate in texels, and the addressing mode for indices beyond the edge."""
    x, mode = x.astype(np.float64), texture.addressing[axis]
    x = np.where(np.isnan(x), 0.0, x)
    if not texture.normalised:
        return x, "clamp" if mode in ("wrap", "mirror") else mode
    if mode in ("wrap", "mirror"):
        period = np.floor(np.clip(x, -_FAR, _FAR))
        inside = np.clip(x, -_FAR, _FAR) - period
        if mode == "mirror":
            return np.where(period % 2 == 0, inside, 1 - inside) * extent, "clamp"
        return inside * extent, "wrap"
    return x * extent, mode


def _texels(
    texture: Texture, axis: int, x: np.ndarray, extent: int
) -> list[tuple[np.ndarray, np.ndarray | None, np.ndarray | float]]:
    """The texels along an axis that contribute to a value: (index, mask of indices inside or None, weight) for each."""
    x, mode = _scaled(texture, axis, x, extent)
    x = np.clip(x, -_FAR, _FAR)
    if texture.filtering == "point":
        parts = [(np.floor(x), 1.0)]
    else:
        first = np.floor(x - 0.5)
        weight = np.floor((x - 0.5 - first) * 256 + 0.5) / 256
        parts = [(first, 1 - weight), (first + 1, weight)]
    out = []
    for place, weight in parts:
        index = place.astype(np.int64)
        inside = (index >= 0) & (index < extent) if mode == "border" else None
        out.append((index % extent if mode == "wrap" else np.clip(index, 0, extent - 1), inside, weight))
    return out


def _indexed(
    texture: Texture, axis: int, x: np.ndarray, extent: int
) -> list[tuple[np.ndarray, np.ndarray | None, np.ndarray | float]]:
    """As `_texels`, for a texel given by its index."""
    index = x.astype(np.int64)
    zero = texture.linear or texture.addressing[axis] == "border"
    inside = (index >= 0) & (index < extent) if zero else None
    return [(np.clip(index, 0, extent - 1), inside, 1.0)]


def sample(texture: Texture, coordinates: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """The four channels, in the type that the texture reads as. Coordinates x, y, z: float32, or int32 for indices."""
    extents = texture.data.shape[-2::-1]
    if coordinates[0].dtype == np.int32:
        axes = [_indexed(texture, axis, x, extents[axis]) for axis, x in enumerate(coordinates)]
    else:
        axes = [_texels(texture, axis, x, extents[axis]) for axis, x in enumerate(coordinates)]
    channels = texture.data.shape[-1]
    total: np.ndarray | float = 0.0
    for parts in itertools.product(*axes):
        value = texture.values(texture.data[tuple(index for index, _, _ in reversed(parts))])
        for _, inside, _ in parts:
            if inside is not None:
                value = np.where(inside[..., None], value, np.array(texture.border[:channels], np.float64))
        for _, _, weight in parts:
            value = value * np.asarray(weight)[..., None]
        total = total + value
    kind = {"f32": np.float32, "s32": np.int32, "u32": np.uint32}[texture.reads]
    found = [total[..., channel].astype(kind) for channel in range(channels)]
    fill = [np.zeros((1, 1), kind), np.zeros((1, 1), kind), np.ones((1, 1), kind)]
    return found + fill[channels - 1 :]


def read(
    group: Group, site: Site, kind: str, handle: np.ndarray, coordinates: tuple[np.ndarray, ...]
) -> list[np.ndarray]:
    """tex: the four channels for each lane, in the type `kind`."""
    out: list[np.ndarray] | None = None
    for number in np.unique(handle):
        which = np.broadcast_to(handle == number, group.lanes.shape)
        texture = _live.get(int(number))
        if texture is None:
            raise OutOfBounds(
                f"out of bounds: {int(number):#x} is not a live texture object",
                place_of(group, site, which),
                address=int(number),
                allocation=None,
                distance=None,
            )
        if texture.dimensions != len(coordinates):
            raise UnsupportedInstruction(
                f"a texture of {texture.dimensions} dimensions read with {len(coordinates)} coordinates",
                place_of(group, site, which),
            )
        if texture.reads != kind or (texture.linear and coordinates[0].dtype != np.int32):
            how = "as fractions" if texture.as_fractions else "as they are"
            raise UnsupportedInstruction(
                f"a texture of {texture.data.dtype}, read {how}, is fetched as {kind}"
                + (" at a coordinate; linear memory is fetched by index" if texture.linear else ""),
                place_of(group, site, which),
            )
        values = sample(texture, coordinates)
        out = values if out is None else [np.where(which, new, old) for new, old in zip(values, out, strict=True)]
    return out


RUNTIME = {"texture_read": read}
