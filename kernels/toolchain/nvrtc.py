"""CUDA C++ to PTX and cubin by NVIDIA's own compiler, NVRTC, which needs no GPU and no driver.

The options are those that CuPy compiles with, so that what the emulator runs and what is disassembled here
is the code that runs on a GPU. Names of files in the PTX never hold a path of this machine: the same source
gives the same PTX everywhere.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from types import ModuleType

from kernels.toolchain import kept
from kernels.toolchain.diagnostics import Diagnostic, parse_log, shorten
from kernels.toolchain.errors import CompileError, KernelNotFound, ToolchainError
from kernels.toolchain.includes import cuda_include_dirs, included_files

__all__ = ["DEFAULT_OPTIONS", "Compiled", "compile_cuda", "nvrtc_version"]

# -ftz=true and -default-device are what CuPy adds to every RawModule; -lineinfo changes no instruction.
DEFAULT_OPTIONS = ("-std=c++17", "-default-device", "-ftz=true", "-lineinfo")

# NVRTC makes a relative file name absolute with the working directory, which would end up in the PTX.
_ROOT = "/"


@dataclass(frozen=True, eq=False)
class Compiled:
    """One compiled source.

    `names` maps each name expression to its lowered (mangled) name. `sources` holds the text of each file, by
    the name that the PTX's line table uses: `filename` itself, and what it includes from the include
    directories. `options` are all that were given to NVRTC, except include directories and architecture.
    """

    source: str
    filename: str
    arch: str
    options: tuple[str, ...]
    names: dict[str, str]
    ptx: str
    log: str
    nvrtc_version: tuple[int, int]
    sources: dict[str, str]
    include_dirs: tuple[str, ...] = field(repr=False)
    made_with: tuple[bytes, str] | None = field(default=None, repr=False)

    @functools.cached_property
    def _machine_code(self) -> tuple[bytes, str]:
        """Machine code and ptxas's report: those made with this PTX, or else of another run of the compiler."""
        if self.made_with is not None:
            return self.made_with
        log, images, _ = self._program.compile(self.arch, self.options, want="cubin")
        return images["cubin"], log

    @property
    def _program(self) -> _Program:
        return _Program(self.source, self.filename, tuple(self.names), self.include_dirs, ptx=self.ptx)

    def with_code(self, ptx: str, cubin: bytes, include_dirs: tuple[str, ...]) -> Compiled:
        """The same source with PTX and machine code of an earlier run, whose line table names these directories."""
        return replace(self, ptx=ptx, made_with=(cubin, ""), include_dirs=include_dirs)

    def check_syntax(self, arch: str) -> None:
        """Ask NVRTC's front end alone whether it takes the source for another architecture, in a twentieth of the time
        of a compilation. Raises CompileError if it does not."""
        self._program.compile(arch, (*self.options, "-fdevice-syntax-only"), want="ptx")

    @property
    def cubin(self) -> bytes:
        """Machine code for `arch`, made when first asked for. Raises CompileError if ptxas refuses it."""
        return self._machine_code[0]

    @property
    def ptxas_report(self) -> str:
        """What ptxas says of each kernel's registers, shared memory and spills. Raises as `cubin` does."""
        return self._machine_code[1]

    @functools.cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The compiler's warnings."""
        found = parse_log(self.log, self.sources, strip=shown_prefixes(self.include_dirs))
        return tuple(one for one in found if one.severity != "info")  # what ptxas reports

    @functools.cached_property
    def kernels(self) -> tuple[str, ...]:
        """The lowered names of all kernels in the PTX, in its order."""
        return tuple(re.findall(r"^\s*(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)", self.ptx, re.MULTILINE))

    def lowered(self, name: str) -> str:
        """The lowered name of `name`, a name expression or already a kernel's name. Raises KernelNotFound,
        which names the kernels that there are."""
        if name in self.names:
            return self.names[name]
        if name in self.kernels:
            return name
        expressions = {lowered: expression for expression, lowered in self.names.items()}
        known = ", ".join(repr(expressions.get(kernel, kernel)) for kernel in self.kernels)
        message = f"{self.filename} has no kernel {name!r}; it has {known or 'no kernel at all'}"
        if any(f"{len(name)}{name}" in kernel for kernel in self.kernels):
            message += f'. C++ mangles names: declare it extern "C", or pass name_expressions=("{name}",)'
        raise KernelNotFound(message)


_cache: dict[tuple[object, ...], Compiled] = {}
_lock = threading.Lock()


