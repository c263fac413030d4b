"""What can go wrong in a kernel, said so that the reader finds the place and the reason."""

from __future__ import annotations

from dataclasses import dataclass

from .ptx.model import Location


@dataclass
class Where:
    """The place of an error:

    `block` and `thread` are (x, y, z) of the first lane, `lanes` how many lanes are concerned.
    """

    kernel: str
    file: str = ""
    line: int = 0
    text: str = ""
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    lanes: int = 0


class EmulatorError(Exception):
    """Base of all errors that the emulator raises about a kernel. `what` says what happened, `hint` what to look at."""

    hint = ""

    def __init__(self, what: str, where: Where, **details: object) -> None:
        self.what, self.where = what, where
        self.details = details
        for name, value in details.items():
            setattr(self, name, value)
        super().__init__(self._message())

    @classmethod
    def at(cls, kernel: str, location: Location, sources: dict[str, list[str]], what: str) -> EmulatorError:
        """An error about a place in the program, not about lanes."""
        lines = sources.get(location.file, ())
        text = lines[location.line - 1].strip() if 0 < location.line <= len(lines) else ""
        return cls(what, Where(kernel, location.file, location.line, text))

    def _message(self) -> str:
        where = self.where
        name = where.file.rsplit("/", 1)[-1]
        place = f", {name}:{where.line}" if where.line else ""
        out = [f"{self.what}", f"  kernel {where.kernel}{place}" + (f": {where.text}" if where.text else "")]
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
    """An address that is no multiple of the width of the access. Details: `address`, `width`."""

    hint = "vector types need addresses that are multiples of their size: the pointer's offset and the row pitch"


class Race(EmulatorError):
    """Two accesses to one place of which at least one writes, and nothing orders them.

    Details: `space`, `address`, `allocation` (global memory), `name` and `offset` of the place, `other`: where, and by
    which thread, the earlier access was.
    """

    hint = "what one thread writes and another reads: a barrier must lie between, or the sum must be an atomic"


class Uninitialised(EmulatorError):
    """A read of memory that nothing has written. Details: `space`, `address`, `allocation`, `name`, `offset`."""

    hint = "which thread should have written it: the loop that loads the tile and its halo, or the array's first fill"


class BarrierDivergence(EmulatorError):
    """Some threads of a block wait at a barrier that others will not reach."""

    hint = "a barrier inside a condition or a loop, or a return before it, that not all threads of the block take alike"


class WarpMismatch(EmulatorError):
    """Lanes of a warp that should act together do not:

    A mask names lanes that are elsewhere or gone, or leaves out its own.
    """

    hint = "the mask of the _sync function against the lanes that can reach it, and returns before it"


class EndlessLoop(EmulatorError):
    """The step budget is spent."""

    hint = "the loop's condition and step, and any wait for a value that no thread will write"


class AssertionFailed(EmulatorError):
    """An assertion of the kernel does not hold."""

    hint = "which value makes the expression false: printf shows it"


class Trap(EmulatorError):
    """The kernel stops itself."""

    hint = "the condition under which the kernel stops itself"


class UnsupportedInstruction(EmulatorError):
    """An instruction that the emulator does not know; raised when the kernel is translated, never while it runs."""


class LaunchError(EmulatorError):
    """The launch itself is wrong: grid, block, arguments or shared memory."""
