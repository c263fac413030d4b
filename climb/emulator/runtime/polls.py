"""Waits at mbarriers that can never end."""

from __future__ import annotations

import numpy as np

from ..checks import faults
from ..errors import Deadlock
from ..simt.groups import Group
from ..simt.site import Site
from .mbarrier_words import describe, pending, phase, transactions

#: The number of failed waits, without any arrival or copy in between, before checking whether progress is still
#: possible.
PATIENCE = 1000


def waited_in_vain(group: Group, site: Site, words: np.ndarray) -> None:
    """Count a wait that has failed. `words`: the mbarriers that the lanes wait for.

    Raises Deadlock if nothing has happened at any mbarrier for a long time, and every thread that has not left the
    kernel is waiting: for an mbarrier, or at a barrier.
    """
    batch, state = group.batch, group.batch.asynchronous
    if state.polling is None:
        state.polling = np.zeros(batch.blocks * batch.threads, np.bool_)
    state.polling[group.lanes.linear()] = True
    state.polls += 1
    if state.polls < PATIENCE:
        return
    waiting = state.polling.copy()
    for parked in batch.parked.values():
        waiting[parked.lanes.linear()] = True
    if not waiting[batch.alive().ravel()].all():
        state.progress()
        return
    word = int(words.ravel()[0])
    value = state.values[word : word + 1]
    made = state.initialised[word]
    rows = batch.shared.shape[1] >> 3
    block, address = word // rows, word % rows * 8
    where = f"{made.location.file.rsplit('/', 1)[-1]}:{made.location.line}"
    count = int(np.count_nonzero(words == word))
    raise Deadlock(
        f"deadlock: {count} thread{'s wait' if count > 1 else ' waits'} for the mbarrier initialised at {where}, whose "
        f"phase of parity {int(phase(value)[0])} misses {describe(int(value[0]))}",
        faults.place_of(group, site, words == word),
        steps=state.polls,
        block=batch.block_index(block),
        address=address,
        arrivals=int(pending(value)[0]),
        nbytes=int(transactions(value)[0]),
    )
