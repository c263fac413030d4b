"""The bytes that collective operations send: the one rule by which the stand-in counts and plans are drawn."""

from __future__ import annotations


def ring_bytes(kind: str, ranks: int, nbytes: int, last: bool = False) -> int:
    """Return the bytes that leave a rank in a collective operation on ``nbytes`` by the ring algorithm.

    ``nbytes`` are those of NCCL's count: of an all-gather what each rank gives, of a reduce-scatter what each rank
    gets. ``last`` marks the last rank in the ring of a broadcast, which passes the data on to no other rank. The
    factors are those by which NCCL's tests turn times into "bus bandwidth" (nccl-tests, doc/PERFORMANCE.md).
    """
    if kind == "allReduce":
        return 2 * (ranks - 1) * nbytes // ranks
    if kind in ("reduceScatter", "allGather"):
        return (ranks - 1) * nbytes
    return 0 if last or ranks == 1 else nbytes
