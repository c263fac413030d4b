"""The figure of a ladder: bars or dots at the times of its rungs, its peers and its limit."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from tools.drawn import colour, dots
from tools.samples import made_up, texts

from climb.bench.records import load_record
from climb.bench.units import time_text
from climb.display import style
from climb.display.figures import alt_text, ladder_figure
from climb.display.selection import select


def marks(figure) -> list[tuple[str, float, float]]:
    """Colour, time and row of each bar, from the origin, or of each dot."""
    axes = figure.axes[0]
    if axes.get_xscale() == "linear":
        assert not dots(axes) and all(bar.get_x() == 0 for bar in axes.patches)
        return [(colour(b), b.get_width(), round(b.get_y() + b.get_height() / 2, 9)) for b in axes.patches]
    assert not axes.patches, "a bar on a logarithmic axis has no length"
    return [(colour(d), float(d.get_xdata()[0]), float(d.get_ydata()[0])) for d in dots(axes)]


def values(figure) -> dict[float, list[str]]:
    """The texts of each row, by the row's height."""
    found: dict[float, list[str]] = {}
    for text in figure.axes[0].texts:
        found.setdefault(text.xy[1], []).append(text.get_text())
    return found


def test_ladder_that_ends_at_a_rung_has_that_rung_in_blue():
    figure = ladder_figure(made_up(), upto="tiled")
    rungs = marks(figure)[:2]
    assert [seconds for _, seconds, _ in rungs] == pytest.approx([3e-3, 1e-3])
    assert [which for which, _, _ in rungs] == [style.MUTED, style.BEST]
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["naive", "tiled", "limit"]


def test_whole_ladder_has_its_best_rung_in_blue_and_not_its_last():
    record = made_up(rungs=(("naive", 3e-3), ("best", 6e-4), ("worse", 9e-4)), peers=(("library", 7e-4),))
    figure = ladder_figure(record)
    assert [which for which, _, _ in marks(figure)] == [style.MUTED, style.BEST, style.MUTED, style.PEER, style.LIMIT]
    weights = {label.get_text(): label.get_weight() for label in figure.axes[0].get_yticklabels()}
    assert weights["best"] == "bold" and weights["worse"] == "normal"
    assert "The best is best (600 µs)." in alt_text(figure)


@pytest.mark.parametrize("spread_of_times", [4, 400])
@pytest.mark.parametrize("upto", [None, "tiled"])
def test_every_mark_stands_at_its_time_with_bars_on_a_linear_and_dots_on_a_logarithmic_axis(spread_of_times, upto):
    rungs = (("naive", 6e-4 * spread_of_times), ("tiled", 7.7e-4), ("padded", 6e-4))
    record = made_up(rungs=rungs, peers=(("library", 6.4e-4),))
    figure = ladder_figure(record, upto=upto)
    assert figure.axes[0].get_xscale() == ("log" if spread_of_times > 20 else "linear")
    shown = [*(rungs[:2] if upto else rungs), ("library", 6.4e-4), ("limit", 8 * 16384**2 / 4000e9)]
    found = marks(figure)
    assert [seconds for _, seconds, _ in found] == pytest.approx([seconds for _, seconds in shown])
    heights = [y for _, _, y in found]
    assert heights == sorted(heights) and heights == list(figure.axes[0].get_yticks())
    for (_, seconds), y in zip(shown, heights, strict=True):
        assert values(figure)[y] == [time_text(seconds)]


@pytest.mark.parametrize("slowest", [3e-3, 3e-1])
def test_readers_times_are_pink_beside_those_of_the_record(slowest):
    reference = made_up(rungs=(("naive", slowest), ("tiled", 1e-3), ("padded", 6e-4)))
    mine = made_up(rungs=(("naive", 2 * slowest), ("tiled", 2e-3), ("padded", 1.1e-3)))
    both = SimpleNamespace(ladder=reference.ladder, regime="cold", reference=reference, mine=mine)
    figure = ladder_figure(both)
    found = marks(figure)[:6]
    assert [seconds for _, seconds, _ in found[0::2]] == pytest.approx([2 * slowest, 2e-3, 1.1e-3])
    assert [seconds for _, seconds, _ in found[1::2]] == pytest.approx([slowest, 1e-3, 6e-4])
    assert [which for which, _, _ in found] == [style.YOURS, style.GROUND] * 3
    assert values(figure)[1] == ["2.00 ms", "1.00 ms"]
    assert [column[0] for column in (values(figure)[-1.0][:1], values(figure)[-1.0][1:])] == ["here", "record"]


def test_bars_of_a_committed_record_end_at_its_times():
    """In the picture, not in data units: what a reader measures with a ruler."""
    record = load_record("transpose")
    chosen = select(record)
    figure = ladder_figure(record)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    to_data = axes.transData.inverted()
    drawn = [float(to_data.transform((bar.get_window_extent().x1, 0))[0]) for bar in axes.patches]
    peers = [peer.median_s for peer in reversed(chosen.peers)]
    assert drawn == pytest.approx([*(p.median_s for p in chosen.rungs), *peers, chosen.limit.seconds], rel=1e-6)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [*chosen.ladder.names, *(p.name for p in reversed(chosen.peers)), "limit"]


def test_peers_and_the_limit_have_a_row_and_a_line_up_the_ladder():
    figure = ladder_figure(made_up(peers=(("the library", 1.5e-3),)))
    axes, limit = figure.axes[0], 8 * 16384**2 / 4000e9
    rows = dict(zip((t.get_text() for t in axes.get_yticklabels()), axes.get_yticks(), strict=True))
    assert values(figure)[rows["the library"]] == ["1.50 ms"] and values(figure)[rows["limit"]] == [time_text(limit)]
    lines = {(line.get_xdata()[0], line.get_color(), max(line.get_ydata())) for line in axes.lines}
    assert lines == {(1.5e-3, style.PEER, rows["the library"]), (limit, style.LIMIT, rows["limit"])}


@pytest.mark.parametrize(("slowest", "scale"), [(19 * 6e-4, "linear"), (21 * 6e-4, "log")])
def test_time_axis_is_logarithmic_beyond_a_spread_of_twenty(slowest, scale):
    record = made_up(rungs=(("naive", slowest), ("best", 6e-4)), ceilings={})
    assert ladder_figure(record).axes[0].get_xscale() == scale


def test_unknown_limit_is_not_drawn():
    figure = ladder_figure(made_up(ceilings={}))
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["naive", "tiled", "padded"]


def test_record_alone_has_one_column_of_times():
    reference = made_up()
    alone = SimpleNamespace(ladder=reference.ladder, regime="cold", reference=reference, mine=None)
    assert "3.00 ms" in texts(ladder_figure(alone)) and "here" not in texts(ladder_figure(alone))


def test_unmeasured_size_or_rung_is_refused_by_name():
    with pytest.raises(ValueError, match=r"no rung of transpose was measured at n=5 .* there is n=16384"):
        ladder_figure(made_up(), {"n": 5})
    with pytest.raises(ValueError, match=r"no rung 'swizzled' .* measured are naive, tiled, padded"):
        ladder_figure(made_up(), upto="swizzled")
    with pytest.raises(ValueError, match="no times of this machine"):
        select(made_up(), mine=True)
