"""The chapter on asynchronous copies: its exhibits fail as it says, its changes mend them, and its picture."""

from __future__ import annotations

import numpy as np
import pytest

from climb import block_events, count_kernel, load_ladder, poisoned, ring_figure
from climb.bench.edits import of_source
from climb.display.ring_figure import Fill, fills
from climb.emulator import AsyncRace, MissingProxyFence
from kernels.async_copies.exercises import HEADERS, exhibit

CHUNK = 512


def _copied(text: str, chunks: int) -> bool:
    source = np.random.default_rng(0).random(chunks * CHUNK, dtype=np.float32)
    target = poisoned(source.shape, "float32")
    count_kernel(text, "copy_parity", (1,), (128,), [source, target, np.int32(chunks)], options=HEADERS)
    return np.array_equal(source, target)


def _states(text: str, *starts: int) -> np.ndarray:
    """The last states of sequences that begin at these steps of five; the last number is where the last one ends."""
    steps = np.random.default_rng(0).random((5, 128), dtype=np.float32)
    states = poisoned((len(starts) - 1, 128), "float32")
    args = [steps, np.array(starts, np.int32), states]
    count_kernel(text, "last_state", (len(starts) - 1,), (128,), args, options=HEADERS)
    return states


def test_parity_of_the_loop_is_right_for_one_chunk_and_no_more() -> None:
    assert _copied(exhibit("parity"), 1)
    with pytest.raises(AsyncRace, match="no wait has seen the phase of its mbarrier end"):
        _copied(exhibit("parity"), 2)


def test_parity_of_the_round_mends_the_ring() -> None:
    assert _copied(exhibit("parity").replace("chunk & 1", "chunk / kStages & 1"), 9)


def test_one_slot_hides_the_parity_of_the_loop() -> None:
    assert _copied(exhibit("parity").replace("kStages = 4", "kStages = 1"), 9)


def test_parity_of_the_round_before_lets_the_first_read_through() -> None:
    with pytest.raises(AsyncRace):
        _copied(exhibit("parity").replace("chunk & 1", "(chunk / kStages & 1) ^ 1"), 9)


def test_state_of_an_empty_sequence_alone_is_stored_without_a_fence() -> None:
    assert np.isfinite(_states(exhibit("unfenced"), 0, 2, 5)).all()
    with pytest.raises(MissingProxyFence):
        _states(exhibit("unfenced"), 0, 0, 5)


def test_fence_after_the_zeros_mends_the_empty_sequence() -> None:
    text = exhibit("unfenced").replace("= 0.0f;\n", "= 0.0f;\n    fence_proxy_async();\n")
    assert (_states(text, 0, 0, 5)[0] == 0).all()


def test_box_of_an_exhibit_names_no_folder_of_this_machine() -> None:
    args = [np.zeros(CHUNK, np.float32), poisoned((CHUNK,), "float32"), np.int32(1)]
    box = of_source(exhibit("parity"), "copy_parity", (1,), (128,), args, {}, 0.0, 0, ("-lineinfo", *HEADERS))
    assert "compiled with -lineinfo" in box.launch_text and "-I" not in box.launch_text


def test_uses_of_slots_follow_each_other_and_overlap_between_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.async_copies.async_transpose.RINGS", 1)
    rung, size = load_ladder("async_transpose")["ring"], {"rows": 64, "cols": 64 * 7}
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


def test_rung_without_mbarriers_is_no_ring() -> None:
    with pytest.raises(ValueError, match="a ring needs an mbarrier that expects bytes"):
        fills(())
