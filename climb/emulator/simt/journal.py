"""A journal of writes and reads since a moment, to tell whether the writes can matter to the readers."""

from __future__ import annotations

import numpy as np

MOST = 4096  # places that are remembered; a longer journal proves nothing

_View = tuple[int, int]  # the address on the host of a view of memory, and the bytes of an element
_Place = tuple[_View, int]  # and the index of an element


class Journal:
    """The elements of memory that changed since the journal was cleared, with their old values, and those that were
    read, by the text of the instruction.

    `changes` counts the operations whose elements are entered; if it lags behind that of the batch, something has
    changed that is not entered. `epoch` counts how often the journal was cleared.
    """

    def __init__(self) -> None:
        self._views: dict[_View, np.ndarray] = {}
        self._written: dict[_Place, np.generic] = {}
        self._read: dict[str, set[_Place]] = {}
        self.changes, self.epoch, self._full = 0, 0, False

    def clear(self, changes: int) -> None:
        """Begin anew, when the batch has counted this many changes."""
        self._views, self._written, self._read = {}, {}, {}
        self.changes, self._full = changes, False
        self.epoch += 1

    def write(self, data: np.ndarray, index: np.ndarray, old: np.ndarray | None = None) -> None:
        """Record that elements of a view of memory are about to change, or have changed from `old`, which has index's
        shape."""
        self.changes += 1
        before = {} if old is None else dict(zip(index.ravel().tolist(), old.ravel(), strict=True))
        for place in self._places(data, index):
            if place not in self._written:
                self._written[place] = data[place[1]] if old is None else before[place[1]]

    def read(self, text: str, data: np.ndarray, index: np.ndarray) -> None:
        """Record that an instruction reads elements of a view of memory."""
        self._read.setdefault(text, set()).update(self._places(data, index))

    def _places(self, data: np.ndarray, index: np.ndarray) -> list[_Place]:
        self._full |= len(self._written) + sum(map(len, self._read.values())) + index.size > MOST
        if self._full:
            return []
        view = data.__array_interface__["data"][0], data.itemsize
        self._views[view] = data
        return [(view, each) for each in np.unique(index).tolist()]

    def complete(self, changes: int) -> bool:
        """Return whether every change is entered, when the batch has counted this many changes."""
        return not self._full and changes == self.changes

    def matters(self, readers: frozenset[str]) -> bool:
        """Return whether an element has changed that one of these instructions reads."""
        written = {word for place in self._written for word in _words(place)}
        read = (word for text in readers for place in self._read.get(text, ()) for word in _words(place))
        return not written.isdisjoint(read)

    def restored(self) -> bool:
        """Return whether each element that has changed has its old value again."""
        return all(
            self._views[view][index].tobytes() == value.tobytes() for (view, index), value in self._written.items()
        )


def _words(place: _Place) -> range:
    """Return the words of four bytes that an element is in."""
    (start, size), index = place
    return range((start + index * size) // 4, (start + (index + 1) * size + 3) // 4)
