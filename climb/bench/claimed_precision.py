"""Whether a peer ran what its precision names, as the names of its kernels tell.

A library may take a request for emulated float32 and answer with its float32 kernels. cuBLAS accepts BF16x9 on every
GPU, but implements it "on a subset of architectures" (NVIDIA's CUDALibrarySamples, README of
``cuBLAS/Emulation/bf16x9_gemmEx``, which points to
https://docs.nvidia.com/cuda/cublas/#floating-point-emulation-support-overview): on compute capabilities 10.0 and 10.3,
says PyTorch's pull request 181849. Elsewhere its heuristics propose kernels of FMAs, and their time must not stand
under the other name. What decides is the kernel that ran, not a list of GPUs, which would age.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

#: Precisions that put float32 together from products of tensor cores.
EMULATED = ("BF16x9", "3xTF32")
#: What the names of cuBLAS's and CUTLASS's kernels call the FMA pipes, which compute float32 itself.
_FMA = re.compile(r"ffma|simt", re.IGNORECASE)


def contradiction(precision: str, kernels: Iterable[str]) -> str | None:
    """Why a peer of this precision did not compute in it, by the names of its kernels; None where they do not tell."""
    if precision not in EMULATED:
        return None
    found = next((name for name in kernels if _FMA.search(name)), None)
    return found and f"asked for {precision}, it ran a float32 kernel: {found}"


def of_library(library: Mapping[str, str] | None) -> str | None:
    """The same of the description of a peer, as a record holds it."""
    library = library or {}
    return contradiction(library.get("precision", ""), library.get("kernels", "").split("; "))
