"""The calls to CUDA of the process that measures."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from climb.bench.alignment import aligned
from climb.bench.cold import CacheCleaner
from climb.bench.libraries.kernels_of import kernels_of

#: The memory that the largest sizes of the book may need; records come from GPUs with 80 GB and more.
SMALL_BYTES = 64 << 30
#: After its check, a rung is launched again for so long, in seconds, but no more often than this.
CHECKED_SECONDS, MOST_CHECKED = 0.2, 100


class Gpu:
    """The calls to CUDA that NVBench does not make, through CuPy (and PyTorch, once a peer has imported it)."""

    @contextlib.contextmanager
    def stream(self, handle: int) -> Iterator[None]:
        """Launch on the stream of this handle, in CuPy and in PyTorch."""
        import cupy

        with contextlib.ExitStack() as stack:
            stack.enter_context(cupy.cuda.ExternalStream(handle))
            if (torch := sys.modules.get("torch")) is not None:
                stack.enter_context(torch.cuda.stream(torch.cuda.ExternalStream(handle)))
            yield

    def synchronize(self) -> None:
        """Wait for all work of the device."""
        import cupy

        cupy.cuda.Device().synchronize()

    def seconds(self, launch: Callable[[], None]) -> float:
        """Return the GPU time of one launch on the current stream, by events; an estimate, never recorded."""
        import cupy

        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        launch()
        stop.record()
        stop.synchronize()
        return cupy.cuda.get_elapsed_time(start, stop) * 1e-3

    def launches_to_check(self, seconds: float) -> int:
        """Return the number of launches to compare with the first, if each takes ``seconds``."""
        return max(1, min(MOST_CHECKED, int(CHECKED_SECONDS / max(seconds, 1e-9))))

    def kernels(self, launch: Callable[[], None]) -> tuple[str, ...]:
        """The names of the kernels of one launch, copies and fills included."""
        return kernels_of(launch)

    def cleaner(self) -> Callable[[], None]:
        """Return a function that leaves neither the kernel's data nor modified lines in the L2 cache."""
        return CacheCleaner()

    def aligned(self, array: Any) -> Any:
        """Return the array, or a copy of it, on the boundary on which all arrays are measured."""
        return aligned(array)

    def is_too_small(self, error: BaseException) -> bool:
        """Return whether an error reports full memory on a GPU with less memory than those in the records.

        On a larger GPU, full memory is our own mistake.
        """
        if type(error).__name__ != "OutOfMemoryError":  # CuPy's, and PyTorch's
            return False
        import cupy

        _, total = cupy.cuda.runtime.memGetInfo()
        return bool(total < SMALL_BYTES)

    def is_lost(self) -> bool:
        """Return whether a fault, e.g. an illegal address, has left this process without a usable GPU."""
        try:
            self.synchronize()
        except Exception:
            return True
        return False

    def release(self) -> None:
        """Free unused memory, so that the next size fits."""
        import cupy

        cupy.get_default_memory_pool().free_all_blocks()
        if (torch := sys.modules.get("torch")) is not None:
            torch.cuda.empty_cache()
