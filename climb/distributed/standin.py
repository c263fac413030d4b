"""Ranks in this process, wherever kernels run: what a chapter needs to try NCCL's calls out by hand.

On a machine with a GPU, ``cp`` is CuPy and NCCL wants a process for each GPU; the stand-in is there all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from climb import fake_cupy
from climb.fake_cupy.ranks import Deadlock, RankFailed, run_ranks

#: What a program on ranks may fail with.
FAULTS = (Deadlock, RankFailed)


def on_ranks(program: Callable[..., Any], ranks: int = 2) -> list[Any]:
    """Call ``program(nccl, comm, rank)`` on each rank, with its end of a communicator; return their results.

    Raises :class:`~climb.fake_cupy.ranks.Deadlock`, which names what each rank waits in, and RankFailed.

    >>> on_ranks(lambda nccl, comm, rank: comm.size(), 3)
    [3, 3, 3]
    """
    __tracebackhide__ = True
    nccl = fake_cupy.cuda.nccl
    identity = nccl.get_unique_id()

    def one(rank: int) -> Any:
        return program(nccl, nccl.NcclCommunicator(ranks, identity, rank), rank)

    return run_ranks(one, ranks)


def array(values: np.ndarray) -> Any:
    """A device array of the stand-in, on the device of the rank that calls."""
    return fake_cupy.asarray(values)


def host(array: Any) -> np.ndarray:
    """The values of such an array."""
    return fake_cupy.asnumpy(array)
