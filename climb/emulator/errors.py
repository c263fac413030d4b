"""The errors that the emulator raises about a kernel. Each names the place and suggests where to look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from climb.toolchain.names import demangled

from .ptx.model import Location

if TYPE_CHECKING:
    from .counters.counters import Counters


@dataclass
class Where:
    """The place of an error. `block` and `thread`: (x, y, z) of the first of the `lanes` affected lanes."""

    kernel: str
    file: str = ""
    line: int = 0
    text: str = ""
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    lanes: int = 0


class KernelWarning(UserWarning):
    """A warning about code that CUDA allows but that is probably a mistake."""


class EmulatorError(Exception):
    """The base of all errors about a kernel. `what` says what happened, `where` gives the place, `hint` suggests where
    to look.

    The details that subclasses list are attributes.
    """

    hint = ""
    #: The `Counters` of the launch up to the fault; None if nothing ran.
    counters: Counters | None = None

    def __init__(self, what: str, where: Where, **details: object) -> None:
        self.what, self.where = what, where
        self.details = details
        for name, value in details.items():
            setattr(self, name, value)
        super().__init__(self._message())

    @classmethod
    def at(cls, kernel: str, location: Location, sources: dict[str, list[str]], what: str) -> EmulatorError:
        """Make an error about a place in the program rather than about lanes. `sources`: the lines of each file."""
        lines = sources.get(location.file, ())
        text = lines[location.line - 1].strip() if 0 < location.line <= len(lines) else ""
        return cls(what, Where(kernel, location.file, location.line, text))

    def _message(self) -> str:
        where = self.where
        name = where.file.rsplit("/", 1)[-1]
        place = f", {name}:{where.line}" if where.line else ""
        out = [f"{self.what}", f"  kernel {demangled(where.kernel)}{place}" + (f": {where.text}" if where.text else "")]
        if where.block is not None:
            block, thread = (",".join(map(str, each)) for each in (where.block, where.thread))
            more = f", the first of {where.lanes} threads" if where.lanes > 1 else ""
            out.append(f"  block ({block}) thread ({thread}){more}")
        if self.hint:
            out.append(f"  look at: {self.hint}")
        return "\n".join(out)


class OutOfBounds(EmulatorError):
    """An access outside every allocation. Details: `address`, `allocation` (nearest, or None), `distance` in bytes."""

    hint = "the index expression at its largest and smallest thread, and the guard against the array's size"


class Misaligned(EmulatorError):
    """An address that is not a multiple of the access width. Details: `address`, `width`."""

    hint = "vector types need addresses that are multiples of their size: the pointer's offset and the row pitch"


class Race(EmulatorError):
    """Two unordered accesses to one place, at least one of them a write.

    Details: `space`, `address`, `allocation` (in global memory), the `name` of the variable and the `offset` in it, and
    `other`: place and thread of the earlier access.
    """

    hint = "what one thread writes and another reads: a barrier must lie between, or the sum must be an atomic"


class AsyncRace(Race):
    """An access that conflicts with an asynchronous operation in flight. Details as for `Race`; `other` issued it."""

    hint = "the wait for the asynchronous operation: which groups it leaves open, and a barrier after it for the others"


class LateLoad(Race):
    """A bulk copy that may overwrite shared memory before an earlier load, still on its way, has read it.

    Details as for `Race`; `other` is the load.
    """

    hint = (
        "use the loaded values (convert or store them) before the memory is handed back, or put a fence.proxy.async "
        "between the loads and the arrival at the barrier"
    )


class EarlyAccess(Race):
    """An access of a dependent launch that conflicts with a launch before it, which may not have ended.

    Details as for `Race`; `other` is the place in the launch before.
    """

    hint = (
        "griddepcontrol.wait (cudaGridDependencySynchronize) before the first access to what the launch before uses, "
        "in each thread or in one that the others then wait for; and no const __restrict__ on a pointer to it, nor "
        "on the parameter of an inlined function"
    )


class ClusterLifetime(Race):
    """An access to the shared memory of a block of the cluster that may not have begun, or may have left the kernel.

    Details as for `Race`; `other` is where that block begins or ends.
    """

    hint = (
        "barriers of the cluster (cluster.sync(), or barrier.cluster.arrive and .wait): one between the begin of all "
        "blocks and the first access to the shared memory of another, one between the last access and their end"
    )


class Uninitialised(EmulatorError):
    """A read of memory that nothing has written. Details as for `Race`, without `other`."""

    hint = "which thread should have written it: the loop that loads the tile and its halo, or the array's first fill"


class PendingProduct(EmulatorError):
    """A use of registers that an asynchronous matrix product, still in flight, reads or writes. Details: `other`, the
    place of the product."""

    hint = "wgmma.commit_group after the products, and a wgmma.wait_group that covers their group before the use"


class UnfencedProduct(EmulatorError):
    """An asynchronous matrix product whose registers were written without a wgmma.fence in between.

    Details: `other`, the place of the write; None if no fence precedes the first product.
    """

    hint = "wgmma.fence after the last write to the accumulators or the registers of a, before the first product"


class InvalidMetadata(EmulatorError):
    """Sparsity metadata that name an element of A twice, or in the wrong order. Details: `value`, the four bits, and
    the `row` of the warp's 16 and the `nibble` in it that they are for."""

    hint = "the layout of the metadata for this shape and type, and the sparsity selector: which lanes hold them"


