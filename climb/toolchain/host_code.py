"""Cut the host code out of a .cu file: NVRTC compiles device code alone.

A file that nvcc compiles may hold `main`, functions that launch kernels, and includes of the C++ library. Parts that
are cut out leave empty lines, so line numbers stay those of the file. This module reads C++ by its braces, not as a
compiler does: code that it cannot classify stays, and NVRTC then says what is wrong with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Headers for the host alone. Others, such as <cstdint> and <cuda/std/...>, NVRTC and CUDA's wheels bring.
_HOST_HEADERS = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*[<\"]((?:c?std(?:io|lib)|iostream|iomanip|fstream|sstream|vector|string|algorithm"
    r"|chrono|random|memory|map|unordered_map|set|queue|numeric|functional|thread|mutex|c?time|c?string|c?assert|c?math|c?float"
    r"|cuda(?=\.h)|cudaTypedefs|cuda_runtime|cuda_runtime_api|device_launch_parameters|helper_\w+|sys/time|unistd|getopt|torch/\w+"
    r"|thrust/[\w/]+)(?:\.h)?)[>\"][^\n]*",
    re.MULTILINE,
)
_TENSOR_MAP = "typedef struct CUtensorMap_st { alignas(64) unsigned long long opaque[16]; } CUtensorMap;"
_QUIET = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
_DEVICE = re.compile(r"__(?:global|device)__")
_CALLS_HOST = re.compile(r"<<<|(?<!cuda::)\bstd::|\bcuda[A-Z]\w*\s*\(|\b(?:fprintf|exit|fopen|getenv|s?rand)\s*\(")
_FUNCTION = re.compile(r"([~\w:]+)\s*\([^{;]*\)[^{;()]*$", re.DOTALL)
_SCOPE = re.compile(r"^\s*(?:inline\s+)?namespace\b|^\s*extern\s*\"\s*\"\s*$")
#: Headers that NVRTC lacks, but CUDA's C++ library provides.
_TYPES = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*<(?:c(?=\w+>)|(?=\w+\.h>))(stdint|limits|stddef)(?:\.h)?>", re.MULTILINE
)
#: CUB's header of everything is not for NVRTC; those of its collectives are.
_ALL_OF_CUB = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]cub/cub\.cuh[>\"]", re.MULTILINE)
_COLLECTIVE = re.compile(
    r"\b(?:Block(?:AdjacentDifference|Discontinuity|Exchange|Histogram|Load|MergeSort|RadixRank|RadixSort|Reduce"
    r"|RunLengthDecode|Scan|Shuffle|Store)|Warp(?:Exchange|Load|MergeSort|Reduce|Scan|Store))\b"
)
_MATH = {
    "INFINITY": "__int_as_float(0x7f800000)",
    "NAN": "__int_as_float(0x7fffffff)",
    "M_PI": "3.14159265358979323846",
    "FLT_MAX": "3.402823466e+38f",
    "FLT_MIN": "1.175494351e-38f",
    "FLT_EPSILON": "1.192092896e-07f",
    "DBL_MAX": "1.7976931348623157e+308",
}


@dataclass(frozen=True)
class Cut:
    """A part that was cut out: the name of a function, or of a header, and its first and last line."""

    name: str
    first: int
    last: int

    def __str__(self) -> str:
        lines = f"line {self.first}" if self.first == self.last else f"lines {self.first}-{self.last}"
        return f"{self.name} ({lines})"


def has_host_code(source: str) -> bool:
    """Return whether the source launches kernels or has a `main`, so that it was written for nvcc."""
    plain = _blanked(source)
    return "<<<" in plain or re.search(r"\bmain\s*\(", plain) is not None


def without_host_code(source: str) -> tuple[str, tuple[Cut, ...]]:
    """Return the device code of a source, with unchanged line numbers, and the parts that were cut out."""
    text, cuts = without_host_headers(source)
    for name, start, end in _host_functions(_blanked(text)):
        cuts.append(Cut(name, text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1))
        text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
    return text, tuple(cuts)


def without_host_headers(source: str) -> tuple[str, list[Cut]]:
    """Return the source without the headers of the host, with unchanged line numbers, and the parts that were cut out.

    The driver's header, which includes some of them, also declares the tensor map that kernels take: that stays.
    """
    cuts: list[Cut] = []

    def header(found: re.Match[str]) -> str:
        line = source.count("\n", 0, found.start()) + 1
        if "CUtensorMap" in source and found[1] == "cuda.h" and not any(cut.name == "<cuda.h>" for cut in cuts):
            cuts.append(Cut("<cuda.h>", line, line))
            return _TENSOR_MAP
        cuts.append(Cut(f"<{found[1]}>", line, line))
        return " " * len(found[0])

    text = _ALL_OF_CUB.sub("#include <cub/util_type.cuh>", _HOST_HEADERS.sub(header, source))
    return _TYPES.sub(lambda found: f"#include <cuda/std/c{found[1]}>", text), cuts


def options_like_nvcc(source: str) -> list[str]:
    """Return options with which NVRTC accepts code that nvcc accepts without them: constants of math.h and float.h that
    the source uses and does not define, 128-bit integers, and the headers of CUB's collectives for its header of
    everything."""
    options = ["--device-int128"] if re.search(r"\b__u?int128(_t)?\b", source) else []
    if "#include <cub/util_type.cuh>" in source:
        options += [f"--pre-include={_header_of(name)}" for name in dict.fromkeys(_COLLECTIVE.findall(source))]
    return options + [
        f"-D{name}={value}"
        for name, value in _MATH.items()
        if re.search(rf"\b{name}\b", source) and not re.search(rf"#[ \t]*define[ \t]+{name}\b", source)
    ]


def _header_of(collective: str) -> str:
    """Return the header of one of CUB's collectives, such as cub/block/block_radix_sort.cuh of BlockRadixSort."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", collective).lower()
    return f"cub/{name.split('_')[0]}/{name}.cuh"


def _blanked(source: str) -> str:
    """Return the source with its comments and string and character literals as spaces, at unchanged positions."""
    return _QUIET.sub(lambda found: re.sub(r"[^\n\"]", " ", found[0]), source)


def _host_functions(plain: str) -> list[tuple[str, int, int]]:
    """Yield name, start and end of each function at namespace scope that only the host can run."""
    plain = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m[0]), plain, flags=re.MULTILINE)
    found, start, position = [], 0, 0
    while (here := re.compile(r"[{};]").search(plain, position)) is not None:
        position = here.end()
        if here[0] != "{":
            start = position
            continue
        head = plain[start : here.start()]
        if _SCOPE.search(head):
            start = position
            continue
        position = _closing(plain, here.start())
        function = _FUNCTION.search(head)
        if function and not _DEVICE.search(head):
            body = plain[here.start() : position]
            if function[1] == "main" or _CALLS_HOST.search(body) or "__host__" in head or _CALLS_HOST.search(head):
                first = start + len(head) - len(head.lstrip())
                found.append((function[1], first, position))
        if function or plain[position : position + 1] != ";":
            start = position
    return found


def _closing(plain: str, opening: int) -> int:
    """Return the position after the brace that closes the one at `opening`; the end of the text if none does."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(plain, opening):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(plain)
