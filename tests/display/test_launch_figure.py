"""The launch picture: what it says in words, what it refuses, and its dark twin."""

from __future__ import annotations

import pytest

from climb.display.figures import alt_text, launch_figure, svg
from climb.display.themes import page_twins


def test_alt_text_counts_idle_threads_and_the_elements_of_the_warp():
    said = alt_text(launch_figure(4, 256, 1000, sms=132, warp=(2, 5)))
    assert "4 blocks, each of 256 threads in 8 warps of 32" in said
    assert "Threads without an element: 24." in said and "the elements 672 to 703" in said


def test_picture_draws_idle_threads_in_the_colour_of_waste():
    some, none = (svg(launch_figure(2, 64, n, sms=8)) for n in (100, 128))
    assert "#f6c98f" in some and "#f6c98f" not in none


def test_picture_has_a_dark_twin():
    light, dark = page_twins(svg(launch_figure(3, 96, 200, sms=4, warp=(2, 2))))
    assert light != dark and "#0072b2" not in dark


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"blocks": 6}, "room for 5 blocks"),
        ({"threads": 512}, "room for 5 blocks of 8 whole warps"),
        ({"threads": 33}, "whole warps"),
        ({"warp": (4, 0)}, "warp 0 of block 4 is not in the launch"),
        ({"sms": 4}, "4 SMs"),
    ],
)
def test_launch_without_room_is_refused(given, says):
    with pytest.raises(ValueError, match=says):
        launch_figure(**{"blocks": 4, "threads": 256, "n": 1000, "sms": 132} | given)
