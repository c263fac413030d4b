"""What is installed against what is locked: records are measured with the locks' versions, or say what differs.

``requirements.txt`` and ``requirements-gpu.txt`` are the locks. What changes machine code is the compiler; what changes
a peer is its library. An installed package without its locks, outside a checkout, has nothing to differ from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from climb import paths

LOCKS = ("requirements.txt", "requirements-gpu.txt")
#: The compiler of the book's kernels, by the name of its package in the lock.
COMPILER = "nvidia-cuda-nvrtc-cu12"
#: What else a record's numbers depend on, by the names of their packages.
MEASURED_WITH = (
    "cuda-bench",
    "cuda-cccl",
    "cupy-cuda12x",
    "cutensor-cu13",
    "nvidia-cublas",
    "nvidia-cudnn-cu13",
    "nvidia-cudnn-frontend",
    "nvidia-cufft",
    "nvidia-cutlass",
    "nvidia-npp",
    "nvmath-python",
    "torch",
    "triton",
)


def locked(root: Path = paths.ROOT) -> dict[str, str]:
    """The locked version of each package; of one with a version for each Python, the last."""
    found: dict[str, str] = {}
    for name in LOCKS:
        lock = root / name
        if lock.is_file():
            found |= dict(re.findall(r"^([a-z][\w.-]*)==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE))
    return found


def compiler() -> tuple[int, int]:
    """Major and minor version of the NVRTC that CuPy has loaded."""
    import cupy

    return cupy.cuda.nvrtc.getVersion()


def differences(nvrtc: tuple[int, int], root: Path = paths.ROOT) -> dict[str, str]:
    """What differs from the locks, in words by package; ``nvrtc`` is the version of the NVRTC that CuPy has loaded.

    A package that is not installed differs in nothing: its peers are skipped by name.
    """
    pins = locked(root)
    found = {}
    wanted = pins.get(COMPILER)
    if wanted is not None and tuple(map(int, wanted.split(".")[:2])) != tuple(nvrtc):
        found["nvrtc"] = _said(".".join(map(str, nvrtc)), wanted)
    for package in MEASURED_WITH:
        version = _installed(package)
        if version is not None and package in pins and version.partition("+")[0] != pins[package]:
            found[package] = _said(version, pins[package])
    return found


def of_record(device: Mapping[str, Any], root: Path = paths.ROOT) -> dict[str, str]:
    """What a record was measured with otherwise than locked today, in words by package.

    A record says so itself since 2026-11-22; an older one has the version of its compiler alone.
    """
    said = dict(device.get("differs", {}))
    wanted, had = locked(root).get(COMPILER), device.get("nvrtc")
    if wanted and had and had.split(".")[:2] != wanted.split(".")[:2]:
        said.setdefault("nvrtc", _said(had, wanted))
    return said


def compiler_differs(found: dict[str, str]) -> str | None:
    """Why these differences make a record of the book's kernels misleading, or None."""
    if "nvrtc" not in found:
        return None
    return (
        f"the NVRTC that would compile the kernels is {found['nvrtc']}: the record would be of other machine code than "
        "the book shows and the emulator runs. `make gpu` installs the locked one"
    )


def _said(version: str, wanted: str) -> str:
    return f"{version} (locked: {wanted})"


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
