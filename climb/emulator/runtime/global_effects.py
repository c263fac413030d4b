"""Report the global memory accesses of bulk operations to the checks, as accesses of the thread that issues them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..checks import hooks
from ..memory.device_memory import Allocation
from ..simt.groups import Group
from ..simt.site import Site
from .bulk import spread

#: The type and number of the elements of an access, by its bytes.
ELEMENTS = {1: ("uint8", 1), 2: ("uint16", 1), 4: ("uint32", 1), 8: ("uint64", 1), 16: ("uint32", 4)}


def _accesses(group: Group, site: Site, address: np.ndarray, width: int, action: str) -> tuple[Group, Site]:
    element, count = ELEMENTS[width]
    part = replace(site, element=np.dtype(element), count=count, offset=0, action=action, part=True)
    return group if group.lanes.count == address.size else spread(group, address.size), part


def read_global(group: Group, site: Site, held: Allocation, address: np.ndarray, width: int = 16) -> None:
    """Report a read of `width` bytes at each address, by the one lane of a group, or by a lane each. Raises
    Uninitialised and Race."""
    batch = group.batch
    watched = batch.clock is not None or batch.dependence is not None
    if address.size and (watched or (held.written is not None and batch.check_uninitialised)):
        reader, part = _accesses(group, site, address, width, "load")
        hooks.load(reader, part, held, address)


def write_global(
    group: Group, site: Site, held: Allocation, address: np.ndarray, reduces: bool, width: int = 16
) -> None:
    """Report a write, or an atomic update, of `width` bytes at each address. Raises Race; the caller stores the
    values."""
    if not address.size:
        return
    writer, part = _accesses(group, site, address, width, "atomic" if reduces else "store")
    if reduces:
        hooks.atomic(writer, part, held, address)
    else:
        hooks.overwrite(writer, part, held, address)
