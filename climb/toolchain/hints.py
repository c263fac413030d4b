"""Hints about the compiler's messages, which a CompileError shows below them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from climb.toolchain.diagnostics import Diagnostic
from climb.toolchain.includes import missing_package
from climb.toolchain.nvrtc import nvrtc_version

_MISSING_FILE = re.compile(r'(?:cannot|could not) open source file "([^"]+)"')
#: Headers of the host's libraries, which code written for nvcc includes and NVRTC does not have.
_HOST_HEADER = re.compile(
    r"(?:std(?:io|lib|int|def|bool)|string|math|assert|time|float|limits)\.h|"
    r"c(?:std(?:io|lib|int|def)|string|math|assert|float|limits|time)|iostream|iomanip|[fs]stream|string|vector|array|"
    r"algorithm|numeric|random|chrono|utility|memory|functional|type_traits|limits|tuple|map|set"
)


def hints(diagnostic: Diagnostic, arch: str) -> list[str]:
    """Return hints about one error of a compilation for `arch`; empty if there is nothing to add to the message."""
    message = diagnostic.message
    if option := re.search(r"unrecognized option (\S*)", message):
        return [f"NVRTC has no option {option[1]!r}; it takes the options of nvcc that concern device code."]
    if "invalid value for --gpu-architecture" in message:
        return [f"This NVRTC ({'.'.join(map(str, nvrtc_version()))}) has no architecture {arch!r}."]
    if missing := _MISSING_FILE.search(message):
        return _header_hints(missing[1])
    if re.search(r'identifier "(cuda[A-Z]\w+|main)" is undefined', message):
        return ["NVRTC compiles device code only: leave out host code such as main and cudaMalloc."]
    if "device-side kernel launch" in message:
        return ["A kernel that launches a kernel (dynamic parallelism) needs CUDA's device runtime, which is not here."]
    if used := re.search(r"uses too much shared data \((\w+) bytes, (\w+) max\)", message):
        return [
            f"The kernel declares {int(used[1], 16)} bytes of shared memory; a block may declare at most "
            f"{int(used[2], 16)}. For more, declare `extern __shared__` and pass shared_mem= at the launch."
        ]
    return []


def _header_hints(header: str) -> list[str]:
    if _HOST_HEADER.fullmatch(header):
        return [
            f"NVRTC compiles device code only: leave out {header} and all host code. printf, assert and "
            "the functions of math.h are built in; <cuda/std/cstdint> declares uint32_t and similar types."
        ]
    if command := missing_package(header, nvrtc_version()[0]):
        return [f"A package with headers of CUDA is not installed; install it with {command}."]
    return []


def name_hints(about_names: Sequence[Diagnostic], source: str, filename: str, expressions: Sequence[str]) -> list[str]:
    """Return one hint for each of the `expressions` that, by NVRTC's errors `about_names`, names no kernel of
    `source`."""
    declared = ", ".join(dict.fromkeys(re.findall(r"__global__[^;{]*?\b(\w+)\s*\(", source)))
    found = []
    for line in dict.fromkeys(d.line for d in about_names):
        texts = [d.text for d in about_names if d.line == line and d.text]
        quoted = re.search(r"nv_mangled_name (.*)", texts[0]) if texts else None
        expression = quoted[1].strip() if quoted else ", ".join(expressions)
        why = next(d.message for d in about_names if d.line == line)
        found.append(
            f"The name expression {expression!r} names no kernel of {filename} ({why}). "
            + (f"The source declares: {declared}." if declared else "The source declares no kernel.")
        )
    return found


def origin(ptx: str, ptx_line: int, source: str, filename: str) -> str:
    """Return the line of `source` that line `ptx_line` of `ptx` was compiled from, as a sentence; "" if the PTX has
    none."""
    for line in reversed(ptx.splitlines()[:ptx_line]):
        if place := re.match(r"\s*\.loc\s+1\s+([1-9]\d*)", line):
            text = source.splitlines()[int(place[1]) - 1].strip()
            return f"Line {ptx_line} of the PTX comes from {filename}:{place[1]}: {text}"
    return ""
