"""Textures: arrays that kernels read at coordinates, with point or linear filtering, or by integer index.

CUDA C++ Programming Guide, "Texture Fetching": texel i spans i to i + 1. Linear filtering weights the texels on both
sides of x - 0.5; see `texture_filter`. Wrap and mirror addressing need normalised coordinates; otherwise they act as
clamp. A layer is chosen by its number, a face of a cube map by a direction; filtering does not cross the edges of a
face. There is one level of detail, so levels and gradients change nothing.

Texels are float32 or float16, which are read as float32; integers of 8, 16 or 32 bits, read as they are; or integers of
8 or 16 bits that `as_fractions` maps to float32 in [0, 1] or [-1, 1]. Beyond the end of linear memory (`linear`), reads
return zero. If a texture has fewer than four channels, the fourth reads as one and the other missing ones as zero.

Texture reads are not counted: their cost depends on an undocumented memory layout.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from ..checks.faults import place_of
from ..errors import OutOfBounds, UnsupportedInstruction
from ..simt.groups import Group
from ..simt.site import Site
from .texture_filter import cut, weight, weighted_sum, weights
from .texture_memory import Report, report_of

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

    With `layered`, the first axis numbers layers; with `cube`, it numbers the six faces, of each layer in turn.
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
    layered: bool = False
    cube: bool = False

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
        if self.cube and (self.data.ndim != 4 or self.data.shape[0] % 6 or self.data.shape[1] != self.data.shape[2]):
            raise ValueError(f"a cube map has six square faces, or six for each layer, not {self.data.shape}")
        if self.layered and self.data.ndim < 3:
            raise ValueError(f"a layered texture has its layers first, not {self.data.shape}")
        self.handle = new_handle()
        _live[self.handle] = self

    @property
    def geometry(self) -> str:
        """The geometry of its reads: 1d, 2d, 3d, a1d, a2d, cube or acube."""
        if self.cube:
            return "acube" if self.layered else "cube"
        return f"a{self.data.ndim - 2}d" if self.layered else f"{self.data.ndim - 1}d"

    @property
    def reads(self) -> str:
        """The PTX type of the values read: f32, s32 or u32."""
        if self.as_fractions or self.data.dtype.kind == "f":
            return "f32"
        return "s32" if self.data.dtype.kind == "i" else "u32"

    def values(self, texels: np.ndarray) -> np.ndarray:
        """Return texels as float64, which holds 32-bit integers exactly."""
        wide = texels.astype(np.float64)
        if not self.as_fractions:
            return wide
        return np.maximum(wide / np.iinfo(texels.dtype).max, -1.0)


def new_handle() -> int:
    """Return a handle for a texture or surface object."""
    return next(_numbers)


_live: WeakValueDictionary[int, Texture] = WeakValueDictionary()


def _scaled(texture: Texture, axis: int, x: np.ndarray, extent: int) -> tuple[np.ndarray, str]:
    """Return the coordinate in texels, and the addressing mode for indices beyond the edge."""
    x, mode = x.astype(np.float64), texture.addressing[axis]
    x = np.where(np.isnan(x), 0.0, x)
    if not texture.normalised:
        return x, "clamp" if mode in ("wrap", "mirror") else mode
    if texture.filtering == "linear":
        x = cut(np.clip(x, -_FAR, _FAR))
    if mode in ("wrap", "mirror"):
        period = np.floor(np.clip(x, -_FAR, _FAR))
        inside = np.clip(x, -_FAR, _FAR) - period
        if mode == "mirror":
            return np.where(period % 2 == 0, inside, 1 - inside) * extent, "clamp"
        return inside * extent, "wrap"
    return x * extent, mode


class _Axis(NamedTuple):
    """The texels along an axis that contribute to a value: for each its index, and where that is inside, or None for
    everywhere. `high`: the weight in 256ths of the second one; None if there is only one."""

    parts: tuple[tuple[np.ndarray, np.ndarray | None], ...]
    high: np.ndarray | None


def _texels(texture: Texture, axis: int, x: np.ndarray, extent: int, both: bool = False) -> _Axis:
    """Return the texels at a coordinate. With `both`, those that linear filtering would use, however the texture
    filters."""
    x, mode = _scaled(texture, axis, x, extent)
    x = np.clip(x, -_FAR, _FAR)
    high = None
    if texture.filtering == "point" and not both:
        places = [np.floor(x)]
    else:
        if mode == "clamp" and not both:
            x = np.clip(x, 0.5, extent - 0.5)
        first = np.floor(x - 0.5)
        high = weight(x - 0.5 - first)
        places = [first, first + 1]
    parts = []
    for place in places:
        index = place.astype(np.int64)
        inside = (index >= 0) & (index < extent) if mode == "border" else None
        parts.append((index % extent if mode == "wrap" else np.clip(index, 0, extent - 1), inside))
    return _Axis(tuple(parts), high)


def _indexed(texture: Texture, axis: int, x: np.ndarray, extent: int) -> _Axis:
    """Return the texel with an index."""
    index = x.astype(np.int64)
    zero = texture.linear or texture.addressing[axis] == "border"
    inside = (index >= 0) & (index < extent) if zero else None
    return _Axis(((np.clip(index, 0, extent - 1), inside),), None)


def sample(
    texture: Texture,
    coordinates: tuple[np.ndarray, ...],
    layer: np.ndarray | None = None,
    report: Report | None = None,
) -> list[np.ndarray]:
    """Return the four channels, in the type that the texture reads as. Coordinates x, y, z: float32, or int32 for
    indices.

    `layer` numbers the layers of a layered texture, and is clamped to them. `report`: see `texture_memory`.
    """
    first = None
    if texture.cube:
        face, coordinates = cube_face(*coordinates)
        last = texture.data.shape[0] // 6 - 1
        first = face if layer is None else face + 6 * np.minimum(layer, last).astype(np.int64)
    elif layer is not None:
        first = np.minimum(layer, texture.data.shape[0] - 1).astype(np.int64)
    extents = texture.data.shape[-2::-1]
    locate = _indexed if coordinates[0].dtype == np.int32 else _texels
    axes = [locate(texture, axis, x, extents[axis]) for axis, x in enumerate(coordinates)]
    if axes[0].high is None:
        found = _value(texture, tuple(axis.parts[0] for axis in axes), first, report)
    else:
        parts = weights(tuple(np.broadcast_arrays(*(axis.high for axis in axes))))
        found = weighted_sum(
            {
                place: _value(
                    texture, tuple(axis.parts[which] for axis, which in zip(axes, place, strict=True)), first, report
                )
                for place in parts
            },
            parts,
        )
    kind, channels = _KINDS[texture.reads], texture.data.shape[-1]
    fill = [np.zeros((1, 1), kind), np.zeros((1, 1), kind), np.ones((1, 1), kind)]
    return [found[..., channel].astype(kind) for channel in range(channels)] + fill[channels - 1 :]


_KINDS = {"f32": np.float32, "s32": np.int32, "u32": np.uint32}


def _value(texture: Texture, parts: tuple, first: np.ndarray | None, report: Report | None) -> np.ndarray:
    """Return the channels of one texel: float64 (..., channels). `first`: the index of its layer or face."""
    place = tuple(index for index, _ in reversed(parts))
    place = place if first is None else (first, *place)
    if report is not None:
        report(place, [inside for _, inside in parts if inside is not None])
    value = texture.values(texture.data[place])
    border = np.array(texture.border[: texture.data.shape[-1]], np.float64)
    for _, inside in parts:
        if inside is not None:
            value = np.where(inside[..., None], value, border)
    return value


def cube_face(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return the face that a direction points at, and the normalised coordinates in it.

    CUDA C++ Programming Guide, "Cubemap Textures": the coordinate with the largest magnitude chooses the face.
    """
    x, y, z = np.broadcast_arrays(*(each.astype(np.float64) for each in (x, y, z)))
    across, up = (np.abs(x) >= np.abs(y)) & (np.abs(x) >= np.abs(z)), np.abs(y) >= np.abs(z)
    rules = [(0, x, -z, -y), (1, -x, z, -y), (2, y, x, z), (3, -y, x, -z), (4, z, x, -y), (5, -z, -x, -y)]
    face = np.select([across & (x >= 0), across, up & (y >= 0), up, z >= 0], range(5), 5)
    m, s, t = (np.choose(face, [rule[number] for rule in rules]) for number in (1, 2, 3))
    m = np.where(m == 0, 1.0, m)
    return face, ((s / m + 1) / 2, (t / m + 1) / 2)


