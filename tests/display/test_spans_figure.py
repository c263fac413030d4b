"""The picture of when launches ran."""

from __future__ import annotations

import pytest

from climb.bench.records.kinds import Span, SpansPoint
from climb.display.palette import PALETTE
from climb.display.spans_figure import MANY, spans_figure
from climb.display.style import alt_text


def point(name: str, *launches: Span) -> SpansPoint:
    return SpansPoint(name, {"steps": 2}, "x", 1e-5, launches)


WAITS = Span("step", 4, (1e-6, 1.5e-6), (3e-6, 3e-6), (), (5e-6, 6e-6))
PLAIN = Span("step", 4, (0.0, 0.5e-6), None, ((1e-6, 2e-6),), (2e-6, 3e-6))
STAYS = Span("stay", 4, (0.0, 0.0), None, tuple((i * 1e-6, i * 1e-6) for i in range(1, MANY + 2)), (1e-5, 1e-5))


def bars(figure) -> list[tuple[float, float, float]]:
    """Left and right end in us, and the height of the middle, of each bar."""
    (axes,) = figure.axes
    found = [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_y() + bar.get_height() / 2) for bar in axes.patches]
    return [tuple(round(value, 3) for value in bar) for bar in found]


def test_a_launch_is_pale_until_it_goes_on_and_neighbours_have_lines_of_their_own() -> None:
    figure = spans_figure({"dependent": point("dependent", PLAIN, WAITS)})
    assert bars(figure) == [(0.0, 3.0, -0.14), (1.0, 3.0, 0.14), (3.0, 6.0, 0.14)]
    colours = [bar.get_facecolor() for bar in figure.axes[0].patches]
    assert colours[0] == colours[2] != colours[1]
    assert [text.get_text().strip() for text in figure.axes[0].texts] == ["6.00 µs"]


def test_barriers_are_ticks_where_a_kernel_has_many() -> None:
    figure = spans_figure({"one": point("one", PLAIN), "stay": point("stay", STAYS)})
    (ticks,) = figure.axes[0].collections
    assert len(ticks.get_segments()) == MANY + 1
    assert ticks.get_edgecolor()[0][:3] == pytest.approx(matplotlib_rgb("ground"))
    assert "stay: 1 launch in 10.0 µs" in alt_text(figure)


def test_a_part_ends_at_its_time_and_leaves_out_what_begins_later() -> None:
    figure = spans_figure({"dependent": point("dependent", PLAIN, WAITS)}, upto=0.9e-6)
    assert bars(figure) == [(0.0, 0.9, -0.14)] and not figure.axes[0].texts


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="no spans"):
        spans_figure({})


def matplotlib_rgb(name: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(PALETTE[name].light)
