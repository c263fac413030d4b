"""The figure of a sweep: lines through its values, and what it refuses."""

from __future__ import annotations

import pytest

from climb.display.figures import alt_text, sweep_figure


def test_sweep_has_a_second_panel_on_the_same_x_and_no_second_y():
    figure = sweep_figure(
        [1, 2, 4],
        {"copy": [9, 5, 3]},
        xlabel="stride",
        ylabel="GB/s",
        below={"copy": [4, 8, 16]},
        below_label="sectors",
    )
    top, bottom = figure.axes
    assert list(top.lines[0].get_xdata()) == list(bottom.lines[0].get_xdata()) == [1, 2, 4]
    assert list(bottom.lines[0].get_ydata()) == [4, 8, 16]
    assert top.get_xscale() == "log"
    assert "copy goes from 4.00 at 1 to 16.0 at 4 (sectors)" in alt_text(figure)


@pytest.mark.parametrize("logy", [False, True])
@pytest.mark.parametrize("newest", [None, "b"])
def test_every_point_of_a_sweep_stands_at_its_values(logy, newest):
    xs, gap = [3.0, 8.0, 100.0], float("nan")
    series, below = {"a": [5.0, 70.0, 6.0], "b": [1.0, gap, 9.0]}, {"a": [0.5, 0.25, 0.125]}
    figure = sweep_figure(
        xs, series, xlabel="x", ylabel="y", below=below, lines={"ceiling": 80.0}, newest=newest, logy=logy
    )
    top, bottom = figure.axes
    level = next(line for line in top.lines if len(set(line.get_ydata())) == 1)
    assert float(level.get_ydata()[0]) == 80.0
    drawn = [line for line in (*top.lines, *bottom.lines) if line is not level]
    assert [list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in drawn] == [
        [(3.0, 5.0), (8.0, 70.0), (100.0, 6.0)],
        [(3.0, 1.0), (100.0, 9.0)],
        [(3.0, 0.5), (8.0, 0.25), (100.0, 0.125)],
    ]


@pytest.mark.parametrize(
    ("x", "series", "newest", "message"),
    [
        ([], {"a": []}, None, "at least one x"),
        ([0, 1], {"a": [1, 2]}, None, "must be positive; got 0"),
        ([1, 2], {}, None, "at least one series"),
        ([1, 2], {"a": [1]}, None, "series 'a' has 1 values for 2 x"),
        ([1, 2], {"a": [float("nan")] * 2}, None, "series 'a' has no value"),
        ([1, 2], {"a": [1, 2]}, "b", "newest is 'b'"),
    ],
)
def test_malformed_sweep_is_refused(x, series, newest, message):
    with pytest.raises(ValueError, match=message):
        sweep_figure(x, series, xlabel="x", ylabel="y", newest=newest)


def test_line_of_a_sweep_may_end_before_the_others():
    series = {"long": [1.0, 2.0, 3.0], "short": [4.0, 5.0, float("nan")]}
    figure = sweep_figure([1, 2, 4], series, xlabel="x", ylabel="y")
    assert "short goes from 4.00 at 1 to 5.00 at 2 (y)." in alt_text(figure)
    names = {text.get_text(): text.xy[1] for text in figure.axes[0].texts}
    assert 0 < names["long"] < names["short"] < 1
    assert figure.axes[0].get_ylim() == (0, 1.15 * 5)


def test_names_at_the_ends_of_a_logarithmic_sweep_stand_beside_their_lines():
    figure = sweep_figure([1, 2], {"low": [1e-3, 1e-2], "high": [1.0, 1e3]}, xlabel="x", ylabel="y", logy=True)
    names = {text.get_text(): text.xy[1] for text in figure.axes[0].texts}
    assert 0 < names["low"] < 0.5 < names["high"] < 1
