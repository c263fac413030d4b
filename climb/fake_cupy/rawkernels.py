"""``cp.RawModule`` and ``cp.RawKernel``: the same CUDA C++, compiled by the same NVRTC, run on the emulator."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from climb import emulator
from climb.fake_cupy import limits
from climb.fake_cupy.arrays import ndarray
from climb.fake_cupy.cuda import COMPUTE_CAPABILITY
from climb.fake_cupy.memory import Memory, MemoryPointer, device_memory
from climb.fake_cupy.parameters import Parameter, pack, read_parameters
from climb.toolchain import Compiled, CompileError, KernelNotFound, compile_cuda, resources

#: What messages call a source that was given as a string.
FILENAME = "kernel.cu"


class RawModule:
    """CUDA C++ source with its kernels; compiled when the first of them is asked for."""

    def __init__(
        self,
        code: str | None = None,
        *,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Iterable[str] | None = None,
        jitify: bool | None = None,
    ) -> None:
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if path is not None:
            raise NotImplementedError("the emulator's stand-in for CuPy loads no cubin or PTX from a path; give code=")
        _refuse(options, backend, translate_cucomplex, enable_cooperative_groups, jitify)
        if not isinstance(code, str):
            raise TypeError(f"code is a str, not {type(code).__name__}")
        if isinstance(name_expressions, str):
            raise TypeError(f"name_expressions is a sequence of str, not one: ({name_expressions!r},)")
        self.code = code
        self.options = options
        self.backend = backend
        self.name_expressions = tuple(name_expressions) if name_expressions is not None else None

    def compile(self, log_stream: Any = None) -> None:
        """Compile now; the compiler's log goes to `log_stream`. Raises CompileError."""
        log = self._compiled.log
        if log_stream is not None:
            log_stream.write(log)

    def get_function(self, name: str) -> RawKernel:
        """The kernel of that name, which is `extern "C"` or one of the name expressions.

        Raises CompileError, and KernelNotFound naming the kernels that there are.
        """
        __tracebackhide__ = True
        try:
            self._compiled.lowered(name)
        except (CompileError, KernelNotFound) as error:
            raise error.with_traceback(None) from None
        return RawKernel(self.code, name, self.options, self.backend, _name_expressions=self.name_expressions)

    def get_global(self, name: str) -> MemoryPointer:
        """A pointer to a ``__device__`` or ``__constant__`` variable: ``cp.ndarray(shape, dtype, pointer)`` is it."""
        compiled = self._compiled
        try:
            allocation = _load(compiled).symbol(name)
        except KeyError as error:
            raise LookupError(error.args[0]) from None
        return MemoryPointer(Memory(allocation, owned=False), 0)

    @functools.cached_property
    def _compiled(self) -> Compiled:
        return _compile(self.code, self.options, self.name_expressions)


class RawKernel:
    """One kernel: ``kernel(grid, block, args, shared_mem=0)`` launches it."""

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        *,
        enable_cooperative_groups: bool = False,
        jitify: bool | None = None,
        _name_expressions: tuple[str, ...] | None = None,
    ) -> None:
        _refuse(options, backend, translate_cucomplex, enable_cooperative_groups, jitify)
        self.code = code
        self.name = self.__name__ = name
        self.options = options
        self.backend = backend
        self.name_expressions = _name_expressions
        self._opted_in: int | None = None

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
        stream: Any = None,
    ) -> None:
        """Launch, and return when it is done.

        Raises CUDADriverError for a launch that the driver refuses, TypeError for arguments, EmulatorError for what
        goes wrong in the kernel.
        """
        __tracebackhide__ = True  # IPython and pytest then show the reader's own line last
        try:
            self._launch(grid, block, args, shared_mem)
        except (emulator.EmulatorError, CompileError, KernelNotFound, TypeError, limits.CUDADriverError) as error:
            # The frames below are ours; the reader's mistake is in the kernel or in the call above this one.
            raise error.with_traceback(None) from None

    def compile(self, log_stream: Any = None) -> None:
        """Compile now; the compiler's log goes to `log_stream`. Raises CompileError."""
        log = self._compiled.log
        if log_stream is not None:
            log_stream.write(log)

    # Attributes, as the driver has them for a kernel compiled for this device

    @property
    def num_regs(self) -> int:
        """Registers per thread."""
        return self._resources.registers

    @property
    def shared_size_bytes(self) -> int:
        """Shared memory that the kernel declares, in bytes per block."""
        return self._resources.shared_bytes

    @property
    def local_size_bytes(self) -> int:
        """Local memory in bytes per thread: arrays that are not in registers, and spills."""
        return self._resources.local_bytes

    @property
    def max_threads_per_block(self) -> int:
        """The largest block that the kernel can be launched with: by its launch bound, or by its registers."""
        if bound := _thread_bound(self._compiled.ptx, self._lowered):
            return bound
        threads = limits.MAX_THREADS
        while threads > limits.WARP:
            try:
                limits.check_registers(self.num_regs, (threads, 1, 1))
                break
            except limits.CUDADriverError:
                threads -= limits.WARP
        return threads

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """The most dynamic shared memory that a launch may ask for; can be set, up to what the hardware has."""
        if self._opted_in is not None:
            return self._opted_in
        return limits.SHARED_BYTES - _static_shared(self._compiled, self._lowered)

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, nbytes: int) -> None:
        limits.check_opt_in(int(nbytes), _static_shared(self._compiled, self._lowered))
        self._opted_in = int(nbytes)

    @property
    def attributes(self) -> dict[str, int]:
        names = ("max_threads_per_block", "shared_size_bytes", "local_size_bytes", "num_regs")
        return {name: getattr(self, name) for name in (*names, "max_dynamic_shared_size_bytes")}

    # Inside

    @functools.cached_property
    def _compiled(self) -> Compiled:
        return _compile(self.code, self.options, self.name_expressions)

    @property
    def _lowered(self) -> str:
        return self._compiled.lowered(self.name)

    @property
    def _resources(self) -> Any:
        return resources(self._compiled, self.name)

    def _launch(self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int) -> None:
        compiled, lowered = self._compiled, self._lowered
        blocks, threads = limits.dim3(grid, "grid"), limits.dim3(block, "block")
        limits.check_extents(blocks, threads, _thread_bound(compiled.ptx, lowered))
        limits.check_shared(int(shared_mem), _static_shared(compiled, lowered), self.max_dynamic_shared_size_bytes)
        # No kernel has more than 255 registers, so blocks of up to 256 threads always fit, and ptxas is not needed.
        if threads[0] * threads[1] * threads[2] > 256:
            limits.check_registers(self._resources.registers, threads)
        parameters = _parameters(compiled, lowered, self.name)
        packed = pack(parameters, args)
        _name_allocations(parameters, args)
        kernel = _load(compiled).kernel(lowered)
        kernel.launch(blocks, threads, packed, memory=device_memory, shared_bytes=int(shared_mem))


