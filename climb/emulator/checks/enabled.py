"""The optional checks that a launch makes, besides those that are always on.

"shared"         races in shared memory between barriers (within a warp: between warp synchronisations), and reads of
                 shared memory that nothing has written.
"uninitialised"  reads of global memory that nothing has written, and reads of local memory without a single written
                 byte (partly written words pass, because the compiler may copy the padding of a structure).
"global"         races in global memory, within a block and between the blocks of a launch.
"launches"       accesses of a dependent launch that conflict with those of a launch before it that may still run.
"masks"          shuffles, votes and reductions of a warp whose mask names a lane that has left the kernel. CUDA lets
                 the other lanes go on; without this check a warning tells of it.

The first two and "launches" cost little and are on by default. `climb.emulator.run` and `climb emulate` also check
"global": they are used to find out whether a kernel is right, so they must report every race. `checking(ALL)` turns on
all of them for the launches inside it, as `climb.bench.checking.verify` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SHARED, UNINITIALISED, GLOBAL, LAUNCHES, MASKS = "shared", "uninitialised", "global", "launches", "masks"
ALL = frozenset({SHARED, UNINITIALISED, GLOBAL, LAUNCHES, MASKS})
DEFAULT = frozenset({SHARED, UNINITIALISED, LAUNCHES})
OF_A_RUN = DEFAULT | {GLOBAL}
NONE: frozenset[str] = frozenset()

_current: ContextVar[frozenset[str] | None] = ContextVar("checks", default=None)


def current(otherwise: frozenset[str] = DEFAULT) -> frozenset[str]:
    """Return the checks that apply to launches that name none; `otherwise` outside of `checking`."""
    found = _current.get()
    return otherwise if found is None else found


def chosen(names: Iterable[str] | None) -> frozenset[str]:
    """Return the checks named, or the current ones for None. Raises ValueError for a name that is not in `ALL`."""
    if names is None:
        return current()
    found = frozenset({names} if isinstance(names, str) else names)
    if unknown := found - ALL:
        raise ValueError(f"unknown check {', '.join(sorted(unknown))}; the checks are {', '.join(sorted(ALL))}")
    return found


@contextmanager
def checking(names: Iterable[str]) -> Iterator[None]:
    """Make the named checks in the launches inside the `with` block: `with checking(ALL): ...`"""
    token = _current.set(chosen(names))
    try:
        yield
    finally:
        _current.reset(token)
