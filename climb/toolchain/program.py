"""One CUDA C++ source compiled by NVRTC, or read from what an earlier process kept of the same compilation."""

from __future__ import annotations

import contextlib
from pathlib import Path

from climb.toolchain import assembler, cache, minimal, precompiled
from climb.toolchain.diagnostics import Diagnostic, parse_log
from climb.toolchain.errors import CompileError
from climb.toolchain.file_names import ROOT, shown_prefixes
from climb.toolchain.hints import hints, name_hints, origin
from climb.toolchain.includes import cuda_include_dirs, included_files
from climb.toolchain.nvrtc import check, fetch, library, nvrtc_version
from climb.toolchain.packages import compiler_versions

# NVRTC compiles the name expressions in a separate file, which no user wrote.
_NAME_FILE = "__nv_name_map"


class Program:
    """One source with its name expressions. Each compilation makes a new program of NVRTC."""

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
        self.ptx = ptx  # the text whose lines ptxas counts in its messages

    def compile(self, arch: str, options: tuple[str, ...], *, want: str) -> cache.Made:
        """Return log, images and lowered names of a compilation for `arch`, from the cache if it has them.

        `want` is "ptx" for the image "ptx" alone, or "cubin" for both images. Raises CompileError.
        """
        # For a virtual architecture NVRTC makes the same PTX and skips ptxas.
        flags = (
            self._flags(arch.replace("sm_", "compute_"), options) if want == "ptx" else self._cubin_flags(arch, options)
        )
        texts = sorted(self._headers().items())
        headers = [Path(folder).stat().st_mtime_ns for folder in cuda_include_dirs(nvrtc_version()[0])]
        own = [self.source, self.filename, self.expressions, flags, want]
        name = cache.digest([compiler_versions(), nvrtc_version(), headers, texts, *own])
        return cache.keep(name, lambda: self._run(flags, arch, want) if want == "ptx" else self._whole(arch, options))

    def _flags(self, target: str, options: tuple[str, ...]) -> list[str]:
        folders = (*self.include_dirs, *cuda_include_dirs(nvrtc_version()[0]))
        return [f"-arch={target}", *options, *(f"-I{folder}" for folder in folders)]

    def _cubin_flags(self, arch: str, options: tuple[str, ...]) -> list[str]:
        """Return the flags for machine code with ptxas's report. If there is a driver, NVRTC would take machine code
        from the driver's cache, without the report: --no-cache stops that."""
        return self._flags(arch, (*options, "--ptxas-options=-v", "--no-cache"))

    def _headers(self) -> dict[str, str]:
        return included_files(self.source, self.include_dirs)

    def _whole(self, arch: str, options: tuple[str, ...]) -> cache.Made:
        """Make PTX and machine code: if possible from the PTX that a launch on the emulator needs as well.

        Machine code is made with the declarations that it has on a GPU: the order of neighbouring loads may depend on
        NVRTC's memory addresses, and with them on what it has read before.
        """
        if assembler.serves(options) and not self._minimal():
            log, images, names = self.compile(arch, options, want="ptx")
            if made := assembler.assemble(images["ptx"], arch):
                code, report = made
                return f"{log}\n{report}".strip(), {"ptx": images["ptx"], "cubin": code}, names
        return self._run(self._cubin_flags(arch, options), arch, "cubin")

    def _minimal(self) -> list[str]:
        return minimal.flags([self.source, *self.expressions, *self._headers().values()])

    def _run(self, flags: list[str], arch: str, want: str) -> cache.Made:
        """Compile as fast as this source can be compiled. The messages of a wrong one come from a plain compilation."""
        small = self._minimal() if want == "ptx" else []
        with contextlib.suppress(CompileError):
            if headers := precompiled.flags(self.source, flags):
                with precompiled.lock:
                    return self._compile([*flags, *small, *headers], arch)
            if small:
                return self._compile([*flags, *small], arch)
        return self._compile(flags, arch)

    def _compile(self, flags: list[str], arch: str) -> cache.Made:
        nvrtc = library()
        status, program = nvrtc.nvrtcCreateProgram(self.source.encode(), (ROOT + self.filename).encode(), 0, None, None)
        check(status, "nvrtcCreateProgram")
        try:
            for expression in self.expressions:
                check(nvrtc.nvrtcAddNameExpression(program, expression.encode())[0], "nvrtcAddNameExpression")
            encoded = [flag.encode() for flag in flags]
            (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
            log = fetch(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
            log = log.rstrip("\0\n")
            if int(status) != 0:
                raise self._error(log, arch, getattr(status, "name", str(status)))
            images = {
                "ptx": fetch(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).rstrip(b"\0"),
                "cubin": fetch(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program),
            }
            names = {}
            for expression in self.expressions:
                status, lowered = nvrtc.nvrtcGetLoweredName(program, expression.encode())
                check(status, f"nvrtcGetLoweredName({expression!r})")
                names[expression] = lowered.decode()
        finally:
            nvrtc.nvrtcDestroyProgram(program)
        return log, images, names

    def _error(self, log: str, arch: str, status: str) -> CompileError:
        files = {
            self.filename: self.source,
            **included_files(self.source, self.include_dirs),
            "PTX": self.ptx,
        }
        found = [d for d in parse_log(log, files, strip=shown_prefixes(self.include_dirs)) if d.is_error]
        about_names = [d for d in found if d.file == _NAME_FILE]
        diagnostics = [d for d in found if d.file != _NAME_FILE]
        advice = []
        if about_names and not diagnostics:
            advice += name_hints(about_names, self.source, self.filename, self.expressions)
        for diagnostic in diagnostics:
            advice += hints(diagnostic, arch)
            if diagnostic.file == "PTX" and (place := origin(self.ptx, diagnostic.line, self.source, self.filename)):
                advice.append(place)
        if not diagnostics and not advice:
            diagnostics = [Diagnostic("error", log or status)]
        return CompileError(f"{self.filename} does not compile for {arch}", diagnostics, tuple(dict.fromkeys(advice)))
