"""The places in memory that have changed, to tell whether a kernel that runs for a long time still makes progress."""

from __future__ import annotations

import numpy as np


class ChangedPlaces:
    """The elements of views of memory that have changed since the object was made. `grown`: whether there are any that
    `settle` has not seen."""

    def __init__(self) -> None:
        self._changed: dict[tuple[int, int], np.ndarray] = {}  # by address on the host and bytes of an element
        self.grown = False

    def note(self, data: np.ndarray, index: np.ndarray) -> None:
        """Note that elements of a view change."""
        view = data.__array_interface__["data"][0], data.itemsize
        if view not in self._changed:
            self._changed[view] = np.zeros(data.shape[0], np.bool_)
        changed = self._changed[view]
        if not (self.grown or changed[index].all()):
            self.grown = True
        changed[index] = True

    def settle(self) -> bool:
        """Return whether, since the last call, places have changed that had not changed before it."""
        grown, self.grown = self.grown, False
        return grown