def compile_cuda(
    source: str,
    *,
    filename: str,
    options: Sequence[str] = (),
    name_expressions: Iterable[str] = (),
    include_dirs: Sequence[str | Path] = (),
    arch: str = "sm_90",
    whole: bool = False,
) -> Compiled:
    """Compile CUDA C++ `source` for `arch` ("sm_75" to "sm_120"), cached by content, includes and all.

    `filename` names the source in messages and line tables; of an absolute path only the last part is kept.
    `options` are added to DEFAULT_OPTIONS and win over them. `name_expressions` are C++ names of kernels,
    such as "transpose<32>". CUDA's own headers are found by themselves.

    PTX is made now and machine code when it is asked for, by another run of NVRTC; with `whole` both now, by the same
    run. That takes less time than two, and their instructions are the same: of some kernels NVRTC merges neighbouring
    loads in an order that hangs on its own addresses, which differs from one run to the next.

    Raises CompileError with the compiler's diagnostics, ToolchainError when NVRTC is not installed.
    """
    if isinstance(options, str) or isinstance(name_expressions, str):
        raise TypeError("options and name_expressions are sequences of str, not one str")
    name = _stable_name(filename)
    options, named_dirs = _without_include_dirs(options)
    own_dirs = tuple(dict.fromkeys(str(Path(folder).resolve()) for folder in (*include_dirs, *named_dirs)))
    texts = included_files(source, own_dirs)
    expressions = tuple(dict.fromkeys(name_expressions))
    key = (source, name, tuple(options), expressions, own_dirs, arch, whole, tuple(sorted(texts.items())))
    with _lock:
        if key in _cache:
            return _cache[key]
    merged = _merge_options(options)
    program = _Program(source, name, expressions, own_dirs)
    log, images, names = program.compile(arch, merged, want="cubin" if whole else "ptx")
    compiled = Compiled(
        source=source,
        filename=name,
        arch=arch,
        options=merged,
        names=names,
        ptx=_without_machine_paths(images["ptx"].decode(), own_dirs),
        log=log,
        nvrtc_version=nvrtc_version(),
        sources={name: source, **texts},
        include_dirs=own_dirs,
        made_with=(images["cubin"], log) if whole else None,
    )
    with _lock:
        return _cache.setdefault(key, compiled)


@functools.cache
def nvrtc_version() -> tuple[int, int]:
    """Major and minor version of the NVRTC in use. Raises ToolchainError if there is none."""
    status, major, minor = _nvrtc().nvrtcVersion()
    _check(status, "nvrtcVersion")
    return major, minor


@functools.cache
def _packages() -> list[str]:
    """The versions of the packages that NVRTC and the headers may come from, as far as they are installed."""
    from importlib import metadata  # slow to import, and only compiling needs it

    found = []
    for name in ("nvrtc", "runtime", "cccl", "nvcc"):
        for package in (f"nvidia-cuda-{name}-cu12", f"nvidia-cuda-{name}"):
            with contextlib.suppress(metadata.PackageNotFoundError):
                found.append(f"{package} {metadata.version(package)}")
    return found


