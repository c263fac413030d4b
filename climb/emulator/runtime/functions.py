"""All functions that generated code can call, by the names under which it calls them."""

from __future__ import annotations

from collections.abc import Callable

from ..checks import hooks
from ..counters import address_patterns
from . import (
    async_copies,
    atomics,
    bulk_copies,
    call_frames,
    cluster_addresses,
    cluster_barriers,
    cluster_memory,
    generic_addresses,
    global_memory,
    heap,
    late_loads,
    local_memory,
    mbarrier,
    remote_stores,
    shared_memory,
    surfaces,
    system_calls,
    tensor_copies,
    tensor_cores,
    tensor_map_fields,
    textures,
    warp_operations,
    warpgroups,
)

FUNCTIONS: dict[str, Callable] = {
    **global_memory.RUNTIME, **shared_memory.RUNTIME, **local_memory.RUNTIME, **generic_addresses.RUNTIME,
    **call_frames.RUNTIME, **heap.RUNTIME, **atomics.RUNTIME, **async_copies.RUNTIME, **mbarrier.RUNTIME,
    **hooks.RUNTIME, **address_patterns.RUNTIME,
    **bulk_copies.RUNTIME, **tensor_copies.RUNTIME, **cluster_addresses.RUNTIME,
    **cluster_barriers.RUNTIME, **cluster_memory.RUNTIME, **remote_stores.RUNTIME, **warpgroups.RUNTIME,
    **tensor_map_fields.RUNTIME, **warp_operations.RUNTIME, **tensor_cores.RUNTIME, **textures.RUNTIME,
    **surfaces.RUNTIME, **system_calls.RUNTIME, **late_loads.RUNTIME,
}  # fmt: skip
