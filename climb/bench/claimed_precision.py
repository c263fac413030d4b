"""Check that a peer computed in the precision it claims, judging by the names of its kernels.

A library may take a request for emulated float32 and answer with its float32 kernels. cuBLAS accepts BF16x9 on every
GPU, but implements it "on a subset of architectures" (NVIDIA's CUDALibrarySamples, README of
``cuBLAS/Emulation/bf16x9_gemmEx``, which points to
https://docs.nvidia.com/cuda/cublas/#floating-point-emulation-support-overview): on compute capabilities 10.0 and 10.3,
says PyTorch's pull request 181849. Elsewhere its heuristics propose kernels of FMAs, and their time must not be
recorded under the other precision. The kernel that ran decides, not a list of GPUs, which would go out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

#: Precisions that assemble float32 from products of tensor cores.
EMULATED = ("BF16x9", "3xTF32")
#: The names that cuBLAS's and CUTLASS's kernels use for the FMA pipes, which compute float32 itself.
_FMA = re.compile(r"ffma|simt", re.IGNORECASE)


def contradiction(precision: str, kernels: Iterable[str]) -> str | None:
    """Explain why a peer did not compute in this precision, from its kernels' names; None if they do not contradict
    it."""
    if precision not in EMULATED:
        return None
    found = next((name for name in kernels if _FMA.search(name)), None)
    return found and f"asked for {precision}, it ran a float32 kernel: {found}"


def of_library(library: Mapping[str, str] | None) -> str | None:
    """Do the same for a peer's description as a record holds it."""
    library = library or {}
    return contradiction(library.get("precision", ""), library.get("kernels", "").split("; "))
