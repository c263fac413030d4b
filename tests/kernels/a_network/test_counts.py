"""The chapter's claims about the real network, from counts of narrow ones."""

from __future__ import annotations

import pytest

from climb import counters
from climb.emulator import checking
from kernels.a_network.unet import ladder, unet


@pytest.mark.thorough
def test_instructions_of_a_block_grow_with_the_width_on_a_straight_line() -> None:
    found = {}
    with checking(()):
        for width in (32, 64, 128):
            counted = counters(ladder["in_registers"], unet(1, width))
            found[width] = counted.warp_instructions / (width / 2)
    # With the width, the norm's sums go over more lanes, and the last warps add up more parts: a little more work.
    assert found[32] + 3 * (found[64] - found[32]) == pytest.approx(found[128], rel=0.01)