def gather(
    texture: Texture, channel: int, coordinates: tuple, layer: np.ndarray | None, report: Report | None = None
) -> list[np.ndarray]:
    """Return one channel of the four texels that linear filtering would use, in the order of `tex2Dgather`.

    That is counterclockwise from the lower left: (x0, y1), (x1, y1), (x1, y0), (x0, y0).
    """
    first = None if layer is None else np.minimum(layer, texture.data.shape[0] - 1).astype(np.int64)
    extents = texture.data.shape[-2::-1]
    x, y = (_texels(texture, axis, each, extents[axis], True) for axis, each in enumerate(coordinates))
    out = []
    for right, lower in ((0, 1), (1, 1), (1, 0), (0, 0)):
        value = _value(texture, (x.parts[right], y.parts[lower]), first, report)
        one = value[..., channel] if channel < value.shape[-1] else np.full(value.shape[:-1], float(channel == 3))
        out.append(one.astype(_KINDS[texture.reads]))
    return out


def _live_textures(
    group: Group, site: Site, geometry: str, kind: str, handle: np.ndarray, indexed: bool
) -> Iterator[tuple[Texture, np.ndarray]]:
    """Yield the textures that a read reaches, each with a mask of its lanes. Raises an error for one that cannot be
    read like this."""
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
        if texture.geometry != geometry:
            raise UnsupportedInstruction(
                f"a texture of geometry {texture.geometry} read as {geometry}", place_of(group, site, which)
            )
        if texture.reads != kind or (texture.linear and not indexed):
            how = "as fractions" if texture.as_fractions else "as they are"
            raise UnsupportedInstruction(
                f"a texture of {texture.data.dtype}, read {how}, is fetched as {kind}"
                + (" at a coordinate; linear memory is fetched by index" if texture.linear else ""),
                place_of(group, site, which),
            )
        yield texture, which


