"""The files that a source includes, and the directories of CUDA's own headers."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from pathlib import Path

from climb.toolchain.packages import bindings_major, pip_install, preload, site_packages

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def read_source(path: Path) -> str:
    """Read a source file, which may begin with a byte order mark. nvcc takes any encoding that extends ASCII; a file
    that is not UTF-8 is read as Latin-1, which has a character for each byte. Raises OSError."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def included_files(source: str, include_dirs: Sequence[str | Path]) -> dict[str, str]:
    """Return name and text of each file that `source` includes from `include_dirs`, directly or through another file.

    Conditions are not evaluated, so this is a superset of what the compiler reads. Files outside the directories,
    such as CUDA's headers, are left out.
    """
    found: dict[str, str] = {}
    pending = [source]
    while pending:
        for name in _INCLUDE.findall(pending.pop()):
            if name in found:
                continue
            for folder in include_dirs:
                path = Path(folder, name)
                if path.is_file():
                    found[name] = read_source(path)
                    pending.append(found[name])
                    break
    return found


@functools.cache
def cuda_include_dirs(major: int) -> tuple[Path, ...]:
    """Return the directories of CUDA's headers for NVRTC `major`; empty if no headers of that version are installed."""
    versions = {
        folder: _cuda_major(folder)
        for folder in _header_candidates(major)
        if (folder / "cuda_runtime.h").is_file() or (folder / "cuda_runtime_api.h").is_file()
    }
    # Headers of another major version use macros that this NVRTC lacks: better none, and a message that says so.
    fitting = [folder for wanted in (major, 0) for folder, version in versions.items() if version == wanted]
    chosen = fitting[:1]
    return tuple(path for folder in chosen for path in (folder, *_companions(folder)) if path.is_dir())


def missing_package(header: str, major: int) -> str:
    """Return the command that installs the package with `header`, a header of CUDA `major`.

    "" if the package is installed, or if no package of CUDA has such a header.
    """
    folders = cuda_include_dirs(major)
    if not folders:
        return pip_install("runtime", major)
    top = header.split("/")[0]
    if top in ("cuda", "cub", "thrust", "nv") and not any((folder / "cuda" / "std").is_dir() for folder in folders):
        return pip_install("cccl", major)
    if top == "crt" and not any((folder / "crt").is_dir() for folder in folders):
        return pip_install("crt", major)
    if top.startswith("curand") and not any((folder / "curand_kernel.h").is_file() for folder in folders):
        return pip_install("curand", major)
    return ""


def before_cupy() -> None:
    """Let CuPy find NVRTC and headers of the CUDA version of cuda-bindings. To be called before CuPy is imported.

    CuPy asks cuda.pathfinder for both. If packages of two CUDA versions are installed, e.g. PyTorch's beside the
    book's, cuda.pathfinder answers with the newest headers, which an older NVRTC cannot read. It has no setting for
    that, so the function that CuPy calls is replaced by one that knows the version.
    """
    preload("nvrtc")
    try:
        from cuda import pathfinder

        find = pathfinder.find_nvidia_header_directory
    except (ImportError, AttributeError):  # older packages know nothing of this search
        return
    folders = cuda_include_dirs(bindings_major())
    own = {"cudart": folders[:1], "cccl": [folder for folder in folders if (folder / "cuda/std/version").is_file()]}

    def find_nvidia_header_directory(libname: str) -> str | None:
        fitting = own.get(libname)
        return str(fitting[0]) if fitting else find(libname)

    pathfinder.find_nvidia_header_directory = find_nvidia_header_directory


def _companions(folder: Path) -> tuple[Path, ...]:
    """Return the directories of the headers that those in `folder` include: libcu++ for cooperative groups, `crt` for
    mma.h; and of cuRAND's.

    A toolkit, and pip's packages from CUDA 13 on, have `crt` in `folder`; for CUDA 12 both are in separate packages.
    """
    if folder.parent.name == "cuda_runtime":
        root = folder.parent.parent
        return tuple(root / name / "include" for name in ("cuda_cccl", "cuda_nvcc", "curand"))
    return (folder / "cccl",)


def _header_candidates(major: int) -> list[Path]:
    """List the folders that may hold headers. pip's packages come first: they match the version of the NVRTC beside
    them."""
    layouts = [f"cu{major}/include", "cuda_runtime/include"]
    found = [root / "nvidia" / layout for root in site_packages() for layout in layouts]
    try:
        from cuda.pathfinder import find_nvidia_header_directory

        located = find_nvidia_header_directory("cudart")
        found += [Path(located)] if located else []
    except Exception:  # an older pathfinder may lack the function or these headers; the other places remain
        pass
    roots = [os.environ.get(name) for name in ("CUDA_PATH", "CUDA_HOME")] + ["/usr/local/cuda"]
    return found + [Path(root, "include") for root in roots if root]


def _cuda_major(folder: Path) -> int:
    """Return the major version that cuda.h in `folder` states; 0 if it states none."""
    try:
        text = (folder / "cuda.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    version = re.search(r"^#define\s+CUDA_VERSION\s+(\d+)", text, re.MULTILINE)
    return int(version[1]) // 1000 if version else 0
