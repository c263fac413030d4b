"""Footprints: what a process notes of what its batches read and change."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from climb.emulator.memory import footprint
from climb.emulator.memory.device_memory import DeviceMemory
from climb.emulator.memory.footprint import Footprint, TooManyUpdates, Update, overlap, read_and_changed


def test_footprints_find_reads_of_what_changed_and_changes_of_one_byte() -> None:
    held = DeviceMemory().allocate(64)
    one, other = Footprint(later=False), Footprint(later=True)
    one.store(held, np.array([[3]]), 4)  # bytes 12 to 15
    assert not other.load(held, held.address + 8, held.address + 12)
    assert not other.load(held, held.address + 16, held.address + 24)
    assert not read_and_changed(other.reads, one.stores)
    other.load_elements(held, np.array([[15]]), 1)
    assert read_and_changed(other.reads, one.stores) == {held.address}
    exact = Footprint(later=True, followed=frozenset({held.address}))
    assert exact.load(held, held.address, held.address + 64)
    exact.load_elements(held, np.array([[2, 4]]), 4)
    assert not exact.reads and not overlap(exact.loads, one.stores)
    exact.load_elements(held, np.array([[1]]), 8)
    assert overlap(exact.loads, one.stores)
    other.store(held, np.array([[0]]), 8)
    assert not overlap(one.stores, other.stores)
    other.store(held, np.array([[15]]), 1)
    assert overlap(one.stores, other.stores) and overlap(other.stores, one.stores)


def test_intervals_of_loads_are_joined_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "MOST_INTERVALS", 3)
    held, some = DeviceMemory().allocate(64), Footprint(later=False)
    for start in range(0, 32, 8):
        some.load(held, held.address + start, held.address + start + 4)
    assert some.reads == {held.address: {(0, 28)}}


def test_worker_gives_up_if_there_are_too_many_atomics_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "MOST_UPDATES", 99)
    held, some = DeviceMemory().allocate(64), Footprint(later=True)
    update = Update(held.address, np.dtype(np.int32), np.zeros(64, np.int64), "add", np.ones(64, np.int32), None)
    assert not some.atomic(held, update)
    (again,) = pickle.loads(pickle.dumps(some)).updates
    assert again.element is np.dtype(np.int32) and again.value.dtype is np.dtype(np.int32)  # as np.add.at wants it
    with pytest.raises(TooManyUpdates):
        some.atomic(held, update)
