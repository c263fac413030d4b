"""``cp.RawModule`` and ``cp.RawKernel``: CUDA C++ compiled by NVRTC, as in CuPy, and run on the emulator."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from climb import emulator
from climb.fake_cupy import current, limits
from climb.fake_cupy.arrays import ndarray
from climb.fake_cupy.device import COMPUTE_CAPABILITY
from climb.fake_cupy.errors import CUDADriverError
from climb.fake_cupy.kernel_ptx import static_shared, thread_bound
from climb.fake_cupy.memory import Memory, MemoryPointer, device_memory, device_of, memory_seen_by
from climb.fake_cupy.packing import pack
from climb.fake_cupy.parameters import Parameter, read_parameters
from climb.toolchain import Compiled, CompileError, KernelNotFound, Resources, compile_cuda, one_text, resources
from climb.toolchain.options import split_architecture

#: The name in messages of a source that was given as a string.
FILENAME = "kernel.cu"


class RawModule:
    """CUDA C++ source with its kernels and variables, compiled at the first use of any of them."""

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
            raise NotImplementedError("the emulator's stand-in for CuPy loads no cubin or PTX from a path; pass code=")
        _refuse(options, backend, translate_cucomplex, jitify)
        if not isinstance(code, str):
            raise TypeError(f"code must be a str, not {type(code).__name__}")
        if isinstance(name_expressions, str):
            raise TypeError(f"name_expressions must be a sequence of str, not one str: ({name_expressions!r},)")
        self.code = code
        self.options = options
        self.backend = backend
        self.enable_cooperative_groups = enable_cooperative_groups
        self.name_expressions = tuple(name_expressions) if name_expressions is not None else None

    def compile(self, log_stream: Any = None) -> None:
        """Compile now; the compiler's log goes to `log_stream`. Raises CompileError."""
        log = self._compiled.log
        if log_stream is not None:
            log_stream.write(log)

    def get_function(self, name: str) -> RawKernel:
        """Return the kernel `name`, which is declared `extern "C"` or is one of the name expressions.

        Raises CompileError, and KernelNotFound, which lists the module's kernels.
        """
        __tracebackhide__ = True
        try:
            self._compiled.lowered(name)
        except (CompileError, KernelNotFound) as error:
            raise error.with_traceback(None) from None
        return RawKernel(
            self.code, name, self.options, self.backend, enable_cooperative_groups=self.enable_cooperative_groups,
            _name_expressions=self.name_expressions,
        )  # fmt: skip

    def get_global(self, name: str) -> MemoryPointer:
        """Return a pointer to a ``__device__`` or ``__constant__`` variable; ``cp.ndarray(shape, dtype, pointer)``
        wraps it.

        Raises LookupError, which lists the module's variables.
        """
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
        _refuse(options, backend, translate_cucomplex, jitify)
        self.code = code
        self.name = self.__name__ = name
        self.options = options
        self.backend = backend
        self.enable_cooperative_groups = enable_cooperative_groups
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
        """Launch the kernel and return when it has ended.

        Raises CUDADriverError if the driver would refuse the launch, TypeError for wrong arguments, EmulatorError for a
        fault in the kernel.
        """
        __tracebackhide__ = True  # so IPython and pytest show the caller's own line last
        try:
            self._launch(grid, block, args, shared_mem)
        except (emulator.EmulatorError, CompileError, KernelNotFound, TypeError, CUDADriverError) as error:
            # The frames below are ours; the mistake is in the kernel or in the call above this one.
            raise error.with_traceback(None) from None

    def compile(self, log_stream: Any = None) -> None:
        """Compile now; the compiler's log goes to `log_stream`. Raises CompileError."""
        log = self._compiled.log
        if log_stream is not None:
            log_stream.write(log)

    # Attributes, as the driver reports them for a kernel compiled for this device

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
        """Local memory in bytes per thread: arrays outside registers, and spilled registers."""
        return self._resources.local_bytes

    @property
    def max_threads_per_block(self) -> int:
        """The most threads in a block, by the kernel's launch bound if it has one, else by its registers."""
        if bound := thread_bound(self._compiled.ptx, self._lowered):
            return bound
        threads = limits.MAX_THREADS
        while threads > limits.WARP:
            try:
                limits.check_registers(self.num_regs, (threads, 1, 1))
                break
            except CUDADriverError:
                threads -= limits.WARP
        return threads

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """The most dynamic shared memory of a launch, in bytes per block; can be set, up to the hardware's limit."""
        if self._opted_in is not None:
            return self._opted_in
        return limits.SHARED_BYTES - static_shared(self._compiled, self._lowered)

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, nbytes: int) -> None:
        limits.check_opt_in(int(nbytes), static_shared(self._compiled, self._lowered))
        self._opted_in = int(nbytes)

    @property
    def attributes(self) -> dict[str, int]:
        """All of the attributes above, by name."""
        names = ("max_threads_per_block", "shared_size_bytes", "local_size_bytes", "num_regs")
        return {name: getattr(self, name) for name in (*names, "max_dynamic_shared_size_bytes")}

    # Internals

    @functools.cached_property
    def _compiled(self) -> Compiled:
        return _compile(self.code, self.options, self.name_expressions)

    @property
    def _lowered(self) -> str:
        return self._compiled.lowered(self.name)

    @property
    def _resources(self) -> Resources:
        return resources(self._compiled, self.name)

    def _launch(self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], shared_mem: int) -> None:
        compiled, lowered = self._compiled, self._lowered
        blocks, threads = limits.dim3(grid, "grid"), limits.dim3(block, "block")
        bound = thread_bound(compiled.ptx, lowered)
        limits.check_extents(blocks, threads, bound)
        limits.check_shared(int(shared_mem), static_shared(compiled, lowered), self.max_dynamic_shared_size_bytes)
        # Running ptxas is a second compilation, which is not needed if the registers suffice. A thread has at most 255,
        # so a block of up to 256 threads always fits; and ptxas keeps a kernel with a launch bound within the registers
        # of its blocks.
        if threads[0] * threads[1] * threads[2] > 256 and not bound:
            limits.check_registers(self._resources.registers, threads)
        parameters = _parameters(compiled, lowered, self.name)
        packed = pack(parameters, args)
        _name_allocations(parameters, args)
        kernel = _load(compiled).kernel(lowered)
        cooperative = self.enable_cooperative_groups
        if cooperative:
            shared = static_shared(compiled, lowered) + int(shared_mem)
            limits.check_resident(blocks, threads, shared, self._resources.registers)
        memory = memory_seen_by(current.current())
        try:
            kernel.launch(blocks, threads, packed, memory=memory, shared_bytes=int(shared_mem), cooperative=cooperative)
        except emulator.OutOfBounds as error:
            _explain_peer(error)
            raise


