"""A kernel of your own: source in, arrays in and out, counters and errors as text.

from climb.emulator import run
result = run("saxpy.cu", "saxpy", grid=4, block=256, args=[1024, 2.0, x, y])     # x, y: NumPy arrays
print(result)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from climb.toolchain import Compiled, ToolchainError, compile_cuda, disassemble

from . import ptx
from .counters.counters import Counters
from .counters.marks import marks
from .counters.trace import Trace
from .execution.kernel import Kernel
from .execution.module import Module, load
from .memory.device_memory import Allocation, DeviceMemory


@dataclass(frozen=True)
class Result:
    """What a launch did. `arrays`: the array arguments by position, as the kernel left them; `compiled` has the PTX and
    the machine code. `str()` is the report."""

    counters: Counters
    arrays: Mapping[int, np.ndarray]
    compiled: Compiled

    def __str__(self) -> str:
        return str(self.counters)


def run(
    source: str | Path,
    kernel: str | None = None,
    *,
    grid: Sequence[int] | int,
    block: Sequence[int] | int,
    args: Sequence[object] = (),
    shared_mem: int = 0,
    options: Sequence[str] = (),
    symbols: Mapping[str, np.ndarray] | None = None,
    trace: Trace | None = None,
) -> Result:
    """Compile CUDA C++, run one kernel on the emulator, and say what it did.

    `source`: a file's path (ending in .cu, .cuh or .cpp), or the text. `kernel`: its name, or a C++ name expression
    such as ``"scale<float, 4>"``; may be left out where there is one only. `args`: NumPy arrays, which are copied in
    and written back in place; numbers, which become what the parameter is declared as; NumPy scalars and bytes, as they
    are. `symbols`: values for `__constant__` and `__device__` variables of C linkage.

    Raises FileNotFoundError, CompileError with the compiler's messages, KernelNotFound; TypeError or ValueError for an
    argument that does not fit its parameter, with its position; EmulatorError for what the kernel does wrong, or for
    an instruction that is not supported, with its source line.
    """
    text, filename, folders = _read(source)
    names = (kernel,) if kernel is not None else ()
    compiled = compile_cuda(text, filename=filename, options=options, name_expressions=names, include_dirs=folders)
    name = kernel if kernel is not None else _only_kernel(compiled)
    return launch(compiled, name, grid, block, args, shared_mem=shared_mem, symbols=symbols, trace=trace)


def launch(
    compiled: Compiled,
    kernel: str,
    grid: Sequence[int] | int,
    block: Sequence[int] | int,
    args: Sequence[object] = (),
    *,
    shared_mem: int = 0,
    symbols: Mapping[str, np.ndarray] | None = None,
    trace: Trace | None = None,
    compare: bool = True,
    module: Module | None = None,
) -> Result:
    """As `run`, for what is compiled already. Without `compare` the machine code is not looked at, and with a `module`
    that was loaded of it before the PTX is not read again, which saves time; its variables hold what they held.
    """
    module = module or load(compiled.ptx, compiled.sources)
    function = module.kernel(compiled.lowered(kernel))
    for name, value in (symbols or {}).items():
        _fill(module.symbol(name), np.asarray(value))
    memory = DeviceMemory()
    parameters = function.parameters
    if len(args) != len(parameters):
        raise TypeError(f"{kernel} takes {len(parameters)} arguments, {len(args)} given")
    held = _upload_all(memory, {n: arg for n, arg in enumerate(args) if isinstance(arg, np.ndarray)})
    packed = [_pack(arg, parameter, n, held) for n, (arg, parameter) in enumerate(zip(args, parameters, strict=True))]
    try:
        counters = function.launch(grid, block, packed, memory=memory, shared_bytes=shared_mem, trace=trace)
    finally:
        unwritable = [position for position, allocation in held.items() if not _download(allocation, args[position])]
    if unwritable:
        raise ValueError(f"the kernel has written to argument {unwritable[0]}, which is a read-only array")
    if compare:
        counters = with_marks(counters, function, compiled)
    return Result(replace(counters, kernel=kernel), {n: args[n] for n in held}, compiled)


def with_marks(counters: Counters, kernel: Kernel, compiled: Compiled) -> Counters:
    """The counters with the marks of their kernel; without marks if the disassembler is missing."""
    try:
        sass = disassemble(compiled, kernel.name)
    except ToolchainError:
        return counters
    return replace(counters, marks=marks(kernel.code, sass))


def _read(source: str | Path) -> tuple[str, str, tuple[str, ...]]:
    """(text, file name, include directories). Raises FileNotFoundError for a path where nothing is."""
    if isinstance(source, Path) or (source.endswith((".cu", ".cuh", ".cpp")) and "\n" not in source):
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(f"no file {source}")
        return path.read_text(encoding="utf-8"), path.name, (str(path.resolve().parent),)
    return source, "kernel.cu", ()


def _only_kernel(compiled: Compiled) -> str:
    if len(compiled.kernels) == 1:
        return compiled.kernels[0]
    if not compiled.kernels:
        raise ValueError(f"{compiled.filename} has no kernel; a template has to be named, as in kernel='scale<float>'")
    raise ValueError(f"{compiled.filename} has several kernels, name one of them: {', '.join(compiled.kernels)}")


def _upload_all(memory: DeviceMemory, arrays: Mapping[int, np.ndarray]) -> dict[int, Allocation]:
    """An allocation for each array; one that is given twice has one, as one pointer would be given twice."""
    out: dict[int, Allocation] = {}
    for position, array in arrays.items():
        for other in out:
            if not np.shares_memory(array, arrays[other]):
                continue
            if _extent(array) != _extent(arrays[other]):
                raise ValueError(f"arguments {other} and {position} share a part of their memory; copy one of them")
            out[position] = out[other]
            break
        else:
            out[position] = _upload(memory, array, position)
    return out


def _extent(array: np.ndarray) -> tuple[object, ...]:
    """Where an array lies: arrays of the same extent are one array, perhaps of another type."""
    packed = (array.nbytes,) if array.flags.c_contiguous else (array.shape, array.strides)
    return (array.__array_interface__["data"][0], *packed)


def _upload(memory: DeviceMemory, array: np.ndarray, position: int) -> Allocation:
    if array.dtype.hasobject:
        raise TypeError(f"argument {position} is an array of Python objects; expected numbers")
    if not array.dtype.isnative:
        raise TypeError(f"argument {position} is of type {array.dtype}, whose bytes are in the other order")
    out = memory.allocate(array.nbytes, f"argument {position}")
    out.data[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return out


def _download(allocation: Allocation, array: np.ndarray) -> bool:
    """Write back what the kernel left. Whether that is there now: a read-only array stays as it is."""
    left = allocation.data.view(array.dtype).reshape(array.shape)
    if array.flags.writeable:
        array[...] = left
        return True
    return np.ascontiguousarray(array).tobytes() == left.tobytes()


def _fill(symbol: Allocation, value: np.ndarray) -> None:
    if value.nbytes > symbol.nbytes:
        raise ValueError(f"{symbol.name} has {symbol.nbytes} bytes, {value.nbytes} given")
    symbol.data[: value.nbytes] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)


def _pack(arg: object, parameter: ptx.Variable, position: int, held: Mapping[int, Allocation]) -> bytes:
    """The bytes of an argument. Raises TypeError or ValueError, which name its position."""
    nbytes = parameter.nbytes or ptx.TYPE_BYTES[parameter.type]
    where = f"argument {position}"
    if position in held:
        if nbytes != 8:
            raise TypeError(f"{where} is an array, but the parameter has {nbytes} bytes and is no pointer")
        return struct.pack("<Q", held[position].address)
    if isinstance(arg, np.generic | bytes):
        data = arg if isinstance(arg, bytes) else arg.tobytes()
        if len(data) != nbytes:
            raise TypeError(f"{where} has {len(data)} bytes, but the parameter has {nbytes}")
        return data
    if not isinstance(arg, int | float) or nbytes not in (1, 2, 4, 8):
        raise TypeError(f"{where} is a {type(arg).__name__}; expected a NumPy array, a number, or bytes")
    if parameter.type.startswith("f"):
        try:
            return struct.pack({4: "<f", 8: "<d"}[nbytes], arg)
        except OverflowError:
            raise ValueError(f"{where} is {arg}, which does not fit in a float of {nbytes} bytes") from None
    if isinstance(arg, float) and not (math.isfinite(arg) and arg == int(arg)):
        raise TypeError(f"{where} is {arg}, but the parameter is a whole number of {nbytes} bytes")
    number = int(arg)
    if not -(2 ** (8 * nbytes - 1)) <= number < 2 ** (8 * nbytes):
        raise ValueError(f"{where} is {number}, which does not fit in {nbytes} bytes")
    return (number % 2 ** (8 * nbytes)).to_bytes(nbytes, "little")
