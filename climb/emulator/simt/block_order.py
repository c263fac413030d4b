"""The order in which the blocks of a launch are numbered: cluster by cluster, so that a batch holds whole clusters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

Number = TypeVar("Number", int, np.ndarray)
Extent = tuple[int, int, int]


@dataclass(frozen=True)
class BlockOrder:
    """A grid of clusters of `cluster` blocks each, both (x, y, z); (1, 1, 1) without clusters.

    Blocks are numbered by their cluster, then by their rank in it, x fastest in both. For clusters of one block this is
    the usual linear index.
    """

    grid: Extent
    cluster: Extent

    @cached_property
    def size(self) -> int:
        """The blocks of a cluster."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    @cached_property
    def clusters(self) -> Extent:
        """The clusters of the grid along each axis."""
        return tuple(blocks // each for blocks, each in zip(self.grid, self.cluster, strict=True))

    def cluster_index(self, number: Number) -> tuple[Number, Number, Number]:
        """Return the position in the grid of clusters of the cluster that holds block `number`."""
        return _split(number // self.size, self.clusters)

    def index_in_cluster(self, number: Number) -> tuple[Number, Number, Number]:
        """Return the position of block `number` within its cluster."""
        return _split(number % self.size, self.cluster)

    def index(self, number: Number) -> tuple[Number, Number, Number]:
        """Return the position of block `number` in the grid."""
        outer, inner = self.cluster_index(number), self.index_in_cluster(number)
        return tuple(o * each + i for o, i, each in zip(outer, inner, self.cluster, strict=True))

    def number(self, index: Extent) -> int:
        """Return the number of the block at a position in the grid."""
        inner = [at % each for at, each in zip(index, self.cluster, strict=True)]
        outer = [at // each for at, each in zip(index, self.cluster, strict=True)]
        return _join(outer, self.clusters) * self.size + _join(inner, self.cluster)


def _split(number: Number, extent: Extent) -> tuple[Number, Number, Number]:
    return number % extent[0], number // extent[0] % extent[1], number // (extent[0] * extent[1])


def _join(index: list[int], extent: Extent) -> int:
    return (index[2] * extent[1] + index[1]) * extent[0] + index[0]
