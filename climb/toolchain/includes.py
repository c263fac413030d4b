"""Which files a source includes, and where CUDA's own headers are."""

from __future__ import annotations

import functools
import os
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def included_files(source: str, include_dirs: Sequence[str | Path]) -> dict[str, str]:
    """The texts of the files that `source` includes from `include_dirs`, directly or not, by name.

    Conditions are not evaluated, so this is a superset of what the compiler reads. A file that is in none of
    the directories (a header of CUDA) is left out.
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
                    found[name] = path.read_text(encoding="utf-8")
                    pending.append(found[name])
                    break
    return found


@functools.cache
def cuda_include_dirs(major: int) -> tuple[Path, ...]:
    """The directories of CUDA's headers that fit NVRTC `major`; empty if there are none on this machine."""
    candidates = [
        folder
        for folder in _header_candidates(major)
        if (folder / "cuda_runtime.h").is_file() or (folder / "cuda_runtime_api.h").is_file()
    ]
    fitting = [folder for folder in candidates if _cuda_major(folder) == major]
    chosen = (fitting or candidates)[:1]
    return tuple(path for folder in chosen for path in (folder, *_companions(folder)) if path.is_dir())


def _companions(folder: Path) -> tuple[Path, ...]:
    """Where lies what CUDA's headers include besides: libcu++ for cooperative groups, `crt` for mma.h.

    A toolkit, and pip's packages from CUDA 13 on, have `crt` beside the headers; for CUDA 12 pip has packages of them.
    """
    if folder.parent.name == "cuda_runtime":
        root = folder.parent.parent
        return root / "cuda_cccl" / "include", root / "cuda_nvcc" / "include"
    return (folder / "cccl",)


def _header_candidates(major: int) -> list[Path]:
    """Where headers can be, pip's packages first: they are of the same version as the NVRTC beside them."""
    layouts = [f"cu{major}/include", "cuda_runtime/include"]
    found = [root / "nvidia" / layout for root in site_packages() for layout in layouts]
    try:
        from cuda.pathfinder import find_nvidia_header_directory

        located = find_nvidia_header_directory("cudart")
        found += [Path(located)] if located else []
    except Exception:  # an older pathfinder, or one that does not know these headers: the other places remain
        pass
    roots = [os.environ.get(name) for name in ("CUDA_PATH", "CUDA_HOME")] + ["/usr/local/cuda"]
    return found + [Path(root, "include") for root in roots if root]


def site_packages() -> list[Path]:
    """The folders in which the namespace package `nvidia` lives, without importing it."""
    try:
        import nvidia

        return [Path(path).parent for path in nvidia.__path__]
    except ImportError:
        return [Path(sysconfig.get_paths()["purelib"])]


def _cuda_major(folder: Path) -> int:
    """The major version that cuda.h in `folder` states; 0 if it does not say."""
    try:
        text = (folder / "cuda.h").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    version = re.search(r"^#define\s+CUDA_VERSION\s+(\d+)", text, re.MULTILINE)
    return int(version[1]) // 1000 if version else 0
