"""Counters and traces of what the hardware would have to do for a kernel, always from the emulator.

They work the same on a machine with a GPU, where ``cp`` is CuPy, because they use NumPy and emulated memory alone.
"""

from __future__ import annotations

import functools
import operator
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from climb import emulator
from climb.bench import arguments
from climb.bench.binding import emulated, tensor
from climb.bench.ladder import BoundRung
from climb.bench.problem import ByValue, Launch, Size, Tensor, Textured
from climb.emulator.checks.enabled import current
from climb.emulator.memory.tensor_map import encode
from climb.toolchain import Compiled, compile_cuda


def counters(
    bound: BoundRung, size: Size, seed: int = 0, inputs: Mapping[str, np.ndarray] | None = None
) -> emulator.Counters:
    """Run a rung on the emulator and return the sum of its launches' counters.

    ``inputs`` replaces the problem's random inputs. Raises ArgumentError when the rung does not take the size, and the
    emulator's errors.
    """
    if inputs is not None:
        return functools.reduce(operator.add, _run(bound, size, seed, inputs, None))
    compiled = bound.compiled(size, whole=False)
    launched = repr([bound.launches(size), bound.rung.workspace(size), size])
    key = (compiled, bound.ladder.problem, launched, seed, current())
    found = next((counted for known, counted in _counted if known == key), None)
    if found is None:
        found = functools.reduce(operator.add, _run(bound, size, seed, None, None, compiled))
        _counted.append((key, found))
    return found


#: The last results of `counters`, since a chapter requests the same counts in several cells. A problem has no hash, so
#: keys are compared.
_counted: deque[tuple[tuple[Any, ...], emulator.Counters]] = deque(maxlen=64)


def launch_counters(
    bound: BoundRung, size: Size, seed: int = 0, compiled: Compiled | None = None
) -> tuple[emulator.Counters, ...]:
    """Like ``counters``, but one result per launch. ``compiled`` is the code to run, by default the rung compiled
    now."""
    return tuple(_run(bound, size, seed, None, None, compiled))


def trace(
    bound: BoundRung,
    size: Size,
    block: tuple[int, int, int] = (0, 0, 0),
    warp: int = 0,
    seed: int = 0,
    launch: int = 0,
) -> emulator.Trace:
    """Trace every memory access of one warp of one block of a rung's ``launch``, in order."""
    record = emulator.Trace(block=block, warp=warp)
    _run(bound, size, seed, None, (launch, record))
    return record


def block_events(
    bound: BoundRung,
    size: Size,
    block: tuple[int, int, int] | None = (0, 0, 0),
    seed: int = 0,
    launch: int = 0,
    kinds: Iterable[str] | None = None,
) -> tuple[emulator.Event, ...]:
    """Return the events of one block of a rung's ``launch``, in order: accesses, shuffles, barriers, asynchronous
    copies.

    ``block=None`` takes all blocks; ``kinds`` names the events to keep, None for all, see ``emulator.Event``. Raises
    ValueError if the rung does not have the launch, or the launch does not have the block.
    """
    launches = bound.launches(size)
    if not 0 <= launch < len(launches):
        raise ValueError(f"{bound.rung.name} has {len(launches)} launches at this size, none is number {launch}")
    grid = _dim3(launches[launch].grid)
    if block is not None and not all(0 <= at < extent for at, extent in zip(block, grid, strict=True)):
        raise ValueError(f"block {block} is not in the grid {grid} of {launches[launch].kernel}")
    record = emulator.BlockTrace(block, None if kinds is None else frozenset(kinds))
    _run(bound, size, seed, None, (launch, record))
    return tuple(record.events)


