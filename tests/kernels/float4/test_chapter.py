"""The chapter on float4: its exhibits do what it says of widths, alignment, tails and the path that never runs."""

from __future__ import annotations

import numpy as np
import pytest

from climb import count_kernel, poisoned
from climb.emulator import Misaligned, OutOfBounds
from kernels.float4.exercises import exhibit


def _copy(text: str, kernel: str, source: np.ndarray, *scalars: np.generic, grid: int = 1, block: int = 128) -> tuple:
    """The target of a kernel that copies, and the counters."""
    target = poisoned(source.shape, "float32")
    return target, count_kernel(text, kernel, (grid,), (block,), [source, target, *scalars])


def _random(n: int) -> np.ndarray:
    return np.random.default_rng(0).random(n, dtype=np.float32)


@pytest.mark.parametrize("each", [1, 2, 4, 8])
def test_neighbours_one_at_a_time_touch_as_many_times_the_sectors(each: int) -> None:
    x = _random(1024)
    text = exhibit("neighbours").replace("kEach = 4", f"kEach = {each}")
    copied, counted = _copy(text, "neighbours", x, np.uint64(1024), grid=8 // each)
    load = counted.total("global load")
    assert np.array_equal(copied, x) and load.sectors == each * load.ideal_sectors == each * 128


@pytest.mark.parametrize("offset", range(9))
def test_shifted_quads_are_stopped_unless_the_offset_is_a_multiple_of_four(offset: int) -> None:
    x = _random(600)
    if offset % 4:
        with pytest.raises(Misaligned):
            _copy(exhibit("shifted"), "shifted", x, np.int32(512), np.int32(offset))
    else:
        copied, _ = _copy(exhibit("shifted"), "shifted", x, np.int32(512), np.int32(offset))
        assert np.array_equal(copied[offset : offset + 512], x[offset : offset + 512])


def test_quads_rounded_up_read_past_the_end_and_rounded_down_lose_the_tail() -> None:
    x, n = _random(501), np.int32(501)
    with pytest.raises(OutOfBounds):
        _copy(exhibit("rounded_up"), "rounded_up", x, n)
    down = exhibit("rounded_up").replace("(n + 3) / 4", "n / 4")
    copied, _ = _copy(down, "rounded_up", x, n)
    assert np.array_equal(copied[:500], x[:500]) and copied[500] != x[500]


@pytest.mark.parametrize("width", range(1, 13))
def test_wide_path_of_the_window_runs_for_multiples_of_four_only(width: int) -> None:
    arguments = [_random(200), _random(width), poisoned((200,), "float32"), np.int32(200), np.int32(width)]
    counted = count_kernel(exhibit("window"), "window", (2,), (128,), arguments)
    widths = {line.width for line in counted.lines if line.kind == "global load" and line.requests}
    assert (16 in widths) == (width % 4 == 0)
