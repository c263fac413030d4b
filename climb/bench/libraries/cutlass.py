"""CUTLASS: products on tensor cores with results in float32, its headers compiled by NVRTC.

The package ``nvidia-cutlass`` holds the headers. The kernels are of the Ampere generation (``mma.sync``): CUTLASS has
no float32 product for Hopper's ``wgmma``, and its kernels for Hopper need host code of their own, which NVRTC does not
compile.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.libraries.choosing import Prepared, fastest
from climb.bench.libraries.description import Description, describe
from climb.bench.problem import PeerUnavailable

SOURCE = Path(__file__).with_name("cutlass_gemm.cu")
#: Tile of a block (m, n, k), tile of a warp (m, n), stages: those of CUTLASS's profiler for this instruction.
TILES = ((128, 128, 16, 64, 64, 4), (128, 64, 16, 64, 32, 3), (256, 128, 16, 64, 64, 3))
_NAMES = ("TILE_M", "TILE_N", "TILE_K", "WARP_M", "WARP_N", "STAGES")


@dataclass(frozen=True)
class Kind:
    """A way to multiply factors: C++ names, k steps of an instruction, elements in 16 bytes, tiles to try."""

    factor: str
    operator: str
    step: int
    quad: int
    tiles: tuple[tuple[int, ...], ...]


#: Float32 by three products of TF32; float32 rounded to TF32; float16 with sums in float32.
KINDS = {
    "3xTF32": Kind("float", "OpMultiplyAddFastF32", 8, 4, TILES),
    "TF32": Kind("float", "OpMultiplyAdd", 8, 4, TILES),
    "fp16": Kind(
        "cutlass::half_t",
        "OpMultiplyAdd",
        16,
        8,
        ((128, 128, 32, 64, 64, 4), (256, 128, 32, 64, 64, 3), (128, 256, 32, 64, 64, 3), (128, 64, 64, 64, 32, 3)),
    ),
}


def cutlass(algorithm: str, precision: str) -> Callable[[], Description]:
    """A peer's ``describe`` for CUTLASS, with the version of the package."""

    def found() -> Description:
        from importlib.metadata import version

        return describe("CUTLASS", version("nvidia-cutlass"), f"{algorithm}, tiles timed", precision)

    return found


def options(kind: Kind, tile: tuple[int, ...], aligned: bool, headers: Path, cuda_major: int) -> tuple[str, ...]:
    """Return NVRTC's options for a tile; ``aligned`` rows begin at 16 bytes, ``headers`` is the folder with
    ``cutlass/``."""
    from climb.toolchain.includes import cuda_include_dirs

    defines = [f"-D{name}={value}" for name, value in zip(_NAMES, tile, strict=True)]
    defines += [f"-DFACTOR={kind.factor}", f"-DOPERATOR={kind.operator}", f"-DSTEP={kind.step}"]
    defines += [f"-DALIGNMENT={kind.quad if aligned else 1}", f"-DSTORED={4 if aligned else 1}"]
    folders = [f"-I{folder}" for folder in (headers, *cuda_include_dirs(cuda_major))]
    return ("-std=c++17", "-default-device", *defines, *folders)


def headers() -> Path:
    """Return the folder of CUTLASS's headers. Raises ImportError without the package."""
    spec = importlib.util.find_spec("cutlass_library")
    for root in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(root) / "source" / "include"
        if (folder / "cutlass" / "cutlass.h").exists():
            return folder
    raise ImportError("CUTLASS's headers are not installed", name="nvidia-cutlass")


def product(a: Any, b: Any, c: Any, precision: str = "3xTF32") -> Prepared:
    """Return a launch of c = a b, row-major CuPy arrays, by the fastest of a few tiles; ``precision`` is one of
    ``KINDS``."""
    import cupy

    folder, major = headers(), cupy.cuda.nvrtc.getVersion()[0]
    if int(cupy.cuda.Device().compute_capability) < 80:
        raise PeerUnavailable("these products need compute capability 8.0")
    (m, k), n = a.shape, b.shape[1]
    kind = KINDS[precision]
    aligned = n % kind.quad == 0 and k % kind.quad == 0
    if precision == "fp16" and not aligned:
        raise PeerUnavailable("asynchronous copies of halves take at least two at once")
    sms = cupy.cuda.Device().attributes["MultiProcessorCount"]

    def candidate(tile: tuple[int, ...]) -> Prepared:
        module = cupy.RawModule(code=SOURCE.read_text(), options=options(kind, tile, aligned, folder, major))
        extents = tuple(np.int32(extent) for extent in (m, n, k))
        needs = cupy.zeros(6, dtype=np.int32)
        module.get_function("describe")((1,), (1,), (*extents, needs))
        size, shared, threads, *grid = (int(value) for value in needs.get())
        made = cupy.zeros(size, dtype=np.uint8)
        module.get_function("prepare")((1,), (1,), (made, a, b, c, *extents, np.int32(sms)))
        parameters = np.frombuffer(made.get().tobytes(), dtype=[("at", np.uint8, (size,))])
        multiply = module.get_function("multiply")
        if shared > 48 * 1024:
            multiply.max_dynamic_shared_size_bytes = shared

        def enqueue() -> None:
            multiply(tuple(grid), (threads,), (parameters,), shared_mem=shared)

        return Prepared(enqueue, {"choice": f"tile {' x '.join(map(str, tile[:3]))}, {tile[5]} stages"})

    return fastest(lambda tile=tile: candidate(tile) for tile in kind.tiles)
