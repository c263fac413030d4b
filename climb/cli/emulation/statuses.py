"""The exit statuses of ``climb emulate``: scripts can tell a race from a slip on the command line."""

from __future__ import annotations

from climb.emulator import errors

CLEAN = 0
NOT_RUN = 1
SCHEDULE = 10

#: The status of each kind of fault: the first class that fits. `climb emulate --help` shows the same table.
_FAULTS: tuple[tuple[type[errors.EmulatorError], int], ...] = (
    (errors.UnsupportedInstruction, NOT_RUN),
    (errors.OutOfBounds, 3),
    (errors.Misaligned, 3),
    (errors.BadFree, 3),
    (errors.BadCall, 3),
    (errors.StackOverflow, 3),
    (errors.InvalidMetadata, 3),
    (errors.Race, 4),
    (errors.PendingProduct, 4),
    (errors.UnfencedProduct, 4),
    (errors.Uninitialised, 5),
    (errors.BarrierDivergence, 6),
    (errors.WarpMismatch, 6),
    (errors.BarrierMisuse, 6),
    (errors.AsyncMisuse, 6),
    (errors.EndlessLoop, 7),
    (errors.AssertionFailed, 8),
    (errors.Trap, 8),
    (errors.LaunchError, 9),
)


def status_of(error: errors.EmulatorError | type[errors.EmulatorError]) -> int:
    """Return the exit status for a fault, or for a class of faults."""
    kind = error if isinstance(error, type) else type(error)
    return next((status for base, status in _FAULTS if issubclass(kind, base)), NOT_RUN)
