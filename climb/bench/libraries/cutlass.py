"""CUTLASS: a float32 product as three TF32 products on tensor cores, its headers compiled by NVRTC.

The package ``nvidia-cutlass`` holds the headers. The kernel is of the Ampere generation (``mma.sync``): CUTLASS has no
float32 product for Hopper's ``wgmma``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
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


def cutlass(algorithm: str, precision: str) -> Callable[[], Description]:
    """A peer's ``describe`` for CUTLASS, with the version of the package."""

    def found() -> Description:
        from importlib.metadata import version

        return describe("CUTLASS", version("nvidia-cutlass"), f"{algorithm}, tiles timed", precision)

    return found


def options(tile: tuple[int, ...], alignment: int, headers: Path, cuda_major: int) -> tuple[str, ...]:
    """NVRTC's options for a tile; ``alignment`` in floats, ``headers`` the folder that holds ``cutlass/``."""
    from climb.toolchain.includes import cuda_include_dirs

    defines = [f"-D{name}={value}" for name, value in zip(_NAMES, tile, strict=True)]
    folders = [f"-I{folder}" for folder in (headers, *cuda_include_dirs(cuda_major))]
    return ("-std=c++17", "-default-device", *defines, f"-DALIGNMENT={alignment}", *folders)


def headers() -> Path:
    """The folder of CUTLASS's headers. Raises ImportError without the package."""
    spec = importlib.util.find_spec("cutlass_library")
    for root in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(root) / "source" / "include"
        if (folder / "cutlass" / "cutlass.h").exists():
            return folder
    raise ImportError("CUTLASS's headers are not installed", name="nvidia-cutlass")


def product(a: Any, b: Any, c: Any) -> Prepared:
    """A launch of c = a b, row-major float32 CuPy arrays, by the fastest of a few tiles."""
    import cupy

    folder, major = headers(), cupy.cuda.nvrtc.getVersion()[0]
    if int(cupy.cuda.Device().compute_capability) < 80:
        raise PeerUnavailable("TF32 needs compute capability 8.0")
    (m, k), n = a.shape, b.shape[1]
    alignment = 4 if n % 4 == 0 and k % 4 == 0 else 1
    sms = cupy.cuda.Device().attributes["MultiProcessorCount"]

    def candidate(tile: tuple[int, ...]) -> Prepared:
        module = cupy.RawModule(code=SOURCE.read_text(), options=options(tile, alignment, folder, major))
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

    return fastest(lambda tile=tile: candidate(tile) for tile in TILES)
