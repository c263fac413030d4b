"""The search for tiles: ``climb search sgemm`` on a GPU tries them all and keeps what it found.

Every tile in ``CANDIDATES`` is compiled, in several processes; at each of ``SIZES`` the kernel of the rung tuned runs
with each tile that divides the product, is verified against a product in float64 and timed from a cold L2 by events.
The result goes to ``records/<gpu>/search/sgemm.json``: all that was tried. ``searched()`` reads it.
"""

from __future__ import annotations

import datetime
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import hardware, identity, records
from climb.bench.identity import expand_includes
from climb.bench.problem import Launch
from climb.bench.records.kinds import SearchRecord
from kernels.sgemm.sgemm import ladder, problem
from kernels.sgemm.sgemm.product import Product
from kernels.sgemm.sgemm.rungs import Tile, tiles

COMMAND = "climb search sgemm"
#: Where it searches: two sizes that nearly fill their waves with the larger tiles.
SIZES = tuple({"m": edge, "n": edge, "k": edge} for edge in (4096, 2048))
#: Grids of warps, sides of what a thread computes, steps of k in a stage with the number of stages.
WARPS = ((1, 2), (2, 1), (2, 2), (1, 4), (2, 4), (4, 2))
SUMS = ((8, 8), (8, 16), (16, 8))
RINGS = ((8, 4), (16, 2), (16, 3))
#: Bytes of shared memory that a block may have, and that an SM has for all its blocks with 1 KiB for each.
BLOCK_BYTES, SM_BYTES, RESERVED = 227 << 10, 228 << 10, 1 << 10
#: The variant of the kernel that is searched: products that the tile divides.
WHOLE = ", 4, true>"
SAMPLES = 5
FLOAT = 4
FLUSH_BYTES = 1 << 28


