"""Common code of kernels with a few accesses, and a check whether they race: for tests of the memory model."""

from __future__ import annotations

import numpy as np
from harness import Device

from climb.emulator import ALL_CHECKS, Race, checking

#: What the kernels begin with: accesses and fences of a kind (`how`), as PTX names it.
HEAD = r"""
#define STORE(how, p, v) asm volatile("st." how ".u32 [%0], %1;" :: "l"(p), "r"(v) : "memory")
#define LOAD(how, v, p) asm volatile("ld." how ".u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory")
#define FENCE(how) asm volatile("fence." how ";" ::: "memory")
"""
#: x and y are data, f and g flags, m[...] more words, all 0 at first.
PARAMETERS = "(unsigned* x, unsigned* y, unsigned* f, unsigned* g, unsigned* m, int where)"


def races(device: Device, name: str, grid: int, block: int, *args: object) -> bool:
    """Return whether a launch of a kernel with PARAMETERS has a race."""
    words = [np.zeros(1, np.uint32) for _ in range(4)] + [np.zeros(8, np.uint32)]
    try:
        with checking(ALL_CHECKS):
            device.launch(name, grid, block, *words, *args)
    except Race:
        return True
    return False
