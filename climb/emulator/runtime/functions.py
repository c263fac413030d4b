"""All functions that generated code can call, by the names under which it calls them."""

from __future__ import annotations

from collections.abc import Callable

from ..checks import hooks
from . import (
    async_copies,
    atomics,
    call_frames,
    generic_addresses,
    global_memory,
    heap,
    local_memory,
    mbarrier,
    shared_memory,
    system_calls,
    tensor_cores,
    textures,
    warp_operations,
)

FUNCTIONS: dict[str, Callable] = {
    **global_memory.RUNTIME, **shared_memory.RUNTIME, **local_memory.RUNTIME, **generic_addresses.RUNTIME,
    **atomics.RUNTIME, **call_frames.RUNTIME, **heap.RUNTIME, **async_copies.RUNTIME,
    **mbarrier.RUNTIME, **hooks.RUNTIME, **warp_operations.RUNTIME, **tensor_cores.RUNTIME,
    **textures.RUNTIME, **system_calls.RUNTIME,
}  # fmt: skip
