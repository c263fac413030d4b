"""The overview of ladders: first rung, best rung and peer as shares of the limit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_ladder import made, scale
from tools.samples import made_up, texts

from climb.bench.records import load_record
from climb.bench.timings import Timings
from climb.bench.work import Work
from climb.display.figures import alt_text, ladder_figure, overview_figure
from climb.display.selection import select


def test_a_shortcut_has_its_own_limit_in_the_ladder_and_in_the_overview():
    half = replace(scale.vector, work=lambda size: Work(read=2 * size["n"], written=2 * size["n"]))
    times = Timings(replace(scale.ladder, rungs=(scale.plain, half)), "cold", made.record())
    figure = ladder_figure(times)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()][-2:] == ["limit", "limit of vector"]
    assert "vector reaches 50 % of it, and 25 % of the limit of its own operations" in alt_text(figure)
    figure = overview_figure([times])
    assert "best 50 %, " in alt_text(figure) and "which is 25 % of the limit of its own operations" in alt_text(figure)
    assert "of own limit" in texts(figure)
    assert "of own limit" not in texts(overview_figure([made_up()]))


def test_overview_shows_first_best_and_peer_as_shares_of_the_limit():
    limit = 8 * 16384**2 / 4000e9
    record = made_up(rungs=(("naive", 10 * limit), ("best", 2 * limit)), peers=(("library", 4 * limit),))
    figure = overview_figure([record])
    at = [float(line.get_xdata()[0]) for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert at[:3] == pytest.approx([0.1, 0.5, 0.25])
    assert "first rung 10 %, best 50 %, library 25 %" in alt_text(figure)


def test_every_mark_of_the_overview_stands_at_its_share_of_the_limit():
    records = [load_record(name) for name in ("transpose", "matmul")]
    axes = overview_figure(records).axes[0]
    marks = [line for line in axes.lines if len(line.get_xdata()) == 1 and line.get_transform() == axes.transData]
    drawn = {(float(m.get_xdata()[0]), float(m.get_ydata()[0])) for m in marks}
    expected = set()
    for row, chosen in enumerate(map(select, records)):
        points = (chosen.rungs[0], chosen.best, *([chosen.peer] if chosen.peer else []))
        expected |= {(chosen.limit.seconds / point.median_s, float(row)) for point in points}
    assert drawn == expected


def test_peer_that_passes_the_limit_in_a_lower_precision_is_not_in_the_overview():
    limit = 8 * 16384**2 / 4000e9
    record = made_up(rungs=(("naive", 2 * limit),), peers=(("fast", limit / 6), ("exact", 1.5 * limit)))
    assert "exact 67 %" in alt_text(overview_figure([record]))
    assert "fast" not in alt_text(overview_figure([record]))


def test_overview_without_ladders_or_limits_is_refused():
    with pytest.raises(ValueError, match="at least one ladder"):
        overview_figure([])
    with pytest.raises(ValueError, match="limit of transpose is not known"):
        overview_figure([made_up(ceilings={})])
