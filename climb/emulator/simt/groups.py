"""Groups: lanes at the same place of the program, with the values of their registers.

When a group splits, its lanes and registers become the root of the parts. The root does not change; each part holds
only the selection of its lanes and the registers that it has written since. A register that no part writes is never
divided, and is intact when the parts reconverge.
"""

from __future__ import annotations

from operator import is_

import numpy as np

from .batch import Batch
from .lanes import Lanes, Selection, Union, take, unite


class Root:
    """The lanes and registers of a group at the moment when it split."""

    __slots__ = ("lanes", "registers")

    def __init__(self, lanes: Lanes, registers: dict[str, np.ndarray]) -> None:
        self.lanes, self.registers = lanes, registers


class Group:
    """`registers` maps names to values that broadcast to `lanes.shape`; `clean` names copies of the root's values.

    `spins` counts the iterations of a waiting loop that no lane has left. `passed`: whether the lanes have passed the
    gate of the block that they are at.
    """

    __slots__ = ("batch", "clean", "lanes", "passed", "registers", "root", "selection", "spins")

    def __init__(
        self,
        batch: Batch,
        lanes: Lanes,
        registers: dict[str, np.ndarray],
        root: Root | None = None,
        selection: Selection | None = None,
    ) -> None:
        self.batch, self.lanes, self.registers = batch, lanes, registers
        self.root, self.selection = root, selection
        self.clean: set[str] = set()
        self.spins, self.passed = 0, False

    def value(self, name: str) -> np.ndarray:
        """The register's value; zero if no path to this place has written it."""
        value = self.registers.get(name)
        if value is not None:
            return value
        if self.root is not None:
            value = self.root.registers.get(name)
            if value is not None:
                return take(value, self.selection, self.root.lanes.shape)
        return self.batch.kernel.zeros[name]

    def fetch(self, names: tuple[str, ...]) -> None:
        """Copy the named registers from the root into `registers`, unless they are there already."""
        registers = self.registers
        for name in names:
            if name not in registers:
                registers[name] = self.value(name)
                self.clean.add(name)

    def split(self, parts: list[tuple[Selection, frozenset[str]]]) -> list[Group]:
        """Split off disjoint parts, each with the registers that are live at its destination."""
        shape = self.lanes.shape
        if self.root is None:
            root = Root(self.lanes, self.registers)
            return [Group(self.batch, part.lanes(self.lanes), {}, root, part) for part, _ in parts]
        out = []
        for part, live in parts:
            kept = {
                name: take(value, part, shape)
                for name, value in self.registers.items()
                if name in live and name not in self.clean
            }
            whole = self.selection.then(part, self.root.lanes.shape)
            out.append(Group(self.batch, part.lanes(self.lanes), kept, self.root, whole))
        return out

    def become_root(self, live: frozenset[str]) -> None:
        """Copy the live registers and drop the root. Call only if the batch has no other group."""
        if self.root is not None:
            self.registers = {name: self.value(name) for name in live}
            self.root, self.selection, self.clean = None, None, set()


def merge(groups: list[Group], live: frozenset[str]) -> Group:
    """Join groups that have reached the same place of the program, at which the registers `live` are needed."""
    if len(groups) == 1:
        return groups[0]
    root = groups[0].root
    union = _united([g.selection for g in groups], [g.lanes.shape for g in groups], root.lanes)
    written = {name for g in groups for name in g.registers if name in live and name not in g.clean}
    values = {name: union.join([g.value(name) for g in groups]) for name in written}
    batch, spins = groups[0].batch, max(group.spins for group in groups)
    if union.whole:
        root.registers.update(values)
        whole = Group(batch, root.lanes, root.registers)
        whole.spins = spins
        return whole
    part = Group(batch, union.selection.lanes(root.lanes), values, root, union.selection)
    part.spins = spins
    return part


def _united(selections: list[Selection], shapes: list[tuple[int, int]], lanes: Lanes) -> Union:
    """The union of disjoint selections of `lanes`; the same one as before for the same selections."""
    divisions = lanes.divisions
    if divisions is None or not all(each.kept for each in selections):
        return unite(selections, shapes, lanes.shape)
    for known, union in divisions.unions:
        if len(known) == len(selections) and all(map(is_, known, selections)):
            return union
    union = unite(selections, shapes, lanes.shape)
    if divisions.budget[0] >= lanes.count:
        divisions.budget[0] -= lanes.count
        divisions.unions.append((selections, union))
        union.selection.keep()
    return union
