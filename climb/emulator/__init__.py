"""Run CUDA kernels on a CPU: execute PTX from NVRTC with NumPy, and count what the hardware would have to do.

module = load(ptx_text, {"kernel.cu": source})
memory = DeviceMemory()
x = memory.allocate(4096, "x")
counters = module.kernel(name).launch((8,), (128,), [x.address.to_bytes(8, "little")], memory=memory)
print(counters)
"""

from .checks.dependent_launches import dependent_launches
from .checks.enabled import ALL as ALL_CHECKS
from .checks.enabled import checking
from .comparison import Comparison, Difference
from .counters.counters import Counters
from .counters.events import BlockTrace, Event
from .counters.lines import AccessCounters, BranchCounters, ProductCounters
from .counters.trace import Access, Trace
from .errors import (
    AssertionFailed,
    AsyncMisuse,
    AsyncRace,
    BadCall,
    BadFree,
    BarrierDivergence,
    BarrierMisuse,
    ClusterLifetime,
    Deadlock,
    EarlyAccess,
    EmulatorError,
    EndlessLoop,
    InvalidMetadata,
    KernelWarning,
    LateLoad,
    LaunchError,
    Misaligned,
    MissingProxyFence,
    OutOfBounds,
    PendingProduct,
    Race,
    StackOverflow,
    Trap,
    UnfencedProduct,
    Uninitialised,
    UnsupportedInstruction,
    WarpMismatch,
)
from .execution.kernel import Kernel
from .execution.module import Module, load
from .execution.schedules import Schedule, Schedules, scheduling
from .expectations import Expectations, expect
from .memory.device_memory import Allocation, DeviceMemory
from .running import Result, run
from .runtime.surfaces import Surface
from .runtime.textures import Texture
from .struct_argument import Struct
from .tensor_argument import Tensor

__all__ = [
    "ALL_CHECKS",
    "Access",
    "AccessCounters",
    "Allocation",
    "AssertionFailed",
    "AsyncMisuse",
    "AsyncRace",
    "BadCall",
    "BadFree",
    "BarrierDivergence",
    "BarrierMisuse",
    "BlockTrace",
    "BranchCounters",
    "ClusterLifetime",
    "Comparison",
    "Counters",
    "Deadlock",
    "DeviceMemory",
    "Difference",
    "EarlyAccess",
    "EmulatorError",
    "EndlessLoop",
    "Event",
    "Expectations",
    "InvalidMetadata",
    "Kernel",
    "KernelWarning",
    "LateLoad",
    "LaunchError",
    "Misaligned",
    "MissingProxyFence",
    "Module",
    "OutOfBounds",
    "PendingProduct",
    "ProductCounters",
    "Race",
    "Result",
    "Schedule",
    "Schedules",
    "StackOverflow",
    "Struct",
    "Surface",
    "Tensor",
    "Texture",
    "Trace",
    "Trap",
    "UnfencedProduct",
    "Uninitialised",
    "UnsupportedInstruction",
    "WarpMismatch",
    "checking",
    "dependent_launches",
    "expect",
    "load",
    "run",
    "scheduling",
]
