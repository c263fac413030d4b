"""Numbers as text: times, rates, ratios, shares and sizes."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climb.bench.units import percent_text, rate_text, ratio_text, significant, spread, time_text
from climb.display.sweep_figure import size_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.2, "1.20 s"),
        (0.0018394, "1.84 ms"),
        (5.02e-4, "502 µs"),
        (9.999e-4, "1.00 ms"),
        (1.2e-8, "12.0 ns"),
        (0, "0 ns"),
    ],
)
def test_time_text_has_three_digits_and_a_unit(seconds, text):
    assert time_text(seconds) == text


def test_rates_ratios_shares_and_sizes_as_text():
    assert rate_text(8 * 16384**2, 5.02e-4, "bytes") == "4280 GB/s"
    assert rate_text(2 * 4096**3, 2.68e-3, "flops") == "51.3 TFLOP/s"
    assert (ratio_text(3.66), ratio_text(26.7), ratio_text(0.284)) == ("3.7x", "27x", "0.28x")
    assert (ratio_text(1.036), ratio_text(0.98), ratio_text(1.0949)) == ("1.04x", "0.98x", "1.09x")
    assert (percent_text(0.9249), percent_text(0.0085), percent_text(0.0994)) == ("92 %", "0.85 %", "9.9 %")
    assert (size_text(4096), size_text(3 << 20), size_text(1000), size_text(64)) == ("4 Ki", "3 Mi", "1000", "64")


@given(st.floats(1e-12, 1e12))
def test_significant_has_three_digits_and_is_close(value):
    text = significant(value)
    assert float(text) == pytest.approx(value, rel=0.0051)
    digits = text.replace(".", "").lstrip("0")
    assert len(digits) == 3 or (len(digits) > 3 and set(digits[3:]) == {"0"})


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=8), st.floats(0.01, 3))
def test_spread_keeps_order_and_distance(values, gap):
    placed = spread(values, gap)
    order = sorted(range(len(values)), key=lambda i: values[i])
    steps = [placed[b] - placed[a] for a, b in pairwise(order)]
    assert all(step >= gap - 1e-6 for step in steps)
    if all(values[b] - values[a] > gap for a, b in pairwise(order)):
        assert placed == pytest.approx(values)
    assert math.isclose(sum(placed), sum(values), abs_tol=1e-6)
