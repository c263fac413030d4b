"""A waiting loop's journal of memory: it remembers up to a number of places, beyond which it proves nothing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from climb.emulator.simt.batch import Batch
from climb.emulator.simt.journal import MOST, Journal


@pytest.mark.parametrize(("elements", "complete"), [(MOST, True), (MOST + 1, False)])
def test_a_journal_remembers_as_many_places_as_it_says(elements: int, complete: bool) -> None:
    journal, data = Journal(), np.zeros(MOST + 1, np.int32)
    journal.clear(0)
    journal.write(data, np.arange(elements))
    assert journal.complete(1) is complete
    journal.clear(1)
    journal.read("ld", data, np.arange(elements - 1))
    journal.write(data, np.array([0]))
    assert journal.complete(2) is complete


def test_a_place_that_has_its_old_value_again_is_restored_and_matters_to_those_who_read_it() -> None:
    journal, data = Journal(), np.zeros(4, np.int32)
    journal.clear(0)
    journal.read("ld", data, np.array([1]))
    journal.write(data, np.array([2]))
    data[2] = 5
    assert not journal.restored() and not journal.matters(frozenset({"ld"}))
    journal.write(data, np.array([1]))
    data[2] = 0
    assert journal.restored() and journal.matters(frozenset({"ld"})) and not journal.matters(frozenset({"st"}))


def test_changes_that_a_batch_notes_are_in_its_journal() -> None:
    batch, data = SimpleNamespace(changes=3, journal=Journal(), places=None), np.zeros(4, np.int32)
    batch.journal.clear(3)
    for change in (1, 2):
        Batch.note_change(batch, data, np.array([change]))
        assert batch.changes == 3 + change and batch.journal.complete(batch.changes)
    assert batch.journal.restored()
    data[1] = 7
    assert not batch.journal.restored()
