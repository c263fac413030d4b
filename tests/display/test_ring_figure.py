"""The ring picture: the uses of a ring's slots, found in the events of a block."""

from __future__ import annotations

import pytest

from climb import block_events, load_ladder, ring_figure
from climb.display.ring_figure import Fill, fills


def test_uses_of_slots_follow_each_other_and_overlap_between_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.async_copies.async_transpose.RINGS", 1)
    rung, size = load_ladder("async_transpose")["persistent"], {"rows": 64, "cols": 64 * 7}
    found = fills(block_events(rung, size, kinds=("expect", "arrive", "passed")))
    assert [fill.slot for fill in found] == [0, 1, 2, 3, 0, 1, 2]
    assert all(fill.begun < fill.full for fill in found)
    assert all(fill.full < fill.handed for fill in found[:-1]) and found[-1].handed is None
    assert all(one.handed < later.begun for one, later in zip(found, found[4:], strict=False))
    assert found[1].begun < found[0].full  # a second copy is in flight before the first has arrived
    assert "4 slots, filled 7 times" in ring_figure({"ring": (rung, size)}).get_label()


def test_ring_without_a_barrier_for_empty_slots_has_no_hand_over() -> None:
    found = fills(block_events(load_ladder("async_copy")["bulk"], {"n": 64}, kinds=("expect", "arrive", "passed")))
    assert found == [Fill(slot=0, begun=0, full=1, handed=None)]


def test_events_without_mbarriers_are_no_ring() -> None:
    with pytest.raises(ValueError, match="a ring needs an mbarrier that expects bytes"):
        fills(())