def _join(values: list[np.ndarray], which: np.ndarray, out: list[np.ndarray] | None) -> list[np.ndarray]:
    return values if out is None else [np.where(which, new, old) for new, old in zip(values, out, strict=True)]


def read(
    group: Group, site: Site, geometry: str, kind: str, handle: np.ndarray, coordinates: tuple[np.ndarray, ...],
    layer: np.ndarray | None,
) -> list[np.ndarray]:  # fmt: skip
    """tex: the four channels for each lane, in the type `kind`."""
    out: list[np.ndarray] | None = None
    indexed = coordinates[0].dtype == np.int32
    for texture, which in _live_textures(group, site, geometry, kind, handle, indexed):
        out = _join(sample(texture, coordinates, layer, report_of(group, site, texture.data, which)), which, out)
    return out


def read_four(
    group: Group, site: Site, geometry: str, kind: str, handle: np.ndarray, coordinates: tuple[np.ndarray, ...],
    layer: np.ndarray | None, channel: int,
) -> list[np.ndarray]:  # fmt: skip
    """tld4: one channel of four texels for each lane."""
    out: list[np.ndarray] | None = None
    for texture, which in _live_textures(group, site, geometry, kind, handle, False):
        report = report_of(group, site, texture.data, which)
        out = _join(gather(texture, channel, coordinates, layer, report), which, out)
    return out


RUNTIME = {"texture_read": read, "texture_gather": read_four}
