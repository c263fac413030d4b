"""Which faults a launch looks for, besides those that it always finds.

"shared"         races in shared memory between barriers (within a warp: between warp synchronisations), and reads of
                 shared memory that nothing has written.
"uninitialised"  reads of global memory that nothing has written, and reads of local memory of which no byte was
                 written (the compiler may copy the gaps in a structure: those are let pass).
"global"         races in global memory, within a block and between the blocks of a launch.

The first two are on by default: they cost little. `checking(ALL)` turns on the third for the launches inside it, as
`climb.bench.checking.verify` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SHARED, UNINITIALISED, GLOBAL = "shared", "uninitialised", "global"
ALL = frozenset({SHARED, UNINITIALISED, GLOBAL})
DEFAULT = frozenset({SHARED, UNINITIALISED})
NONE: frozenset[str] = frozenset()

_current: ContextVar[frozenset[str]] = ContextVar("checks", default=DEFAULT)


def current() -> frozenset[str]:
    """The checks of a launch that names none."""
    return _current.get()


def chosen(names: Iterable[str] | None) -> frozenset[str]:
    """The checks named, or the current ones for None. Raises ValueError for a name that is none of `ALL`."""
    if names is None:
        return current()
    found = frozenset({names} if isinstance(names, str) else names)
    if unknown := found - ALL:
        raise ValueError(f"no check is called {', '.join(sorted(unknown))}; there are {', '.join(sorted(ALL))}")
    return found


@contextmanager
def checking(names: Iterable[str]) -> Iterator[None]:
    """Launches inside look for the faults named: `with checking(ALL): ...`"""
    token = _current.set(chosen(names))
    try:
        yield
    finally:
        _current.reset(token)