def _refuse(options: Any, backend: str, translate_cucomplex: bool, cooperative: bool, jitify: bool | None) -> None:
    """Raise for what CuPy refuses, and for what needs a GPU."""
    if not isinstance(options, tuple):
        raise TypeError(f'options is a tuple of str, not {type(options).__name__}: ("-DTILE=32",)')
    if backend != "nvrtc" or translate_cucomplex or cooperative or jitify:
        raise NotImplementedError(
            "the emulator's stand-in for CuPy compiles with NVRTC alone: nvcc, translate_cucomplex, cooperative groups "
            "and jitify need a GPU"
        )


def _compile(code: str, options: tuple[str, ...], expressions: tuple[str, ...] | None) -> Compiled:
    return compile_cuda(
        code,
        filename=FILENAME,
        options=options,
        name_expressions=expressions or (),
        arch=f"sm_{COMPUTE_CAPABILITY}",
    )


@functools.lru_cache(maxsize=256)
def _load(compiled: Compiled) -> emulator.Module:
    """The module on the emulated device. As in CuPy, the same source is loaded once, and its variables are shared."""
    return emulator.load(compiled.ptx, sources=compiled.sources)


@functools.lru_cache(maxsize=1024)
def _parameters(compiled: Compiled, lowered: str, expression: str) -> tuple[Parameter, ...]:
    everything = "\n".join(compiled.sources.values())
    return read_parameters(compiled.ptx, lowered, everything, expression)


@functools.lru_cache(maxsize=1024)
def _static_shared(compiled: Compiled, lowered: str) -> int:
    """Bytes of shared memory that a kernel declares, by its PTX. Raises CompileError if they are too many."""
    body, total = _entry(compiled.ptx, lowered), 0
    for variable in _SHARED.finditer(compiled.ptx):
        if re.search(rf"\b{re.escape(variable['name'])}\b", body):
            align = int(variable["align"] or 1)
            size = int(_WIDTH.search(variable["kind"])[1]) // 8 * int(variable["count"] or 1)  # type: ignore[index]
            total = -(-total // align) * align + size
    if total > limits.SHARED_BYTES:
        compiled.cubin  # noqa: B018 (ptxas says which kernel, and how much is too much)
    return total


_SHARED = re.compile(
    r"^\s*(?:\.visible\s+|\.weak\s+)?\.shared\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<kind>\w+)\s+"
    r"(?P<name>[\w$]+)(?:\[(?P<count>\d+)\])?\s*;",
    re.MULTILINE,
)
_WIDTH = re.compile(r"(\d+)$")


@functools.lru_cache(maxsize=1024)
def _thread_bound(ptx: str, lowered: str) -> int:
    """The threads that ``__launch_bounds__`` allows; 0 if there is none."""
    bound = re.search(r"^\.maxntid\s+([\d, ]+)", _entry(ptx, lowered), re.MULTILINE)
    return functools.reduce(lambda a, b: a * int(b), bound[1].split(","), 1) if bound else 0


def _entry(ptx: str, lowered: str) -> str:
    """The text of one kernel in `ptx`."""
    start = re.search(rf"\.entry\s+{re.escape(lowered)}\s*\(", ptx)
    if start is None:
        return ""
    end = re.compile(r"^\}", re.MULTILINE).search(ptx, start.end())
    return ptx[start.end() : end.start() if end else len(ptx)]


def _name_allocations(parameters: Sequence[Parameter], args: Sequence[Any]) -> None:
    """Call each array's allocation what the kernel calls it, so that an error can name it."""
    named: set[int] = set()
    for parameter, arg in zip(parameters, args, strict=True):
        if isinstance(arg, ndarray) and arg.data.mem.allocation is not None:
            allocation = arg.data.mem.allocation
            if id(allocation) not in named:
                named.add(id(allocation))
                allocation.name = parameter.name or f"argument {parameter.position}"
