"""Run CUDA kernels on a CPU: PTX, as NVRTC makes it, executed with NumPy, and counted as the hardware would have to
work.

module = load(ptx_text, {"kernel.cu": source})
memory = DeviceMemory()
x = memory.allocate(4096, "x")
counters = module.kernel(name).launch((8,), (128,), [x.address.to_bytes(8, "little")], memory=memory)
print(counters)
"""

from .checks import ALL as ALL_CHECKS
from .checks import checking
from .counters import AccessCounters, BranchCounters, Counters
from .errors import (
    AssertionFailed,
    BarrierDivergence,
    EmulatorError,
    EndlessLoop,
    LaunchError,
    Misaligned,
    OutOfBounds,
    Race,
    Trap,
    Uninitialised,
    UnsupportedInstruction,
    WarpMismatch,
)
from .memory import Allocation, DeviceMemory
from .module import Kernel, Module, load
from .running import Result, run
from .textures import Texture
from .trace import Access, Trace

__all__ = [
    "ALL_CHECKS",
    "Access",
    "AccessCounters",
    "Allocation",
    "AssertionFailed",
    "BarrierDivergence",
    "BranchCounters",
    "Counters",
    "DeviceMemory",
    "EmulatorError",
    "EndlessLoop",
    "Kernel",
    "LaunchError",
    "Misaligned",
    "Module",
    "OutOfBounds",
    "Race",
    "Result",
    "Texture",
    "Trace",
    "Trap",
    "Uninitialised",
    "UnsupportedInstruction",
    "WarpMismatch",
    "checking",
    "load",
    "run",
]