def _candidates() -> Iterator[Tile]:
    for (down, across), (rows, cols), lanes, (depth, stages) in itertools.product(WARPS, SUMS, (4, 8), RINGS):
        tile = Tile(down * lanes * rows, across * 32 // lanes * cols, depth, stages, down, across, lanes)
        threads = tile.threads
        copies_a = tile.rows % (threads // 8) == 0
        copies_b = depth * tile.cols % (4 * threads) == 0 and 4 * threads % tile.cols == 0
        fits = tile.shared_bytes <= BLOCK_BYTES and tile.blocks * (tile.shared_bytes + RESERVED) <= SM_BYTES
        if copies_a and copies_b and fits:
            yield tile


CANDIDATES: tuple[Tile, ...] = tuple(_candidates())


def source_sha256() -> str:
    """The hash of what the search measures: the source of the rung tuned with its includes."""
    return identity.code_sha256(expand_includes(ladder["tuned"].path))


@dataclass(frozen=True)
class Search:
    """The result of a search. A trial has ``size``, ``tile``, ``registers``, ``seconds`` and ``error``."""

    gpu: str
    date: str
    source_sha256: str
    trials: tuple[dict[str, Any], ...]

    def at(self, size: dict[str, int]) -> list[dict[str, Any]]:
        """The trials at one size, the fastest first. Raises LookupError for a size that was not searched."""
        found = [trial for trial in self.trials if trial["size"] == size]
        if not found:
            raise LookupError(f"no search at {size}; on a GPU: {COMMAND}")
        return sorted(found, key=lambda trial: trial["seconds"])


def searched(gpu: str = records.DEFAULT_GPU) -> Search:
    """Read the committed search. Raises LookupError where there is none, or when the kernel has changed since."""
    path = search_path(records.gpu_with("search/sgemm.json", gpu))
    if not path.exists():
        raise LookupError(f"no search of sgemm on {gpu}; on that GPU: {COMMAND}")
    data = records.load(path, SearchRecord)
    if data.source_sha256 != source_sha256():
        raise LookupError(f"stale search of sgemm on {gpu}: the kernel has changed; on that GPU: {COMMAND}")
    trials: tuple[dict[str, Any], ...] = tuple(dict(zip(data.columns, row, strict=True)) for row in data.trials)
    for trial in trials:
        trial["size"] = data.sizes[trial["size"]]
    return Search(data.device["name"], data.date, data.source_sha256, trials)


def search_path(gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """The file of the search; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "search" / "sgemm.json"


def _compile(tile: Tile) -> int:
    """Compile one tile into CuPy's cache; its registers, or -1 where the compiler refuses it."""
    import cupy

    kernel = f"sgemm_tuned<{tile}{WHOLE}"
    try:
        module = cupy.RawModule(code=expand_includes(ladder["tuned"].path), options=ladder["tuned"].options,
                                name_expressions=(kernel,))  # fmt: skip
        return int(module.get_function(kernel).num_regs)
    except cupy.cuda.compiler.CompileException:
        return -1


def compile_all() -> dict[Tile, int]:
    """Compile every candidate, in several processes; its registers a thread, or -1 for one that is refused."""
    start = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        registers = dict(zip(CANDIDATES, pool.map(_compile, CANDIDATES, chunksize=2), strict=True))
    print(f"{len(registers)} tiles compiled in {time.monotonic() - start:.0f} s", file=sys.stderr)
    return registers


def search(sizes: Sequence[Any] = SIZES) -> dict[str, Any]:
    """Try all candidates at all sizes; what goes into the file. Raises RuntimeError for a wrong product."""
    import cupy

    registers = compile_all()
    start = time.monotonic()
    cold = Cold()
    rows = []
    for index, size in enumerate(sizes):
        # NumPy multiplies: CuPy would load a cuBLAS that the book does not install.
        inputs = problem.make_inputs(size, np.random.default_rng(index))
        arrays = {name: cupy.asarray(inputs[name]) for name in ("A", "B")}
        expected = cupy.asarray(problem.reference(inputs, size)["C"])
        fitting = [
            tile for tile in CANDIDATES if registers[tile] > 0 and tile.variant(Product.of(size)).endswith(WHOLE)
        ]
        found = [_trial(size, tile, arrays, expected, cold) for tile in fitting]
        for seconds, error, tile in sorted(found, key=lambda trial: trial[0]):
            rows.append([index, str(tile), registers[tile], seconds, error])
        _say(size, sorted(found, key=lambda trial: trial[0]), time.monotonic() - start)
        del arrays, expected
        cupy.get_default_memory_pool().free_all_blocks()
    return {
        "ladder": "sgemm",
        "command": COMMAND,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": hardware.commit(),
        "device": hardware.device_block(),
        "how": f"L2 cold and clean, CUDA events around the launches of one product, median of {SAMPLES}",
        "source_sha256": source_sha256(),
        "sizes": [dict(size) for size in sizes],
        "columns": ["size", "tile", "registers", "seconds", "error"],
        "trials": rows,
    }


class Cold:
    """Overwrites the L2 cache, then reads through it, so that nothing is left to be written back."""

    def __init__(self) -> None:
        import cupy

        self.flush, self.clean = cupy.empty(FLUSH_BYTES, cupy.uint8), cupy.zeros(FLUSH_BYTES // FLOAT, cupy.float32)
        self.sink = cupy.empty((), cupy.float32)

    def __call__(self) -> None:
        self.flush.fill(1)
        self.clean.sum(out=self.sink)


def _trial(size: Any, tile: Tile, arrays: dict[str, Any], expected: Any, cold: Cold) -> tuple[float, float, Tile]:
    """The time of one product, in seconds, and its error."""
    import cupy

    c = cupy.full((size["m"], size["n"]), cupy.nan, cupy.float32)
    run = _bound(tiles("tuned", tile)(Product.of(size))[0], {**arrays, "C": c})
    run()
    error = float(abs(c - expected).max() / abs(expected).max())
    if not error <= problem.tolerance(size):
        raise RuntimeError(f"{tile} is wrong at {size}: error {error:.3g}")
    samples = []
    for _ in range(SAMPLES):
        cold()
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        run()
        end.record()
        end.synchronize()
        samples.append(cupy.cuda.get_elapsed_time(begin, end) * 1e-3)
    return float(f"{statistics.median(samples):.4g}"), float(f"{error:.2g}"), tile


def _bound(launch: Launch, arrays: dict[str, Any]) -> Callable[[], None]:
    """A function that makes this launch."""
    import cupy

    rung = ladder["tuned"]
    # As in _compile, so that the cache has it.
    module = cupy.RawModule(code=expand_includes(rung.path), options=rung.options, name_expressions=(launch.kernel,))
    function = module.get_function(launch.kernel)
    if launch.shared_mem > 48 << 10:
        function.max_dynamic_shared_size_bytes = launch.shared_mem
    args = tuple(arrays[a] if isinstance(a, str) else a for a in launch.args)
    return lambda: function(launch.grid, launch.block, args, shared_mem=launch.shared_mem)


def _say(size: Any, found: list[tuple[float, float, Tile]], elapsed: float) -> None:
    print(f"-- {dict(size)}: {len(found)} trials, {elapsed:.0f} s", file=sys.stderr)
    for seconds, _, tile in found[:8]:
        rate = problem.flops(size) / seconds / 1e12
        print(f"   {seconds * 1e6:9.1f} us {rate:6.2f} TFLOP/s  {tile}", file=sys.stderr)


def record_search(folder: Path | None = None) -> Path:
    """Search, and write what was tried below ``folder`` (``records/<gpu>`` by default)."""
    data = search()
    path = search_path(hardware.gpu_slug(data["device"]["name"]), folder)
    head = {key: value for key, value in data.items() if key != "trials"}
    lines = ",\n".join("  " + json.dumps(row) for row in data["trials"])
    text = json.dumps(head, indent=1)[:-2] + f',\n "trials": [\n{lines}\n ]\n}}\n'
    records.save(path, data, SearchRecord, text)
    return path