def count_kernel(
    source: str,
    kernel: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[np.ndarray | np.generic],
    shared_mem: int = 0,
    options: Sequence[str] = (),
    checks: Iterable[str] | None = None,
) -> emulator.Counters:
    """Compile CUDA C++ and launch one of its kernels on the emulator, on NumPy arrays and scalars.

    ``kernel`` is a name or a C++ name expression. Arrays are copied in, and the kernel's results are copied back into
    them. ``checks`` names the optional checks: ``"shared"``, ``"uninitialised"`` and ``"global"``; None turns on the
    first two, ``()`` turns on none. Raises TypeError for an argument that is neither an array nor a scalar,
    CompileError, and the emulator's errors.
    """
    compiled = compile_cuda(source, filename="kernel.cu", options=tuple(options), name_expressions=(kernel,))
    memory = emulator.DeviceMemory()
    packed, copies = [], []
    for position, arg in enumerate(args):
        if isinstance(arg, np.ndarray):
            held = _upload(memory, arg, f"argument {position}")
            copies.append((arg, held))
            packed.append(_pointer(held))
        elif isinstance(arg, np.generic):
            packed.append(arg.tobytes())
        else:
            raise TypeError(
                f"argument {position} is a {type(arg).__name__}; expected a NumPy array, "
                "or a NumPy scalar such as np.int32(5), whose type says how it is passed"
            )
    function = module_of(compiled).kernel(compiled.lowered(kernel))
    counted = function.launch(_dim3(grid), _dim3(block), packed, memory=memory, shared_bytes=shared_mem, checks=checks)
    for array, held in copies:
        if array.flags.writeable:
            array[...] = held.data[: array.nbytes].view(array.dtype).reshape(array.shape)
    return counted


def _run(
    bound: BoundRung,
    size: Size,
    seed: int,
    inputs: Mapping[str, np.ndarray] | None,
    traced: tuple[int, emulator.Trace | emulator.BlockTrace] | None,
    compiled: Compiled | None = None,
) -> list[emulator.Counters]:
    """Launch the rung's kernels in order on new emulated memory, with outputs and workspace uninitialised.

    ``traced`` is the number of a launch and its recorder.
    """
    problem, rung = bound.ladder.problem, bound.rung
    arguments.check_supported(problem, rung, size)
    host = dict(inputs) if inputs is not None else bound.ladder.inputs(size, seed)
    memory = emulator.DeviceMemory()
    held = {a.name: _upload(memory, host[a.name], a.name) for a in problem.inputs}
    for argument in problem.outputs:
        held[argument.name] = _allocate(memory, argument.extents(size), argument.dtype, argument.name)
    for name, (shape, dtype) in rung.workspace(size).items():
        held[name] = _allocate(memory, shape, dtype, name)
    compiled = compiled or bound.compiled(size, whole=False)
    module = module_of(compiled)
    done: list[emulator.Counters] = []
    for position, launch in enumerate(bound.launches(size)):
        record = traced[1] if traced is not None and traced[0] == position else None
        args, _alive = pack(launch, held, host)
        function = module.kernel(compiled.lowered(launch.kernel))
        counted = function.launch(
            _dim3(launch.grid),
            _dim3(launch.block),
            args,
            memory=memory,
            shared_bytes=launch.shared_mem,
            trace=record,
        )
        done.append(counted)
    return done


def pack(
    launch: Launch, held: Mapping[str, emulator.Allocation], host: Mapping[str, np.ndarray]
) -> tuple[list[bytes], list[Any]]:
    """Return the bytes of a launch's arguments, and the objects that must live as long as the launch."""
    packed, alive = [], []
    for arg in launch.args:
        if isinstance(arg, ByValue | Textured):
            data, made = emulated(arg, host)
            packed.append(data)
            alive.append(made)
        elif isinstance(arg, Tensor):
            packed.append(encode(tensor(arg, int(held[arg.array].address))))
        else:
            packed.append(_pointer(held[arg]) if isinstance(arg, str) else arg.tobytes())
    return packed, alive


@functools.lru_cache(maxsize=64)
def _load(ptx: str, sources: tuple[tuple[str, str], ...]) -> emulator.Module:
    return emulator.load(ptx, sources=dict(sources))


def module_of(compiled: Compiled) -> emulator.Module:
    """Return the loaded PTX, cached for the next call."""
    return _load(compiled.ptx, tuple(compiled.sources.items()))


def _upload(memory: emulator.DeviceMemory, array: np.ndarray, name: str) -> emulator.Allocation:
    contiguous = np.ascontiguousarray(array)
    held = memory.allocate(contiguous.nbytes, name=name)
    held.data[: contiguous.nbytes] = contiguous.reshape(-1).view(np.uint8)
    return held


def _allocate(memory: emulator.DeviceMemory, shape: Sequence[int], dtype: str, name: str) -> emulator.Allocation:
    nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    return memory.allocate(nbytes, name=name, initialised=False)


def _pointer(held: emulator.Allocation) -> bytes:
    return int(held.address).to_bytes(8, "little")


def _dim3(dims: Sequence[int]) -> tuple[int, int, int]:
    """One to three extents, padded to three with 1."""
    x, y, z = (*(int(d) for d in dims), 1, 1)[:3]
    return x, y, z
