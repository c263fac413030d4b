"""When each lane of one access is served: the turns and wavefronts add up to what the cost model counts."""

from __future__ import annotations

import numpy as np
import pytest

from climb.emulator.counters.cost_model import PERIOD, SHARED_MEASURES
from climb.emulator.counters.serving import global_cost, sectors_of, shared_cost, shared_words, turns

LANES = np.arange(32)
ALL = np.ones(32, bool)


@pytest.mark.parametrize("carried_out", SHARED_MEASURES)
@pytest.mark.parametrize("width", [4, 8, 16])
def test_words_take_as_many_wavefronts_as_are_counted(carried_out, width):
    rng = np.random.default_rng(width)
    for _ in range(50):
        addresses, active = width * rng.integers(0, 90, 32), rng.random(32) < 0.8
        words = shared_words(addresses, active, width, carried_out)
        assert len({word.wavefront for word in words}) == shared_cost(addresses, active, width, carried_out).achieved
        assert len({(word.wavefront, word.bank) for word in words}) == len(words)


def test_turns_serve_each_lane_once_and_move_the_sectors_that_are_counted():
    assert turns(4 * LANES, ALL).tolist() == [0] * 32
    assert sorted(turns(np.zeros(32, np.int64), ALL)) == list(range(32))
    rng = np.random.default_rng(0)
    for _ in range(50):
        addresses, active = PERIOD + 4 * rng.integers(0, 400, 32), rng.random(32) < 0.7
        turn = turns(addresses, active)
        assert ((turn >= 0) == active).all()
        moved = {(turn[lane], sector) for lane, sector in sectors_of(addresses, active, 4)}
        assert len(moved) == global_cost(addresses, active, 4, atomic=True).achieved
