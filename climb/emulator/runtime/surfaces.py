"""Surfaces: arrays that kernels read, write and update at byte offsets in x and element indices in y and z.

CUDA C++ Programming Guide, "Surface Functions"; PTX ISA, suld, sust and sured. An access outside the array is an error
(`.trap`, the default of CUDA C++), goes to the nearest element (`.clamp`), or reads zero and writes nothing (`.zero`).
Surface accesses are neither counted nor checked for races: their cost depends on an undocumented memory layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np

from ..checks.faults import place_of
from ..errors import Misaligned, OutOfBounds, UnsupportedInstruction
from ..isa.surface import GEOMETRIES
from ..simt.groups import Group
from ..simt.site import Site
from .textures import new_handle

#: The operations of sured, as NumPy's unbuffered updates.
UPDATES = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
}  # fmt: skip


@dataclass(eq=False)
class Surface:
    """A surface. `data`: a C-contiguous array as for a `Texture`, with the layers first if it is `layered`.

    `handle` is the surface object to pass to a kernel; it is valid as long as the Surface lives. Raises ValueError for
    data that is not contiguous.
    """

    data: np.ndarray
    layered: bool = False

    def __post_init__(self) -> None:
        if not self.data.flags.c_contiguous or not 2 <= self.data.ndim <= 4:
            raise ValueError(f"a surface is a contiguous array of one to three dimensions, not {self.data.shape}")
        self.handle = new_handle()
        _live[self.handle] = self

    @property
    def geometry(self) -> str:
        """The geometry of its accesses: 1d, 2d, 3d, a1d or a2d."""
        dimensions = self.data.ndim - 1
        return f"a{dimensions - 1}d" if self.layered else f"{dimensions}d"

    @property
    def rows(self) -> np.ndarray:
        """The data as bytes: uint8 (..., bytes of a row)."""
        return self.data.reshape(*self.data.shape[:-2], -1).view(np.uint8)


_live: WeakValueDictionary[int, Surface] = WeakValueDictionary()


def _surfaces(group: Group, site: Site, geometry: str, handle: np.ndarray) -> list[tuple[Surface, np.ndarray]]:
    """Yield the surfaces that an access reaches, each with a mask of its lanes."""
    out, shape = [], group.lanes.shape
    for number in np.unique(handle):
        which = np.broadcast_to(handle == number, shape)
        surface = _live.get(int(number))
        if surface is None:
            raise OutOfBounds(
                f"out of bounds: {int(number):#x} is not a live surface object",
                place_of(group, site, which), address=int(number), allocation=None, distance=None,
            )  # fmt: skip
        if surface.geometry != geometry:
            what = f"a surface of geometry {surface.geometry} accessed as {geometry}"
            raise UnsupportedInstruction(what, place_of(group, site, which))
        out.append((surface, which))
    return out


def _place(
    group: Group, site: Site, mode: str, surface: Surface, which: np.ndarray, nbytes: int, at: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the offset in bytes of each access of the lanes `which`, (n,), and where it is inside. Raises an error for
    the others."""
    geometry = GEOMETRIES[surface.geometry]
    extents = surface.rows.shape
    at = [np.broadcast_to(each, which.shape)[which].astype(np.int64) for each in at]
    most = [extent - (nbytes if axis == "x" else 1) for axis, extent in zip(geometry, extents, strict=True)]
    inside = np.ones(at[0].shape, np.bool_)
    for each, last in zip(at, most, strict=True):
        inside &= (each >= 0) & (each <= last)
    bad = np.zeros(which.shape, np.bool_)
    if mode == "trap" and not inside.all():
        bad[which] = ~inside
        first = int(np.flatnonzero(~inside)[0])
        where = ", ".join(f"{axis} {int(each[first])}" for axis, each in zip(geometry, at, strict=True))
        size = " x ".join(map(str, extents[:-1])) + (" x " if len(extents) > 1 else "") + f"{extents[-1]} bytes"
        raise OutOfBounds(
            f"out of bounds: {nbytes} byte{'s' * (nbytes > 1)} at {where} of a surface of {size}",
            place_of(group, site, bad), address=None, allocation=None, distance=None,
        )  # fmt: skip
    at = [np.clip(each, 0, max(last, 0)) for each, last in zip(at, most, strict=True)]
    if (at[-1] % nbytes).any():
        bad[which] = at[-1] % nbytes != 0
        x = int(at[-1][at[-1] % nbytes != 0][0])
        what = f"misaligned: {nbytes} bytes at x {x} of a surface, which is no multiple of {nbytes}"
        raise Misaligned(what, place_of(group, site, bad), address=x, width=nbytes, allocation=None)
    offset = at[0]
    for each, extent in zip(at[1:], extents[1:], strict=True):
        offset = offset * extent + each
    return offset, inside | (mode == "clamp")


def load(
    group: Group, site: Site, mode: str, geometry: str, size: int, count: int, handle: np.ndarray,
    at: tuple[np.ndarray, ...],
) -> list[np.ndarray]:  # fmt: skip
    """suld.b: `count` elements of `size` bytes for each lane, unsigned."""
    out = np.zeros((*group.lanes.shape, count), f"u{size}")
    for surface, which in _surfaces(group, site, geometry, handle):
        offset, inside = _place(group, site, mode, surface, which, size * count, at)
        elements = surface.rows.reshape(-1).view(f"u{size}")
        found = elements[(offset // size)[:, None] + np.arange(count)]
        out[which] = np.where(inside[:, None], found, 0)
    return [out[..., number] for number in range(count)]


def store(
    group: Group, site: Site, mode: str, geometry: str, size: int, handle: np.ndarray, at: tuple[np.ndarray, ...],
    values: tuple[np.ndarray, ...],
) -> None:  # fmt: skip
    """sust.b: store the `values`, elements of `size` bytes. If lanes store to one place, the last lane wins."""
    for surface, which in _surfaces(group, site, geometry, handle):
        offset, inside = _place(group, site, mode, surface, which, size * len(values), at)
        elements = surface.rows.reshape(-1).view(f"u{size}")
        group.batch.changes += 1
        for number, value in enumerate(values):
            chosen = np.broadcast_to(value, which.shape)[which]
            elements[offset[inside] // size + number] = chosen[inside]


def update(
    group: Group, site: Site, mode: str, geometry: str, how: str, handle: np.ndarray, at: tuple[np.ndarray, ...],
    value: np.ndarray,
) -> None:  # fmt: skip
    """sured.b: update each place by the operation `how`, atomically."""
    for surface, which in _surfaces(group, site, geometry, handle):
        offset, inside = _place(group, site, mode, surface, which, value.itemsize, at)
        elements = surface.rows.reshape(-1).view(value.dtype)
        group.batch.changes += 1
        chosen = np.broadcast_to(value, which.shape)[which]
        UPDATES[how].at(elements, offset[inside] // value.itemsize, chosen[inside])


RUNTIME = {"surface_load": load, "surface_store": store, "surface_update": update}