def _explain_peer(error: emulator.OutOfBounds) -> None:
    """Raise CUDADriverError if the access that failed is to an array of a device without peer access."""
    device = current.current()
    found = device_memory.find(error.address)
    if found is not None and not current.may_access(device, owner := device_of(found)):
        raise CUDADriverError(
            f"CUDA_ERROR_ILLEGAL_ADDRESS: a kernel on device {device} accesses {found.name}, which is on device "
            f"{owner}; cp.cuda.runtime.deviceEnablePeerAccess({owner}) allows it\n{error}"
        ) from None


def _refuse(options: Any, backend: str, translate_cucomplex: bool, jitify: bool | None) -> None:
    """Raise TypeError for arguments that CuPy refuses, NotImplementedError for options that need a GPU."""
    if not isinstance(options, tuple):
        raise TypeError(f'options must be a tuple of str, not {type(options).__name__}: ("-DTILE=32",)')
    if backend != "nvrtc" or translate_cucomplex or jitify:
        raise NotImplementedError(
            "the emulator's stand-in for CuPy compiles with NVRTC only: nvcc, translate_cucomplex and jitify need a GPU"
        )


def _compile(code: str, options: tuple[str, ...], expressions: tuple[str, ...] | None) -> Compiled:
    kept, arch = split_architecture(options)
    file = one_text.file_of(code)
    return compile_cuda(
        file.text if file else code,
        filename=file.name if file else FILENAME,
        include_dirs=(file.folder,) if file else (),
        options=kept,
        name_expressions=expressions or (),
        arch=arch or f"sm_{COMPUTE_CAPABILITY}",
    )


@functools.lru_cache(maxsize=256)
def _load(compiled: Compiled) -> emulator.Module:
    """Load the module on the emulated device. As in CuPy, equal sources are loaded once and share their variables."""
    return emulator.load(compiled.ptx, sources=compiled.sources)


@functools.lru_cache(maxsize=1024)
def _parameters(compiled: Compiled, lowered: str, expression: str) -> tuple[Parameter, ...]:
    everything = "\n".join(compiled.sources.values())
    return read_parameters(compiled.ptx, lowered, everything, expression)


def _name_allocations(parameters: Sequence[Parameter], args: Sequence[Any]) -> None:
    """Name each array's allocation after the kernel's parameter, for errors about it."""
    named: set[int] = set()
    for parameter, arg in zip(parameters, args, strict=True):
        if isinstance(arg, ndarray) and arg.data.mem.allocation is not None:
            allocation = arg.data.mem.allocation
            if id(allocation) not in named:
                named.add(id(allocation))
                allocation.name = parameter.name or f"argument {parameter.position}"
