"""st.async and red.async: lanes store to, or reduce in, shared memory of a block of their cluster in the background.

Each lane completes the bytes that it stores on an mbarrier of that block. All lanes that use one mbarrier form one
operation; it takes effect as late as possible, like other bulk operations (`simt.asynchronous`).
"""

from __future__ import annotations

import numpy as np

from ..errors import AsyncMisuse
from ..simt.async_access import AsyncAccess
from ..simt.asynchronous import Operation
from ..simt.groups import Group
from ..simt.lanes import take
from ..simt.site import Site
from . import bulk, mbarrier
from .accesses import pack, subgroup
from .atomics import apply_by_lane
from .bulk import faults
from .cluster_addresses import resolve
from .cluster_memory import check_and_count
from .mbarrier_words import phase


def store(
    group: Group, site: Site, barrier: Site, address: np.ndarray, value: np.ndarray | tuple, mbar: np.ndarray, how: str
) -> None:
    """Store `value`, or reduce it by the operation `how`, at `address`, and complete on the mbarrier `mbar`.

    Raises AsyncMisuse if the two are not in one block, and the errors of a store and of an arrival.
    """
    shape = group.lanes.shape
    home, local = resolve(group, site, address)
    words = np.broadcast_to(mbarrier.words_of(group, barrier, mbar), shape)
    apart = words // (group.batch.shared.shape[1] >> 3) != home
    if apart.any():
        where = faults.place_of(group, site, np.broadcast_to(apart, shape))
        raise AsyncMisuse("an asynchronous store whose target and mbarrier are in different blocks", where)
    index = np.broadcast_to(check_and_count(group, site, home, local), shape)
    data = np.broadcast_to(pack(value, site), shape)
    home, local = np.broadcast_to(home, shape), np.broadcast_to(local, shape)
    for word in np.unique(words).tolist():
        part, chosen = subgroup(group, words == word)
        cut = (np.broadcast_to(take(each, chosen, shape), part.lanes.shape) for each in (index, data, home, local))
        _issue(part, site, word, how, *cut)


def _issue(
    group: Group, site: Site, word: int, how: str, index: np.ndarray, data: np.ndarray, home: np.ndarray,
    local: np.ndarray,
) -> None:  # fmt: skip
    batch, count = group.batch, group.lanes.count
    site_of_part = site.uncounted
    number = np.zeros(count, np.int64)
    where = None if (home == group.lanes.block).all() else home
    access = AsyncAccess(
        site_of_part, group.lanes, local - site.offset, number, None if how else data, where, why=bulk.open_phase
    )

    def deliver(operation: Operation) -> None:
        if how:
            apply_by_lane(group, site_of_part, batch.shared_view(site.element), index, how, data, None, False)
        else:
            batch.shared_view(site.container)[index] = data
        bulk.ended(group, operation, "store")
        mbarrier.complete(group, site, word, count * site.width, issued)

    issued = int(phase(batch.asynchronous.values[word : word + 1])[0])
    operation = Operation(site, group.lanes, lambda _: None, deliver, {word: issued}, accesses=(access,), fetched=True)
    bulk.issue(group, operation)


RUNTIME = {"remote_store": store}
