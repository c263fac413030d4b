"""The word of an mbarrier: its fields, and their changes by arrivals and transaction bytes. See `mbarrier`."""

from __future__ import annotations

import numpy as np

LIMIT = (1 << 20) - 1  # most arrivals, and most transaction bytes on either side of zero
_COUNT = np.uint64(LIMIT)
_TX_BITS = 21
_TX = np.uint64((1 << _TX_BITS) - 1)
_EXPECTED, _TX_SHIFT, _VALID, _PHASE = (np.uint64(bit) for bit in (20, 40, 61, 63))
_ONE = np.uint64(1)


def fresh(count: np.ndarray) -> np.ndarray:
    """Return the word of an mbarrier in its first phase, of `count` (uint64) arrivals."""
    return _ONE << _VALID | count << _EXPECTED | count


def pending(word: np.ndarray) -> np.ndarray:
    """Return the arrivals that the phase still waits for, int64."""
    return (word.view(np.uint64) & _COUNT).astype(np.int64)


def transactions(word: np.ndarray) -> np.ndarray:
    """Return the transaction bytes that the phase still waits for, int64; negative if more have come than were
    expected."""
    value = (word.view(np.uint64) >> _TX_SHIFT & _TX).astype(np.int64)
    return value - (value >> _TX_BITS - 1 << _TX_BITS)


def phase(word: np.ndarray) -> np.ndarray:
    """Return the parity of the phase, int64."""
    return (word.view(np.uint64) >> _PHASE).astype(np.int64)


def advance(old: np.ndarray, count: np.ndarray, tx: np.ndarray, drop: bool) -> np.ndarray:
    """Return the word after `count` arrivals and `tx` more bytes to wait for (uint64, modulo 2^21).

    The last of both begins the next phase. With `drop`, later phases have `count` fewer arrivals.
    """
    expected = (old >> _EXPECTED & _COUNT) - (count if drop else np.uint64(0))
    left = (old & _COUNT) - count
    nbytes = (old >> _TX_SHIFT) + tx & _TX
    over = (left == 0) & (nbytes == 0)
    parity = old >> _PHASE ^ over
    return (
        parity << _PHASE | _ONE << _VALID | nbytes << _TX_SHIFT | expected << _EXPECTED | np.where(over, expected, left)
    )


def describe(word: int) -> str:
    """Describe what the phase still waits for, such as "1 arrival and 4096 bytes"."""
    value = np.array([word], np.uint64)
    arrivals, nbytes = int(pending(value)[0]), int(transactions(value)[0])
    parts = [f"{arrivals} arrival{'s' * (arrivals != 1)}"] if arrivals else []
    if nbytes > 0:
        parts.append(f"{nbytes} bytes")
    elif nbytes < 0:
        parts.append(f"an expect_tx of {-nbytes} bytes that have come already")
    return " and ".join(parts) or "nothing"