class BarrierDivergence(EmulatorError):
    """Some threads of a block wait at a barrier that others will not reach."""

    hint = "a barrier inside a condition or a loop, or a return before it, that not all threads of the block take alike"


class WarpMismatch(EmulatorError):
    """Lanes of a warp that should act together do not.

    A mask names lanes that have left or are elsewhere, or it does not name the lane itself; or some threads of a
    warpgroup are missing.
    """

    hint = "the mask of the _sync function against the lanes that can reach it, and returns before it"


class EndlessLoop(EmulatorError):
    """Threads can never leave a loop, or the batch has run more than `max_steps` basic blocks."""

    hint = "the loop's condition and step, and any wait for a value that no thread will write"


class StackOverflow(EmulatorError):
    """A thread's calls need more stack than the device gives it. Details: `needed` and `limit` in bytes."""

    hint = "the depth of the recursion; cudaDeviceSetLimit(cudaLimitStackSize, ...) gives each thread more"


class BadCall(EmulatorError):
    """A call through a pointer to no function, or to one with another signature. Details: `address`."""

    hint = "where the pointer was set; a pointer from the host must come from a __device__ variable of this module"


class BadFree(EmulatorError):
    """A free of something that is not a live block of the device heap. Details: `address`."""

    hint = "who owns the pointer: each malloc or new needs exactly one free or delete, by one thread"


class Deadlock(EndlessLoop):
    """Threads wait for an mbarrier whose phase can never complete.

    Details: `address` of the mbarrier, the `arrivals` and the transaction `nbytes` that its phase still waits for.
    """

    hint = "the count of mbarrier.init, the bytes of expect_tx against those of the copies, and the parity of the wait"


class BarrierMisuse(EmulatorError):
    """An mbarrier that is not initialised, initialised twice, overwritten, or counted past its limits."""

    hint = (
        "who initialises the mbarrier and for how many arrivals, what else is stored at its address, which wait is "
        "missing before an arrival, and how many bytes its copies carry"
    )


class AsyncMisuse(EmulatorError):
    """An asynchronous operation that hardware does not carry out as written: alignment, size, a copy without a wait."""

    hint = "the rules of the instruction in the PTX ISA: multiples of 16 bytes, and a wait before the block leaves"


class MissingProxyFence(Race):
    """The asynchronous proxy reads data written by ordinary stores, without a proxy fence in between."""

    hint = "fence.proxy.async in each thread that has written, before the barrier that lets the copy start"


class AssertionFailed(EmulatorError):
    """An assertion of the kernel does not hold."""

    hint = "which value makes the expression false: printf shows it"


class Trap(EmulatorError):
    """The kernel stops itself."""

    hint = "the condition under which the kernel stops itself"


class UnsupportedInstruction(EmulatorError):
    """An instruction that the emulator does not support; usually raised when the kernel is translated."""


class LaunchError(EmulatorError):
    """The launch itself is not possible: its grid, block, arguments or shared memory."""