@functools.cache
def _nvrtc() -> ModuleType:
    """The bindings, with the library behind them loaded."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise ToolchainError(
            f"compiling CUDA needs the package cuda-bindings, which does not import here ({error}); "
            "`pip install -r requirements.txt` brings it"
        ) from None
    try:
        nvrtc.nvrtcVersion()
    except Exception as error:  # the bindings raise different types for a library that is not there
        raise ToolchainError(
            f"compiling CUDA needs NVRTC, which does not load here ({error}); "
            "`pip install -r requirements.txt` brings it, as the package nvidia-cuda-nvrtc-cu12"
        ) from None
    return nvrtc


def _check(status: object, call: str) -> None:
    if int(status) != 0:  # type: ignore[call-overload]
        raise ToolchainError(f"NVRTC: {call} failed with {getattr(status, 'name', status)}")


class _Program:
    """One source with its name expressions; each compilation makes a fresh program of NVRTC's."""

    def __init__(
        self,
        source: str,
        filename: str,
        expressions: tuple[str, ...],
        include_dirs: tuple[str, ...],
        ptx: str = "",
    ) -> None:
        self.source = source
        self.filename = filename
        self.expressions = expressions
        self.include_dirs = include_dirs
        self.ptx = ptx  # what ptxas's messages count their lines in

    def compile(self, arch: str, options: tuple[str, ...], *, want: str) -> kept.Made:
        """Log, images and lowered names, made now or kept since they were: of a `want` of "cubin" both images, of "ptx"
        no machine code."""
        # For a virtual architecture NVRTC stops at PTX, the same PTX, and does not run ptxas.
        flags = self._flags(arch.replace("sm_", "compute_"), options) if want == "ptx" else self._whole(arch, options)
        texts = sorted(included_files(self.source, self.include_dirs).items())
        headers = [Path(folder).stat().st_mtime_ns for folder in cuda_include_dirs(nvrtc_version()[0])]
        own = [self.source, self.filename, self.expressions, flags, want]
        name = kept.digest([_packages(), nvrtc_version(), headers, texts, *own])

        return kept.keep(name, lambda: self._compile(flags, arch, options))

    def _flags(self, target: str, options: tuple[str, ...]) -> list[str]:
        folders = (*self.include_dirs, *cuda_include_dirs(nvrtc_version()[0]))
        return [f"-arch={target}", *options, *(f"-I{folder}" for folder in folders)]

    def _whole(self, arch: str, options: tuple[str, ...]) -> list[str]:
        """The flags for machine code. Where there is a driver, NVRTC keeps that in the driver's cache, without ptxas's
        report, unless told not to."""
        return self._flags(arch, (*options, "--ptxas-options=-v", "--no-cache"))

    def _compile(self, flags: list[str], arch: str, options: tuple[str, ...]) -> kept.Made:
        nvrtc = _nvrtc()
        status, program = nvrtc.nvrtcCreateProgram(
            self.source.encode(), (_ROOT + self.filename).encode(), 0, None, None
        )
        _check(status, "nvrtcCreateProgram")
        try:
            for expression in self.expressions:
                _check(nvrtc.nvrtcAddNameExpression(program, expression.encode())[0], "nvrtcAddNameExpression")
            encoded = [flag.encode() for flag in flags]
            (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
            log = _fetch(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
            log = log.rstrip("\0\n")
            if int(status) != 0:
                raise self._error(log, arch, options, getattr(status, "name", str(status)))
            images = {
                "ptx": _fetch(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).rstrip(b"\0"),
                "cubin": _fetch(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program),
            }
            names = {}
            for expression in self.expressions:
                status, lowered = nvrtc.nvrtcGetLoweredName(program, expression.encode())
                _check(status, f"nvrtcGetLoweredName({expression!r})")
                names[expression] = lowered.decode()
        finally:
            nvrtc.nvrtcDestroyProgram(program)
        return log, images, names

    def _error(self, log: str, arch: str, options: tuple[str, ...], status: str) -> CompileError:
        files = {
            self.filename: self.source,
            **included_files(self.source, self.include_dirs),
            "PTX": self.ptx,
        }
        found = [d for d in parse_log(log, files, strip=shown_prefixes(self.include_dirs)) if d.is_error]
        # NVRTC compiles the name expressions in a file of its own, which nobody wrote.
        about_names = [d for d in found if d.file == "__nv_name_map"]
        diagnostics = [d for d in found if d.file != "__nv_name_map"]
        hints = []
        if about_names and not diagnostics:
            hints += self._name_hints(about_names)
        for diagnostic in diagnostics:
            hints += _hints(diagnostic, arch)
            if diagnostic.file == "PTX" and (origin := self._origin(diagnostic.line)):
                hints.append(origin)
        if not diagnostics and not hints:
            diagnostics = [Diagnostic("error", log or status)]
        return CompileError(f"{self.filename} does not compile for {arch}", diagnostics, tuple(dict.fromkeys(hints)))

    def _origin(self, ptx_line: int) -> str:
        """Which source line the PTX of `ptx_line` comes from, as a sentence; "" if its file says nothing."""
        for line in reversed(self.ptx.splitlines()[:ptx_line]):
            if place := re.match(r"\s*\.loc\s+1\s+([1-9]\d*)", line):
                text = self.source.splitlines()[int(place[1]) - 1].strip()
                return f"Line {ptx_line} of the PTX comes from {self.filename}:{place[1]}: {text}"
        return ""

    def _name_hints(self, about_names: list[Diagnostic]) -> list[str]:
        """One sentence for each name expression that names no kernel."""
        declared = ", ".join(dict.fromkeys(re.findall(r"__global__[^;{]*?\b(\w+)\s*\(", self.source)))
        hints = []
        for line in dict.fromkeys(d.line for d in about_names):
            texts = [d.text for d in about_names if d.line == line and d.text]
            quoted = re.search(r"nv_mangled_name (.*)", texts[0]) if texts else None
            expression = quoted[1].strip() if quoted else ", ".join(self.expressions)
            why = next(d.message for d in about_names if d.line == line)
            hints.append(
                f"The name expression {expression!r} names no kernel of {self.filename} ({why}). "
                + (f"The source declares: {declared}." if declared else "The source declares no kernel.")
            )
        return hints


#: What a file has that nvcc compiles: host code needs them.
_HOST_HEADER = re.compile(
    r'(?:cannot|could not) open source file "('
    r"(?:std(?:io|lib|int|def|bool)|string|math|assert|time|float|limits|cuda)\.h|"
    r"c(?:std(?:io|lib|int|def)|string|math|assert|float|limits|time)|iostream|iomanip|[fs]stream|string|vector|array|"
    r'algorithm|numeric|random|chrono|utility|memory|functional|type_traits|limits|tuple|map|set)"'
)


def _hints(diagnostic: Diagnostic, arch: str) -> list[str]:
    message = diagnostic.message
    if option := re.search(r"unrecognized option (\S*)", message):
        return [f"NVRTC knows no option {option[1]!r}; its options are those of nvcc that concern device code."]
    if "invalid value for --gpu-architecture" in message:
        return [f"This NVRTC ({'.'.join(map(str, nvrtc_version()))}) has no architecture {arch!r}."]
    if re.search("(cannot|could not) open source file", message) and not cuda_include_dirs(nvrtc_version()[0]):
        package = "nvidia-cuda-runtime-cu12" if nvrtc_version()[0] == 12 else "nvidia-cuda-runtime"
        return [f"CUDA's headers are not installed here; the package {package} brings them."]
    if header := _HOST_HEADER.search(message):
        return [
            f"NVRTC compiles device code alone: leave out {header[1]}, and what runs on the host. printf, assert and "
            "the functions of math.h are built in; uint32_t and the like come with <cuda/std/cstdint>."
        ]
    if re.search(r'identifier "(cuda[A-Z]\w+|main)" is undefined', message):
        return ["NVRTC compiles device code alone: leave out what runs on the host, such as main and cudaMalloc."]
    if used := re.search(r"uses too much shared data \((\w+) bytes, (\w+) max\)", message):
        return [
            f"The kernel declares {int(used[1], 16)} bytes of shared memory; a block may declare at most "
            f"{int(used[2], 16)}. More is given at the launch: `extern __shared__`, with shared_mem=."
        ]
    return []


def _fetch(size_of: object, read: object, program: object) -> bytes:
    """One of NVRTC's pairs of calls: how long, then into a buffer of that length."""
    status, size = size_of(program)  # type: ignore[operator]
    _check(status, "asking for a size")
    if not size:
        return b""  # no machine code for a virtual architecture
    # The bindings write into the buffer. A bytes object of length one is shared by the whole process: never give that.
    buffer = bytearray(max(size, 2))
    _check(read(program, buffer)[0], "reading a result")  # type: ignore[operator]
    return bytes(buffer[:size])


def _stable_name(filename: str) -> str:
    """`filename` as a relative POSIX name with no part of this machine in it."""
    path = PurePosixPath(str(filename).replace(os.sep, "/"))
    if path.is_absolute() or ".." in path.parts or not path.name:
        return path.name or "kernel.cu"
    return str(path)


def _merge_options(options: Sequence[str]) -> tuple[str, ...]:
    """DEFAULT_OPTIONS without those that `options` set, then `options`."""
    given = {_setting(option) for option in options}
    if given & {"-arch", "--gpu-architecture"}:
        raise ValueError("the architecture is given by arch=, not in options")
    return (*(option for option in DEFAULT_OPTIONS if _setting(option) not in given), *options)


def _without_include_dirs(options: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`options` without those that name include directories, and these directories."""
    kept, folders = [], []
    pending = iter(options)
    for option in pending:
        if option in ("-I", "--include-path"):
            folders.append(next(pending, "."))
        elif match := re.match(r"(?:-I|--include-path=)(.+)", option):
            folders.append(match[1])
        else:
            kept.append(option)
    return tuple(kept), tuple(folders)


_ALIASES = {
    "--std": "-std",
    "--ftz": "-ftz",
    "--use_fast_math": "-ftz",
    "-use_fast_math": "-ftz",
    "--generate-line-info": "-lineinfo",
    "--device-as-default-execution-space": "-default-device",
}


def _setting(option: str) -> str:
    """What `option` sets, under one name for all its spellings."""
    name = option.split("=", 1)[0]
    return _ALIASES.get(name, name)


def shown_prefixes(include_dirs: tuple[str, ...]) -> dict[str, str]:
    """Prefixes of file names inside NVRTC, and what they are to be shown as."""
    prefixes = {f"{folder}/": "" for folder in include_dirs}
    prefixes |= {f"{folder}/": "cuda/" for folder in cuda_include_dirs(nvrtc_version()[0])}
    return {_ROOT: ""} | prefixes


def _without_machine_paths(ptx: str, include_dirs: tuple[str, ...]) -> str:
    """`ptx` with the names in its `.file` directives made relative."""
    prefixes = shown_prefixes(include_dirs)
    return re.sub(
        r'^(\s*\.file\s+\d+\s+)"([^"]*)"',
        lambda m: f'{m[1]}"{shorten(m[2], prefixes)}"',
        ptx,
        flags=re.MULTILINE,
    )
