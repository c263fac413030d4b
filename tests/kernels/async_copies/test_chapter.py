"""The chapter on asynchronous copies: its exhibits fail as it says, and its changes mend them."""

from __future__ import annotations

import numpy as np
import pytest

from climb import count_kernel, poisoned
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
