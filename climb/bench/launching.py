"""Start the launches of a rung: through CuPy or its stand-in, through the driver where CuPy lacks an attribute, and
several at once as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import groupby
from typing import Any

import numpy as np

from climb.bench.cuda import backend, cp
from climb.bench.problem import Launch
from climb.emulator import dependent_launches


def starter(function: Any, launch: Launch, args: tuple[Any, ...]) -> Callable[[], None]:
    """Return a function that starts the launch once, on the current stream.

    ``function`` is the kernel (``cp.RawKernel``), ``args`` are the values for ``launch.args``. On the emulator, a
    launch with ``pdl`` starts when the launch before it has ended, and raises EarlyAccess if it depends on that.
    """
    if launch.pdl and backend == "cupy":
        return _started_early(function, launch, args)

    def start() -> None:
        with dependent_launches() if launch.pdl else nullcontext():
            function(launch.grid, launch.block, args, shared_mem=launch.shared_mem)

    return start


def in_order(launches: Sequence[Launch], starts: Sequence[Callable[[], None]]) -> list[Callable[[], None]]:
    """Return functions that start all launches, in order. On a GPU, adjacent launches marked ``graph`` become one CUDA
    graph."""
    found: list[Callable[[], None]] = []
    pairs = zip(launches, starts, strict=True)
    for in_graph, group in groupby(pairs, key=lambda pair: pair[0].graph and backend == "cupy"):
        own = [start for _, start in group]
        found += [_captured(own)] if in_graph else own
    return found


def _captured(starts: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """Return a function that launches a graph of these launches, on the current stream."""
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        for start in starts:
            start()
        graph = stream.end_capture()

    def launch() -> None:
        graph.launch(cp.cuda.get_current_stream())

    launch.starts = starts  # type: ignore[attr-defined]  # they own the values that the graph's nodes read
    return launch


def _started_early(function: Any, launch: Launch, args: Sequence[Any]) -> Callable[[], None]:
    """Like ``starter``, with programmatic stream serialization, an attribute that CuPy's launches do not take."""
    from cuda.bindings import driver

    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = (*launch.grid, 1, 1)[:3]
    config.blockDimX, config.blockDimY, config.blockDimZ = (*launch.block, 1, 1)[:3]
    config.sharedMemBytes = launch.shared_mem
    config.attrs, config.numAttrs = [attribute], 1
    values = [_bytes(arg) for arg in args]
    addresses = np.array([value.ctypes.data for value in values], dtype=np.uint64)
    kernel = driver.CUfunction(function.kernel.ptr)

    def start() -> None:
        config.hStream = driver.CUstream(cp.cuda.get_current_stream().ptr)
        (status,) = driver.cuLaunchKernelEx(config, kernel, addresses.ctypes.data, 0)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"cuLaunchKernelEx gives {status.name} for {launch}")

    # The launch reads the values, and the kernel the arrays: they live as long as the function. A rung's scratch array
    # that only such launches use would otherwise be given to the next array that is made.
    start.owned = values, args  # type: ignore[attr-defined]
    return start


def _bytes(arg: Any) -> np.ndarray:
    """Return the bytes that the driver copies for an argument: a device array's address, or the value itself."""
    if isinstance(arg, cp.ndarray):
        return np.array([arg.data.ptr], dtype=np.uint64)
    if isinstance(arg, np.ndarray | np.generic):
        return np.atleast_1d(arg).view(np.uint8).copy()
    raise TypeError(f"a launch with pdl takes arrays and numbers, not a {type(arg).__name__}")
