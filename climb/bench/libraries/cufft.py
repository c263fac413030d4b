"""cuFFT on a convolution with zeros outside: whole, or by overlap-save tiles, with kernels or callbacks around it.

A product of spectra is a circular convolution. Whole: with ``n + reach`` points or more in each dimension, only zeros
wrap around. Overlap-save (Oppenheim, Schafer, "Discrete-Time Signal Processing", 8.7.3): tiles of ``length`` points
overlap by ``2 * reach``; what wraps around lands in the overlap, which is not kept. Real transforms alone (R2C, C2R),
planned in one batch, on the cuFFT that PyTorch loads, through nvmath's bindings.

Around the transforms, points are gathered, spectra multiplied and results kept: by three kernels, or by cuFFT's own
kernels with callbacks (``cufft_callbacks``). The fastest of all forms is the peer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from climb.bench.libraries.choosing import Prepared, fastest
from climb.bench.libraries.description import Description, describe, dotted
from climb.bench.problem import PeerUnavailable

#: The number of lengths of a whole transform that are tried, from the shortest that suffices.
TRIED = 4
#: Lengths of tiles that are tried: powers of two and thrice a power of two, for which cuFFT is fastest.
TILES = {2: (32, 64, 128, 256, 512, 1024), 3: (24, 32, 48, 64, 96, 128)}
#: Bytes of one array of tiles; longer overlaps need more.
MOST_BYTES = 16 << 30
_R2C, _C2R = 0x2A, 0x2C
THREADS = 256

_SOURCE = r"""
__device__ int coordinate(Index& rest, Index extent)
{
    const int found = static_cast<int>(rest % extent);
    rest /= extent;
    return found;
}

// The place of a point of a tile in the volume, or -1. A tile begins SHIFT points before
// the first result that is kept of it.
__device__ long long place(long long index, bool inside_only)
{
    Index rest = static_cast<Index>(index);
    int at[DIMS];
#pragma unroll
    for (int d = DIMS - 1; d >= 0; --d) at[d] = coordinate(rest, LENGTH[d]);
    long long found = 0, scale = 1;
#pragma unroll
    for (int d = DIMS - 1; d >= 0; --d) {
        const int tile = coordinate(rest, TILES[d]);
        const int x = tile * STEP[d] + at[d] - SHIFT[d];
        const bool own = at[d] >= SHIFT[d] && at[d] < SHIFT[d] + STEP[d];
        if (x < 0 || x >= EXTENT[d] || (inside_only && !own)) return -1;
        found += scale * x;
        scale *= EXTENT[d];
    }
    return found;
}
"""
_KERNELS = r"""
extern "C" __global__ void gather(const float* __restrict__ source,
                                  float* __restrict__ tiles, long long count)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const long long from = place(i, false);
    tiles[i] = from < 0 ? 0.0f : source[from];
}

extern "C" __global__ void multiply(float2* __restrict__ spectra,
                                    const float2* __restrict__ factors, int period,
                                    long long count)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float2 a = spectra[i], b = factors[i % period];
    spectra[i] = make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

