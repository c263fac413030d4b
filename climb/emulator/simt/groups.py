"""Groups: lanes at the same place of the program, with the values of their registers.

When a group splits, its lanes and registers become the root of the parts. The root does not change; each part holds
only the selection of its lanes and the registers that it has written since. A register that no part writes is never
divided, and is intact when the parts reconverge.
"""

from __future__ import annotations

from operator import is_

import numpy as np

from . import masks
from .batch import Batch
from .lanes import Lanes, Selection, take
from .unions import Union, unite


class Root:
    """The lanes and registers of a group at the moment when it split. `group`: that group, if it was a part of another
    root; its parts become it again when they are together."""

    __slots__ = ("group", "lanes", "registers")

    def __init__(self, lanes: Lanes, registers: dict[str, np.ndarray], group: Group | None = None) -> None:
        self.lanes, self.registers, self.group = lanes, registers, group

    def find(self, name: str) -> np.ndarray | None:
        """Return the value of a register; None if it has not been written."""
        if self.group is not None:
            self.group.fetch((name,))
        return self.registers.get(name)


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
        """Return the register's value; zero if no path to this place has written it."""
        value = self.registers.get(name)
        if value is not None:
            return value
        if self.root is not None:
            value = self.root.find(name)
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
        if self.root is None or (parts[0][0].mask is not None and not self.lanes.masked):
            root = Root(self.lanes, self.registers, None if self.root is None else self)
            return [Group(self.batch, part.lanes(self.lanes), {}, root, part) for part, _ in parts]
        out = []
        for part, live in parts:
            kept = {
                name: take(value, part, shape)
                for name, value in self.registers.items()
                if name in live and name not in self.clean
            }
            if self.lanes.masked:
                out.append(Group(self.batch, part.lanes(self.root.lanes), kept, self.root, part))
                continue
            whole = self.selection.then(part, self.root.lanes.shape)
            out.append(Group(self.batch, part.lanes(self.lanes), kept, self.root, whole))
        return out

    def dense(self) -> Group:
        """Return the group with its lanes gathered, if a mask marks them; else the group itself."""
        if not self.lanes.masked:
            return self
        part = Selection(flat=self.lanes.flat)
        own = {
            name: take(value, part, self.lanes.shape)
            for name, value in self.registers.items()
            if name not in self.clean
        }
        out = Group(self.batch, self.lanes.dense, own, self.root, part)
        out.spins, out.passed = self.spins, self.passed
        return out

    def outside(self) -> Group:
        """Return the group as a part of the root above the group of its root, with its lanes gathered."""
        inner, outer = self.dense(), self.root.group
        own = {name: inner.value(name) for name in {*inner.registers, *outer.registers} if name not in outer.clean}
        own |= {name: value for name, value in inner.registers.items() if name not in inner.clean}
        whole = outer.selection.then(inner.selection, outer.root.lanes.shape)
        out = Group(self.batch, inner.lanes, own, outer.root, whole)
        out.spins, out.passed = inner.spins, inner.passed
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
    if any(group.root.group is not None for group in groups):
        groups = _in_one_root(groups, live)
        if len(groups) == 1:
            return groups[0]
    root = groups[0].root
    if root.group is not None or any(group.lanes.masked for group in groups):
        return _merge_masked(groups, live, root)
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


def _in_one_root(groups: list[Group], live: frozenset[str]) -> list[Group]:
    """Return the groups under one root, if the root of some lies in a part of another's."""
    by_root: dict[int, list[Group]] = {}
    for group in groups:
        by_root.setdefault(id(group.root), []).append(group)
    if len(by_root) == 1:
        return groups
    out = []
    for each in by_root.values():
        if each[0].root.group is None:
            out += each
        else:
            one = _merge_masked(each, live, each[0].root) if len(each) > 1 else each[0]
            out.append(one.outside() if one.root is each[0].root else one)
    return out


def _merge_masked(groups: list[Group], live: frozenset[str], root: Root) -> Group:
    """Like `merge`, for parts of a root whose lanes are or were marked by masks."""
    lanes, selections = root.lanes, [g.selection for g in groups]
    written = {name for g in groups for name in g.registers if name in live and name not in g.clean}
    extents = [g.lanes.shape for g in groups]
    values = {name: masks.join([g.value(name) for g in groups], selections, extents, lanes.shape) for name in written}
    if sum(g.lanes.count for g in groups) == lanes.count:
        root.registers.update(values)
        out = root.group or Group(groups[0].batch, lanes, root.registers)
        out.clean -= written
    else:
        union = masks.unite(selections, lanes.shape)
        out = Group(groups[0].batch, union.lanes(lanes), values, root, union)
    out.spins = max(group.spins for group in groups)
    return out


def _united(selections: list[Selection], shapes: list[tuple[int, int]], lanes: Lanes) -> Union:
    """Return the union of disjoint selections of `lanes`; the same one as before for the same selections."""
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
