"""Run a kernel of your own: CUDA source and NumPy arrays in; arrays, counters and errors out.

from climb.emulator import run
result = run("saxpy.cu", "saxpy", grid=4, block=256, args=[1024, 2.0, x, y])     # x, y: NumPy arrays
print(result)
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from climb.toolchain import Compiled, ToolchainError, compile_cuda, disassemble, resources
from climb.toolchain.host_code import has_host_code, options_like_nvcc, without_host_code, without_host_headers
from climb.toolchain.includes import read_source
from climb.toolchain.names import demangled

from . import ptx
from .checks.enabled import OF_A_RUN, current
from .comparison import Comparison, compare
from .counters.counters import Counters
from .counters.marks import Mark, marks
from .counters.trace import Trace
from .execution.kernel import MAX_STEPS
from .execution.module import Module, load
from .execution.schedules import Schedule, Schedules
from .memory.device_memory import HEAP_BYTES, STACK_BYTES, Allocation, DeviceMemory
from .runtime.textures import Texture
from .simt.code import Code
from .struct_argument import Struct
from .tensor_argument import Tensor


@dataclass(frozen=True)
class Result:
    """The result of a launch. `arrays`: the array arguments by position, after the launch; those that a struct points
    to by "position.member". `compiled`: PTX and machine code. `comparison`: with the outputs under other schedules, if
    `Schedules` were given. `str()` gives the report."""

    counters: Counters
    arrays: Mapping[int | str, np.ndarray]
    compiled: Compiled
    comparison: Comparison | None = None

    def __str__(self) -> str:
        return str(self.counters) if self.comparison is None else f"{self.counters}\n\n{self.comparison}"


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
    cooperative: bool = False,
    stack_bytes: int = STACK_BYTES,
    heap_bytes: int = HEAP_BYTES,
    schedule: Schedule | Schedules | None = None,
    cluster: Sequence[int] | int | None = None,
    arch: str = "sm_90",
    max_steps: int = MAX_STEPS,
    checks: Iterable[str] | None = None,
) -> Result:
    """Compile CUDA C++, run one kernel on the emulator, and return its counters and arrays.

    `source`: the path of a .cu, .cuh or .cpp file, or the text; host code, such as `main`, is left out. `kernel`: its
    name, or a C++ name expression such as ``"scale<float, 4>"``; optional if the source has only one kernel. `args`:
    NumPy arrays, which are copied in and written back in place; numbers, which are converted to the type of the
    parameter; NumPy scalars and bytes, which are passed as they are. `shared_mem`: bytes of dynamic shared memory.
    `symbols`: values for `__constant__` and `__device__` variables with C linkage. `cooperative`: run all blocks at the
    same time, as `grid.sync()` needs. `stack_bytes` of a thread and `heap_bytes` of the device are what
    cudaDeviceSetLimit sets. `schedule`: run under one `Schedule`; or, after a launch in the usual order, under several
    `Schedules`, and compare the outputs bit by bit: the array arguments and the `__device__` variables. `cluster`: the
    blocks of a cluster, if `__cluster_dims__` does not say so. `arch`: "sm_90a" for instructions that only Hopper has,
    such as setmaxnreg. A `Tensor` among the `args` passes the tensor map of an array, a `Texture` a texture object,
    and a `Struct` a struct by value. `max_steps`: the basic blocks that a batch of blocks may run before it counts as
    an endless loop; raise it for a kernel that is only long. That also raises, in proportion, the 8 seconds after which
    a kernel without an end in sight is given up. `checks`: the optional checks to make (`checks/enabled.py` lists
    them); None for those of `checking`, or, outside of it, all but "masks".

    Raises FileNotFoundError; CompileError with the compiler's messages; KernelNotFound; TypeError or ValueError, with
    the position, for an argument that does not fit its parameter; EmulatorError, with the source line, for a fault of
    the kernel or an instruction that is not supported.
    """
    text, filename, folders = _read(source)
    text, _ = (without_host_code if has_host_code(text) else without_host_headers)(text)
    compiled = compile_cuda(
        text, filename=filename, options=(*options_like_nvcc(text), *options), include_dirs=folders, arch=arch,
        name_expressions=(kernel,) if kernel is not None else (),
    )  # fmt: skip
    name = kernel if kernel is not None else only_kernel(compiled)
    return launch(
        compiled, name, grid, block, args, shared_mem=shared_mem, symbols=symbols, trace=trace, cooperative=cooperative,
        stack_bytes=stack_bytes, heap_bytes=heap_bytes, schedule=schedule, cluster=cluster,
        max_steps=max_steps, checks=current(OF_A_RUN) if checks is None else checks,
    )  # fmt: skip


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
    cooperative: bool = False,
    stack_bytes: int = STACK_BYTES,
    heap_bytes: int = HEAP_BYTES,
    schedule: Schedule | Schedules | None = None,
    cluster: Sequence[int] | int | None = None,
    max_steps: int = MAX_STEPS,
    checks: Iterable[str] | None = None,
) -> Result:
    """Like `run`, for source that is compiled already; `checks` of None are the current ones.

    Without `compare`, the counters have no marks: the machine code is not compared with the PTX. With a `module` that
    was loaded from `compiled` before, the PTX is not parsed again, and its variables keep their values.
    """
    module = module or load(compiled.ptx, compiled.sources)
    function = module.kernel(compiled.lowered(kernel))
    for name, value in (symbols or {}).items():
        _fill(module.symbol(name), np.asarray(value))
    memory = DeviceMemory()
    memory.stack_bytes, memory.heap_bytes = stack_bytes, heap_bytes
    parameters = function.parameters
    if len(args) != len(parameters):
        raise TypeError(f"{demangled(kernel)} takes {len(parameters)} arguments, {len(args)} given")
    tensors = {n: arg for n, arg in enumerate(args) if isinstance(arg, Tensor)}
    args = [_plain(arg) for arg in args]
    arrays: dict[int | str, np.ndarray] = {n: arg for n, arg in enumerate(args) if isinstance(arg, np.ndarray)}
    structs = {n: arg for n, arg in enumerate(args) if isinstance(arg, Struct)}
    for n, one in structs.items():
        arrays.update(one.arrays(str(n)))
    held = _upload_all(memory, arrays)
    addresses = {n: one.address for n, one in held.items() if isinstance(n, str)}
    maps = {n: tensor.encode(held[n].address) for n, tensor in tensors.items()}
    maps |= {n: one.pack(str(n), addresses) for n, one in structs.items()}
    packed = [
        _pack(maps.get(n, arg), parameter, n, {} if n in maps else held)
        for n, (arg, parameter) in enumerate(zip(args, parameters, strict=True))
    ]
    registers = _registers(compiled, kernel) if cooperative else 0
    comparison = None

    def once(one: Schedule | None, traced: Trace | None) -> Counters:
        return function.launch(
            grid, block, packed, memory=memory, shared_bytes=shared_mem, trace=traced, cooperative=cooperative,
            registers=registers, schedule=one, cluster=cluster, max_steps=max_steps, checks=checks,
        )  # fmt: skip

    try:
        if isinstance(schedule, Schedules):
            counters, comparison = _compared(once, schedule, trace, module, held, arrays)
        else:
            counters = once(schedule, trace)
    finally:
        unwritable = [position for position, allocation in held.items() if not _download(allocation, arrays[position])]
    if unwritable:
        raise ValueError(f"the kernel has written to argument {unwritable[0]}, which is a read-only array")
    if compare:
        counters = replace(counters, compared=functools.partial(_marks, function.code, function.name, compiled))
    return Result(replace(counters, kernel=kernel), arrays, compiled, comparison)


def _compared(
    once: Callable[[Schedule | None, Trace | None], Counters],
    schedules: Schedules,
    trace: Trace | None,
    module: Module,
    held: Mapping[int | str, Allocation],
    arrays: Mapping[int | str, np.ndarray],
) -> tuple[Counters, Comparison]:
    """Launch in the usual order, whose outputs stay in memory, and under each schedule from the same contents."""
    places = {f"argument {n}": (one, arrays[n].dtype, arrays[n].shape) for n, one in held.items()}
    places |= {name: (one, np.dtype(np.uint8), (one.nbytes,)) for name, one in module.symbols.items()}
    before = {name: one.data.copy() for name, (one, _, _) in places.items()}

    def contents() -> dict[str, np.ndarray]:
        return {name: one.data.copy().view(dtype).reshape(shape) for name, (one, dtype, shape) in places.items()}

    def again(schedule: Schedule) -> dict[str, np.ndarray]:
        for name, (one, _, _) in places.items():
            one.data[:] = before[name]
        once(schedule, None)
        return contents()

    counters = once(None, trace)
    usual = contents()
    try:
        return counters, compare(usual, again, schedules)
    finally:
        for name, (one, _, _) in places.items():
            one.data[:] = usual[name].reshape(-1).view(np.uint8)


def _marks(code: Code, kernel: str, compiled: Compiled) -> tuple[Mark, ...]:
    """Return the marks of a kernel; empty if the disassembler is missing."""
    try:
        return marks(code, disassemble(compiled, kernel))
    except ToolchainError:
        return ()


def _registers(compiled: Compiled, kernel: str) -> int:
    """Return the registers per thread; 0 if the tools that read the cubin are missing."""
    try:
        return resources(compiled, kernel).registers
    except ToolchainError:
        return 0


def _read(source: str | Path) -> tuple[str, str, tuple[str, ...]]:
    """Return the text, the file name, and the include directories. Raises FileNotFoundError."""
    if isinstance(source, Path) or (source.endswith((".cu", ".cuh", ".cpp")) and "\n" not in source):
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(f"no file {source}")
        return read_source(path), path.name, (str(path.resolve().parent),)
    return source, "kernel.cu", ()


def only_kernel(compiled: Compiled) -> str:
    """Return the lowered name of the only kernel. Raises ValueError, which lists the kernels if there are several."""
    if len(compiled.kernels) == 1:
        return compiled.kernels[0]
    if not compiled.kernels:
        raise ValueError(f"{compiled.filename} has no kernel; name the template instance, as in kernel='scale<float>'")
    names = ", ".join(demangled(kernel) for kernel in compiled.kernels)
    raise ValueError(f"{compiled.filename} has several kernels; name one of them: {names}")


def _plain(arg: object) -> object:
    """Return an argument as an array, a number, bytes, or a struct."""
    if isinstance(arg, Tensor):
        return arg.array
    return np.uint64(arg.handle) if isinstance(arg, Texture) else arg


def _upload_all(memory: DeviceMemory, arrays: Mapping[int | str, np.ndarray]) -> dict[int | str, Allocation]:
    """Make an allocation for each array. An array that is passed twice gets only one."""
    out: dict[int | str, Allocation] = {}
    for position, array in arrays.items():
        for other in out:
            if not np.shares_memory(array, arrays[other]):
                continue
            if _extent(array) != _extent(arrays[other]):
                raise ValueError(f"arguments {other} and {position} overlap in memory; copy one of them")
            out[position] = out[other]
            break
        else:
            out[position] = _upload(memory, array, position)
    return out


def _extent(array: np.ndarray) -> tuple[object, ...]:
    """Return the place of an array in memory: two arrays with the same extent are one array, perhaps with different
    dtypes."""
    packed = (array.nbytes,) if array.flags.c_contiguous else (array.shape, array.strides)
    return (array.__array_interface__["data"][0], *packed)


def _upload(memory: DeviceMemory, array: np.ndarray, position: int | str) -> Allocation:
    if array.dtype.hasobject:
        raise TypeError(f"argument {position} is an array of Python objects; expected numbers")
    if not array.dtype.isnative:
        raise TypeError(f"argument {position} is of type {array.dtype}, whose byte order is not native")
    out = memory.allocate(array.nbytes, f"argument {position}")
    out.data[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return out


def _download(allocation: Allocation, array: np.ndarray) -> bool:
    """Write the result back. Returns False if the kernel has changed a read-only array, which keeps its values."""
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
    """Return the bytes of an argument. Raises TypeError or ValueError, with its position."""
    nbytes = parameter.nbytes or ptx.TYPE_BYTES[parameter.type]
    where = f"argument {position}"
    if position in held:
        if nbytes != 8:
            raise TypeError(f"{where} is an array, but the parameter has {nbytes} bytes and is not a pointer")
        return struct.pack("<Q", held[position].address)
    if isinstance(arg, np.generic | bytes):
        data = arg if isinstance(arg, bytes) else arg.tobytes()
        if len(data) != nbytes:
            raise TypeError(f"{where} has {len(data)} bytes, but the parameter has {nbytes}")
        return data
    if not isinstance(arg, int | float):
        raise TypeError(f"{where} is of type {type(arg).__name__}; expected a NumPy array, a number, or bytes")
    if parameter.type == "b8" or nbytes not in (1, 2, 4, 8):  # a half is a struct, too
        half = f", such as a half: pass np.float16({arg}), a Struct" if nbytes == 2 else ": pass a Struct"
        what = " or bytes; on a command line, NAME:@FILE.json describes a struct"
        raise TypeError(f"{where} is a number, but the parameter is a struct or array of {nbytes} bytes{half}{what}")
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
