"""The union of subsets of lanes, and how to join the values of the subsets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .lanes import Selection


@dataclass(frozen=True)
class Union:
    """A recipe for joining the values of several disjoint subsets of `shape` lanes.

    `whole`: the subsets cover all lanes. `axis`: 0 if all subsets are rows, 1 if all are columns, 2 if ragged.
    `places[k]` holds the positions of subset k's lanes in the joined order, `shapes[k]` the shape of subset k.
    """

    selection: Selection
    whole: bool
    axis: int
    places: tuple[np.ndarray, ...]
    shapes: tuple[tuple[int, int], ...]
    shape: tuple[int, int]

    def join(self, values: list[np.ndarray]) -> np.ndarray:
        """Return the value of the joined lanes from one value for each subset."""
        first = values[0]
        if first.shape == (1, 1):
            for value in values:  # a generator would take longer than the comparison itself
                if value is not first and (value.shape != (1, 1) or value.tobytes() != first.tobytes()):
                    break
            else:
                return first
        if self.axis == 0:
            columns = max(value.shape[1] for value in values)
            out = np.empty((self.shape[0], columns), first.dtype)
            for place, value in zip(self.places, values, strict=True):
                out[place] = value
            return out
        if self.axis == 1:
            rows = max(value.shape[0] for value in values)
            out = np.empty((rows, self.shape[1]), first.dtype)
            for place, value in zip(self.places, values, strict=True):
                out[:, place] = value
            return out
        out = np.empty(self.shape, first.dtype)
        flat = out.reshape(-1)
        for place, shape, value in zip(self.places, self.shapes, values, strict=True):
            if value.shape == (1, 1):
                flat[place] = value
            else:
                flat[place] = (value if value.shape == shape else np.broadcast_to(value, shape)).reshape(-1)
        return out


def unite(selections: list[Selection], shapes: list[tuple[int, int]], shape: tuple[int, int]) -> Union:
    """Return the union of disjoint `selections` of lanes of `shape`; `shapes` are the shapes of the subsets."""
    first = selections[0]
    if all(s.flat is None and s.columns is first.columns for s in selections):
        return _unite_rows([s.rows for s in selections], shapes, shape, first.columns)
    if all(s.flat is None and s.rows is first.rows for s in selections):
        return _unite_columns([s.columns for s in selections], shapes, shape, first.rows)
    parts = [s.flatten(shape) for s in selections]
    total = sum(part.size for part in parts)
    if total == shape[0] * shape[1]:
        return Union(Selection(), True, 2, tuple(parts), tuple(shapes), shape)
    joined, places = _merge(parts)
    return Union(Selection(flat=joined), False, 2, tuple(places), tuple(shapes), (1, total))


def _unite_rows(parts: list[np.ndarray], shapes: list, shape: tuple[int, int], columns: np.ndarray | None) -> Union:
    """Return the union of disjoint rows, of the same columns."""
    rows, places = _cover(parts, shape[0])
    extent = sum(part.size for part in parts), shapes[0][1]
    return Union(Selection(rows, columns), rows is columns is None, 0, tuple(places), tuple(shapes), extent)


def _unite_columns(parts: list[np.ndarray], shapes: list, shape: tuple[int, int], rows: np.ndarray | None) -> Union:
    """Return the union of disjoint columns, of the same rows."""
    columns, places = _cover(parts, shape[1])
    extent = shapes[0][0], sum(part.size for part in parts)
    return Union(Selection(rows, columns), rows is columns is None, 1, tuple(places), tuple(shapes), extent)


def _cover(parts: list[np.ndarray], size: int) -> tuple[np.ndarray | None, list[np.ndarray]]:
    """Like `_merge`; None for the union if it is everything."""
    return (None, parts) if sum(part.size for part in parts) == size else _merge(parts)


def _merge(parts: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the sorted union of disjoint ascending parts, and the positions of each part's elements in it."""
    every = np.concatenate(parts)
    order = np.argsort(every, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    bounds = np.cumsum([part.size for part in parts])[:-1]
    return every[order], np.split(place, bounds)
