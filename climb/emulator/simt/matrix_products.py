"""Asynchronous matrix products that threads have issued, and the registers that they write."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .async_access import CommitGroups, Pending
from .site import Site

_MANY = 1 << 14  # values that are remembered before those that no register holds any more are forgotten


@dataclass(eq=False)
class Product(Pending):
    """A product in flight: the `number` of its instruction in the kernel, and its `site`."""

    number: int = 0
    site: Site | None = None


class ProductGroups(CommitGroups):
    """The commit groups of wgmma.

    Registers are known by the arrays that hold their values: a move leaves the array as it is, and each product makes
    new ones. If lanes diverge, registers are copied, and their products are not known. `fields`, by site and operand:
    the bits above the start address in the last descriptor of each rank of a cluster.
    """

    def __init__(self, threads: int) -> None:
        super().__init__(threads, ("wgmma.commit_group", "wgmma.wait_group"))
        self._values: dict[int, tuple[weakref.ref, Product]] = {}
        self.fields: dict[tuple[int, str], dict[int, int]] = {}

    def add(self, product: Product) -> None:
        """Note that a product has been issued."""
        self.pending.append(product)

    def written(self, product: Product, values: Iterable[np.ndarray]) -> None:
        """Note that a product writes registers with these values."""
        if len(self._values) > _MANY:
            self._values = {key: each for key, each in self._values.items() if each[0]() is not None}
        for value in values:
            owner = _owner(value)
            self._values[id(owner)] = (weakref.ref(owner), product)

    def writing(self, value: np.ndarray, latest: tuple[int, ...]) -> list[Product]:
        """Return the products in flight that write a register with this value.

        If the value is not known, those with the numbers `latest`, whose latest execution must have written it.
        """
        owner = _owner(value)
        known, product = self._values.get(id(owner), (None, None))
        if known is not None and known() is owner:
            return [product] if product in self.pending else []
        return [each for each in self.pending if each.number in latest]


def _owner(value: np.ndarray) -> np.ndarray:
    """Return the array that owns a value's memory."""
    return value if value.base is None else value.base
