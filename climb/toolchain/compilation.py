"""CUDA C++ to PTX and machine code by NVIDIA's own compiler, NVRTC, which needs no GPU and no driver.

The options are those that CuPy compiles with, so the emulator runs, and the disassembler shows, the code that runs
on a GPU. File names in the PTX hold no path of this machine: the same source gives the same PTX everywhere.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from climb.toolchain.diagnostics import Diagnostic, parse_log
from climb.toolchain.errors import KernelNotFound
from climb.toolchain.file_names import shown_prefixes, stable_name, without_machine_paths
from climb.toolchain.includes import included_files
from climb.toolchain.nvrtc import nvrtc_version
from climb.toolchain.options import merge_options, split_include_dirs
from climb.toolchain.program import Program


@dataclass(frozen=True, eq=False)
class Compiled:
    """One compiled source.

    `names` maps each name expression to its lowered (mangled) name. `sources` maps the name of each file, as the
    PTX's line table has it, to its text: `filename` itself and the files it includes from the include directories.
    `options` are all options that NVRTC was given, except include directories and architecture.
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
        """Machine code and ptxas's report: those made together with this PTX if there are any, else made now."""
        if self.made_with is not None:
            return self.made_with
        log, images, _ = self._program.compile(self.arch, self.options, want="cubin")
        return images["cubin"], log

    @property
    def _program(self) -> Program:
        return Program(self.source, self.filename, tuple(self.names), self.include_dirs, ptx=self.ptx)

    def with_code(
        self,
        ptx: str,
        cubin: bytes,
        include_dirs: tuple[str, ...],
        *,
        filename: str = "",
        lowered: Sequence[str] = (),
        report: str = "",
    ) -> Compiled:
        """Return the same source with PTX and machine code of an earlier run, and ptxas's ``report`` if it was kept.

        Their line table names ``include_dirs``, and ``filename`` if the file has moved since. ``lowered`` are the names
        that the kernels had then, in the order of ``names``, if they have been renamed.
        """
        names = dict(zip(self.names, lowered, strict=True)) if lowered else self.names
        sources = {**self.sources, filename or self.filename: self.source}
        return replace(
            self, ptx=ptx, made_with=(cubin, report), include_dirs=include_dirs, names=names, sources=sources
        )

    @property
    def cubin(self) -> bytes:
        """Machine code for `arch`, made at its first use. Raises CompileError if ptxas refuses the PTX."""
        return self._machine_code[0]

    @property
    def ptxas_report(self) -> str:
        """ptxas's report of each kernel's registers, shared memory and spills. Raises like `cubin`."""
        return self._machine_code[1]

    @functools.cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The compiler's warnings."""
        found = parse_log(self.log, self.sources, strip=shown_prefixes(self.include_dirs))
        return tuple(one for one in found if one.severity != "info")  # ptxas's report has severity "info"

    @functools.cached_property
    def kernels(self) -> tuple[str, ...]:
        """The lowered names of all kernels, in the order of the PTX."""
        return tuple(re.findall(r"^\s*(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)", self.ptx, re.MULTILINE))

    def lowered(self, name: str) -> str:
        """Return the lowered name of `name`, which is a name expression or the lowered name of a kernel.

        Raises KernelNotFound, which lists the kernels of the source.
        """
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
    """Compile CUDA C++ `source` for `arch` ("sm_75" to "sm_120"). Results are cached by content, includes and all.

    `filename` names the source in messages and line tables; only the last part of an absolute path is kept.
    `options` are added to DEFAULT_OPTIONS and override them. `name_expressions` are C++ names of kernels,
    such as "transpose<32>". CUDA's own headers need no include directory.

    The PTX is made now and machine code at its first use, by a second run of NVRTC. With `whole` one run makes both
    now, which takes less time than two runs, and their instructions match: NVRTC merges neighbouring loads of some
    kernels in an order that depends on its own memory addresses, which differ from run to run.

    Raises CompileError with the compiler's diagnostics, ToolchainError if NVRTC is not installed.
    """
    program, options = _program(source, filename, options, name_expressions, include_dirs)
    own_dirs, name = program.include_dirs, program.filename
    texts = included_files(source, own_dirs)
    key = (source, name, options, program.expressions, own_dirs, arch, whole, tuple(sorted(texts.items())))
    with _lock:
        if key in _cache:
            return _cache[key]
    merged = merge_options(options)
    log, images, names = program.compile(arch, merged, want="cubin" if whole else "ptx")
    compiled = Compiled(
        source=source,
        filename=name,
        arch=arch,
        options=merged,
        names=names,
        ptx=without_machine_paths(images["ptx"].decode(), own_dirs),
        log=log,
        nvrtc_version=nvrtc_version(),
        sources={name: source, **texts},
        include_dirs=own_dirs,
        made_with=(images["cubin"], log) if whole else None,
    )
    with _lock:
        return _cache.setdefault(key, compiled)


def check_syntax(
    source: str,
    *,
    filename: str,
    options: Sequence[str] = (),
    name_expressions: Iterable[str] = (),
    include_dirs: Sequence[str | Path] = (),
    arch: str = "sm_90",
) -> None:
    """Check with only NVRTC's front end, in a fraction of the time of compiling, that a source is valid for `arch`.

    The parameters are those of `compile_cuda`. Raises CompileError if it is not, ToolchainError like `compile_cuda`.
    """
    program, options = _program(source, filename, options, name_expressions, include_dirs)
    program.compile(arch, (*merge_options(options), "-fdevice-syntax-only"), want="ptx")


def _program(
    source: str,
    filename: str,
    options: Sequence[str],
    name_expressions: Iterable[str],
    include_dirs: Sequence[str | Path],
) -> tuple[Program, tuple[str, ...]]:
    """Make a program with the include directories that are among its options, and its other options."""
    if isinstance(options, str) or isinstance(name_expressions, str):
        raise TypeError("options and name_expressions are sequences of str, not one str")
    others, named_dirs = split_include_dirs(options)
    own_dirs = tuple(dict.fromkeys(str(Path(folder).resolve()) for folder in (*include_dirs, *named_dirs)))
    expressions = tuple(dict.fromkeys(name_expressions))
    return Program(source, stable_name(filename), expressions, own_dirs), tuple(others)
