"""The judge of the exercise in the chapter ``book/many-gpus.ipynb``: a ring of messages on ranks of the stand-in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from climb.bench.exercise import Check, Verdict
from climb.distributed import standin

#: How many ranks the ring is tried on, and floats of a message.
RANKS, FLOATS = (2, 3, 5), 4


def judge(shift: Callable[..., None]) -> Verdict:
    """Run ``shift(nccl, comm, rank, ranks, mine, theirs)`` on rings of several sizes; it must not deadlock.

    Every rank must find in ``theirs`` what the rank before it has in ``mine``.
    """
    return Verdict("shift", tuple(Check(f"{ranks} ranks", _wrong(shift, ranks)) for ranks in RANKS))


def _wrong(shift: Callable[..., None], ranks: int) -> str | None:
    def program(nccl: Any, comm: Any, rank: int) -> np.ndarray:
        mine = standin.array(np.full(FLOATS, rank, np.float32))
        theirs = standin.array(np.full(FLOATS, -1, np.float32))
        shift(nccl, comm, rank, ranks, mine, theirs)
        return standin.host(theirs)

    try:
        found = standin.on_ranks(program, ranks)
    except standin.FAULTS as fault:
        return str(fault).replace("\n", ";")
    wrong = [rank for rank, values in enumerate(found) if not (values == (rank - 1) % ranks).all()]
    return f"rank {wrong[0]} has {found[wrong[0]].tolist()}" if wrong else None