extern "C" __global__ void keep(const float* __restrict__ tiles,
                                float* __restrict__ target, long long count)
{
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const long long to = place(i, true);
    if (to >= 0) target[to] = tiles[i];
}
"""


#: Makes a launch from the source, the spectrum of the weights, the target and the tiling.
Make = Callable[[Any, Any, Any, "Tiling"], Prepared]


@dataclass(frozen=True)
class Tiling:
    """The way a volume is cut: extents, transform lengths, and for each dimension its tiles, their distance and early
    start."""

    extents: tuple[int, ...]
    lengths: tuple[int, ...]
    tiles: tuple[int, ...]
    steps: tuple[int, ...]
    shifts: tuple[int, ...]

    @property
    def batch(self) -> int:
        """The number of tiles."""
        return prod(self.tiles)

    @property
    def points(self) -> int:
        """The real points of all tiles."""
        return self.batch * prod(self.lengths)

    @property
    def spectrum(self) -> int:
        """The complex points of one tile's spectrum: half of the last dimension, and one."""
        return prod(self.lengths[:-1]) * (self.lengths[-1] // 2 + 1)

    @property
    def bytes(self) -> int:
        """The bytes of all tiles and of their spectra."""
        return 4 * self.points + 8 * self.batch * self.spectrum

    def source(self) -> str:
        """CUDA C++ that finds the place of a point, for this tiling."""
        lists = {
            "LENGTH": self.lengths,
            "TILES": self.tiles,
            "STEP": self.steps,
            "SHIFT": self.shifts,
            "EXTENT": self.extents,
        }
        # Divisions of 32 bits take a third of the instructions of those of 64.
        index = "unsigned int" if self.points < 1 << 31 else "unsigned long long"
        text = [f"using Index = {index};", f"constexpr int DIMS = {len(self.extents)};"]
        for name, values in lists.items():
            text.append(f"__device__ constexpr int {name}[] = {{{', '.join(map(str, values))}}};")
        return "\n".join(text) + _SOURCE

    def __str__(self) -> str:
        lengths = " x ".join(map(str, self.lengths))
        return f"whole, {lengths} points" if self.batch == 1 else f"overlap-save, {self.batch} tiles of {lengths}"


def smooth_lengths(least: int, count: int = TRIED) -> list[int]:
    """Return the first even lengths from ``least`` on without a prime factor above 13, for which cuFFT has kernels."""
    found: list[int] = []
    length = least
    while len(found) < count:
        rest = length
        for factor in (2, 3, 5, 7, 11, 13):
            while rest % factor == 0:
                rest //= factor
        if rest == 1 and length % 2 == 0:
            found.append(length)
        length += 1
    return found


def whole(extents: tuple[int, ...], reaches: tuple[int, ...], lengths: tuple[int, ...]) -> Tiling:
    """Return one tile that holds everything. Raises ValueError for lengths at which results would wrap around."""
    short = [n + r > length or 2 * r + 1 > length for n, r, length in zip(extents, reaches, lengths, strict=True)]
    if any(short):
        raise ValueError(f"{lengths} points are too few for {extents} with a reach of {reaches}")
    return Tiling(extents, lengths, (1,) * len(extents), extents, (0,) * len(extents))


def overlap_save(extents: tuple[int, ...], reaches: tuple[int, ...], length: int) -> Tiling:
    """Return tiles of ``length`` points in each dimension. Raises ValueError if more than half of them overlap."""
    if any(4 * r > length for r in reaches):
        raise ValueError(f"tiles of {length} points keep less than half of them with a reach of {reaches}")
    steps = tuple(length - 2 * r for r in reaches)
    tiles = tuple(-(-n // step) for n, step in zip(extents, steps, strict=True))
    return Tiling(extents, (length,) * len(extents), tiles, steps, reaches)


def tilings(extents: tuple[int, ...], reaches: tuple[int, ...]) -> Iterator[Tiling]:
    """Yield the tilings to try: the whole volume at the shortest sufficient lengths, then tiles of several lengths."""
    by_dimension = [smooth_lengths(max(n + r, 2 * r + 1)) for n, r in zip(extents, reaches, strict=True)]
    for lengths in zip(*by_dimension, strict=True):
        yield whole(extents, reaches, lengths)
    for length in TILES[len(extents)]:
        if all(4 * r <= length < n for n, r in zip(extents, reaches, strict=True)):
            yield overlap_save(extents, reaches, length)


def convolution(source: Any, weights: Any, target: Any, *makes: Make) -> Prepared:
    """Return a launch that convolves ``source`` into ``target``, CuPy arrays of two or three dimensions, zeros outside.

    Plans, buffers and the spectrum of ``weights``, which have odd extents, are made now. All :func:`tilings` are timed
    and the fastest is kept. ``makes`` turn one of them into a launch: :func:`with_kernels` by default.
    """
    if weights.ndim not in TILES:
        raise PeerUnavailable(f"cuFFT is tried in two and three dimensions; these are {weights.ndim}")
    reaches = tuple(extent // 2 for extent in weights.shape)
    cuts = [cut for cut in tilings(source.shape, reaches) if cut.bytes <= MOST_BYTES]
    forms = [(make, cut) for make in makes or (with_kernels,) for cut in cuts]
    return fastest(
        lambda make=make, cut=cut: make(source, spectrum_of(weights, cut), target, cut) for make, cut in forms
    )


def spectrum_of(weights: Any, cut: Tiling) -> Any:
    """Return the spectrum of the flipped weights, centred at the origin, with the scale of both transforms, as a CuPy
    array.

    A correlation is a convolution with flipped weights.
    """
    import cupy

    padded = cupy.zeros(cut.lengths, dtype=cupy.float32)
    padded[tuple(slice(0, extent) for extent in weights.shape)] = weights[(slice(None, None, -1),) * weights.ndim]
    turned = cupy.roll(padded, tuple(-(extent // 2) for extent in weights.shape), axis=tuple(range(weights.ndim)))
    factors = cupy.empty(cut.spectrum, dtype=cupy.complex64)
    forward = RealPlan(cut.lengths, 1, _R2C)
    forward(turned, factors)
    factors *= cupy.float32(1 / prod(cut.lengths))
    cupy.cuda.get_current_stream().synchronize()
    return factors


class RealPlan:
    """A cuFFT plan of ``batch`` real transforms of packed arrays; calling it executes it on the current stream.

    ``prepare`` is called with the plan's handle before cuFFT makes it, which is when callbacks are set.
    """

    def __init__(self, lengths: tuple[int, ...], batch: int, kind: int, prepare: Callable[[int], None] | None = None):
        import torch  # noqa: F401 - loads the library
        from nvmath.bindings import cufft

        self._library, self._kind = cufft, kind
        self._plan = cufft.create()
        if prepare is not None:
            prepare(self._plan)
        real, half = prod(lengths), prod(lengths[:-1]) * (lengths[-1] // 2 + 1)
        distances = (real, half) if kind == _R2C else (half, real)
        embedded = [*lengths[:-1], lengths[-1]], [*lengths[:-1], lengths[-1] // 2 + 1]
        from_, to = embedded if kind == _R2C else embedded[::-1]
        cufft.make_plan_many(
            self._plan, len(lengths), list(lengths), from_, 1, distances[0], to, 1, distances[1], kind, batch
        )

    def __call__(self, source: Any, target: Any) -> None:
        import cupy

        self._library.set_stream(self._plan, cupy.cuda.get_current_stream().ptr)
        execute = self._library.exec_r2c if self._kind == _R2C else self._library.exec_c2r
        execute(self._plan, source.data.ptr, target.data.ptr)

    def __del__(self) -> None:
        self._library.destroy(self._plan)


def forward_plan(cut: Tiling, prepare: Callable[[int], None] | None = None) -> RealPlan:
    """Return the plan of all tiles' transforms to spectra."""
    return RealPlan(cut.lengths, cut.batch, _R2C, prepare)


def backward_plan(cut: Tiling, prepare: Callable[[int], None] | None = None) -> RealPlan:
    """Return the plan of all tiles' transforms back."""
    return RealPlan(cut.lengths, cut.batch, _C2R, prepare)


def with_kernels(source: Any, factors: Any, target: Any, cut: Tiling) -> Prepared:
    """Return a launch by this tiling, kernels of ours around cuFFT's; ``factors`` come from :func:`spectrum_of`."""
    import cupy

    module = cupy.RawModule(code=cut.source() + _KERNELS, options=("-std=c++17",))
    gather, multiply, keep = (module.get_function(name) for name in ("gather", "multiply", "keep"))
    tiles = cupy.empty(cut.points, dtype=cupy.float32)
    spectra = cupy.empty(cut.batch * cut.spectrum, dtype=cupy.complex64)
    forward, backward = forward_plan(cut), backward_plan(cut)
    points, products = -(-tiles.size // THREADS), -(-spectra.size // THREADS)

    def enqueue() -> None:
        gather((points,), (THREADS,), (source, tiles, tiles.size))
        forward(tiles, spectra)
        multiply((products,), (THREADS,), (spectra, factors, cupy.int32(cut.spectrum), spectra.size))
        backward(spectra, tiles)
        keep((points,), (THREADS,), (tiles, target, tiles.size))

    return Prepared(enqueue, {"choice": f"{cut}, with kernels"})


def cufft() -> Description:
    """A peer's ``describe`` for cuFFT, with the version that is loaded."""
    import torch  # noqa: F401 - loads the cuFFT that is described
    from nvmath.bindings import cufft as library

    how = "R2C, product, C2R; spectrum of the weights made before"
    return describe("cuFFT", dotted(library.get_version(), 1000, 100, 1), how, "fp32")
