"""Figures of timings: what they draw, what they refuse, and that they are the same bytes every time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib import font_manager
from tiny_ladder import made, scale
from tools.samples import BASE, CEILINGS, LANES, access, made_up, texts

from climb.bench.records import load_record
from climb.bench.timings import Timings
from climb.bench.units import significant, time_text
from climb.bench.work import Work
from climb.display import style
from climb.display.figures import (
    access_figure,
    alt_text,
    draw_readme_pictures,
    error_figure,
    ladder_figure,
    lanes_figure,
    overview_figure,
    roofline_figure,
    save,
    sweep_figure,
)
from climb.display.selection import select

ROOT = Path(__file__).resolve().parents[2]
# The ladder.


def colour(artist) -> str:
    """The colour of a bar or of a dot."""
    face = artist.get_facecolor() if hasattr(artist, "get_facecolor") else artist.get_markerfacecolor()
    return matplotlib.colors.to_hex(face)


def dots(axes):
    """The dots of a chart: lines of one point."""
    return [line for line in axes.lines if len(line.get_xdata()) == 1]


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


# Roofline, sweep, overview.


def test_roofline_has_its_ridge_where_the_ceilings_meet():
    figure = roofline_figure(made_up("matmul", flops=4000))
    assert f"ridge {significant(60e12 / 4000e9, 2)}" in texts(figure)
    dots = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    heights = [float(d.get_ydata()[0]) for d in dots if float(d.get_xdata()[0]) == pytest.approx(500)]
    assert heights == pytest.approx([4000 * 16384**2 / t for t in (3e-3, 1e-3, 6e-4)])


def test_every_dot_of_a_committed_record_stands_at_its_intensity_and_rate():
    """The dots of `matmul`, and of another ladder beside them the best one; the roof is what was measured."""
    record, other = load_record("matmul"), load_record("fma")
    chosen, beside = select(record), select(other)
    axes = roofline_figure(record, also=[other]).axes[0]
    dots = [line for line in axes.lines if len(line.get_xdata()) == 1]
    ridge, *dots = [(float(d.get_xdata()[0]), float(d.get_ydata()[0])) for d in dots]
    expected = [(p.flops / p.bytes, p.flops / p.median_s) for p in (*chosen.rungs, beside.best)]
    assert len(dots) == len(chosen.rungs) + 1
    assert np.array(dots) == pytest.approx(np.array(expected))
    bandwidth, peak = record.ceilings["copy_gb_s"] * 1e9, record.ceilings["fma_tflop_s"] * 1e12
    assert ridge == pytest.approx((peak / bandwidth, peak))
    (roof,) = (line for line in axes.lines if len(line.get_xdata()) == 3)
    x, y = np.array(roof.get_xdata()), np.array(roof.get_ydata())
    assert y == pytest.approx(np.minimum(x * bandwidth, peak))


def test_dot_on_the_roof_has_its_name_no_higher_than_the_roof():
    peak = 60e12
    record = made_up("matmul", rungs=(("naive", 1.0), ("best", 4000 * 16384**2 / peak)), flops=4000)
    axes = roofline_figure(record).axes[0]
    heights = {t.get_text(): t.xy[1] for t in axes.texts if t.get_text() in record.ladder.names}
    roof = (axes.transData + axes.transAxes.inverted()).transform((1.0, peak))[1]
    assert heights["naive"] < heights["best"] <= roof + 1e-9
    assert {t.get_text(): t.get_color() for t in axes.texts}["best"] == style.BEST


def test_roofline_names_other_ladders_with_their_best_rung():
    other = made_up("fma", rungs=(("one", 1e-2), ("two", 1e-3)), flops=2000)
    shown = texts(roofline_figure(made_up("matmul", flops=4000), also=[other]))
    assert "fma: two" in shown and not any("one" in t for t in shown)


def test_roofline_has_roofs_of_other_pipes():
    record = made_up("matmul", flops=4000, ceilings={**CEILINGS, "issue_ginst_s": 1000.0, "int32_top_s": 33.0})
    figure = roofline_figure(record, pipes=["single", "issue", "int32"])
    # Half of 60 TFLOP/s; 1000 G instructions of 32 lanes with two operations each; and the integers' own.
    shown = {text.replace("\n", " ") for text in texts(figure)}
    assert {"single operations, 30.0 T", "issue slots, 64.0 T", "integer multiply-adds, 33.0 T"} <= shown
    assert "Another roof: issue slots, 64.0 TFLOP/s." in alt_text(figure)
    with pytest.raises(ValueError, match="the roof of 'tensor_tf32' needs the ceiling tensor_tf32_tflop_s"):
        roofline_figure(record, pipes=["tensor_tf32"])


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


def test_roofline_refuses_a_problem_without_flops_and_a_record_without_ceilings():
    with pytest.raises(ValueError, match="transpose counts no FLOPs"):
        roofline_figure(made_up())
    with pytest.raises(ValueError, match="needs the ceiling copy_gb_s"):
        roofline_figure(made_up(flops=1, ceilings={"fma_tflop_s": 60.0}))


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


# The lanes picture.


def test_lanes_figure_shows_the_wait_for_the_longest_lane():
    """Lane 3 works 10 steps and 31 lanes 1 step: 41 of 320 lane-steps, and a pale bar of 10 behind each."""
    work = [1] * 32
    work[3] = 10
    figure = lanes_figure({"one heavy": work, "all alike": [4] * 32})
    assert "41 of the 320 steps" in alt_text(figure) and "128 of the 128 steps" in alt_text(figure)
    first = figure.axes[0]
    assert first.get_title(loc="left") == "one heavy\n41 of 320 lane-steps"
    widths = [bar.get_width() for bar in first.patches]
    assert widths == [10] * 32 + work


@pytest.mark.parametrize("warps", [{}, {"short": [1] * 31}, {"negative": [1] * 31 + [-1]}])
def test_lanes_that_do_not_form_a_warp_are_refused(warps):
    with pytest.raises(ValueError, match="lanes"):
        lanes_figure(warps)


# One style, the same bytes.


DRAW = """
import sys
sys.path[:0] = ["tests"]
import tools.samples as t
from climb.display import figures as f, style
figures = [f.ladder_figure(t.made_up(peers=(("library", 1.5e-3),))), f.access_figure(t.access(t.BASE + 28 * t.LANES)),
           f.roofline_figure(t.made_up(flops=4000)), f.overview_figure([t.made_up()]),
           f.sweep_figure([1, 2, 4], {"a": [1, 2, 3], "b": [2, 2, 2]}, xlabel="x", ylabel="y"),
           f.lanes_figure({"a": range(32)})]
sys.stdout.buffer.write("".join(map(style.svg, figures)).encode())
"""


def test_figures_are_the_same_bytes_in_every_session_and_need_no_display(tmp_path):
    """Two processes, with other hash seeds, and in one a matplotlibrc that changes everything."""
    (tmp_path / "matplotlibrc").write_text(
        "font.size: 30\nfigure.figsize: 1, 1\nsvg.fonttype: none\naxes.grid: True\nbackend: TkAgg\n", encoding="utf-8"
    )
    drawn = []
    for seed, extra in (("1", {}), ("2", {"MATPLOTLIBRC": str(tmp_path)})):
        environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "MPLBACKEND")}
        environment |= {"PYTHONHASHSEED": seed, **extra}
        drawn.append(
            subprocess.run([sys.executable, "-c", DRAW], env=environment, capture_output=True, check=True).stdout
        )
    assert drawn[0] == drawn[1]
    assert drawn[0].count(b"<svg ") == 6


def test_svg_has_no_date_no_creator_and_an_opaque_white_background():
    text = style.svg(ladder_figure(made_up()))
    assert "<dc:date>" not in text and "<dc:creator>" not in text and matplotlib.__version__ not in text
    assert re.search(r'id="patch_1">\s*<path [^>]*style="fill: #ffffff', text)


def test_figures_have_no_text_below_eleven_points():
    figures = [
        ladder_figure(made_up(peers=(("library", 1.5e-3),))),
        access_figure(access(BASE + 128 * LANES)),
        roofline_figure(made_up(flops=4000)),
        overview_figure([made_up()]),
        sweep_figure([1, 2], {"a": [1, 2], "b": [2, 1]}, xlabel="x", ylabel="y"),
        lanes_figure({"a": range(32)}),
    ]
    for figure in figures:
        figure.draw_without_rendering()  # the labels of ticks are written when they are drawn
        found = [t for t in figure.findobj(matplotlib.text.Text) if t.get_text()]
        assert found and min(t.get_fontsize() for t in found) >= 11


def test_drawing_leaves_the_readers_settings_alone():
    before, fonts = dict(matplotlib.rcParams), font_manager.fontManager.ttflist
    ladder_figure(made_up())
    assert dict(matplotlib.rcParams) == before and font_manager.fontManager.ttflist is fonts


def test_figures_do_not_depend_on_the_fonts_of_the_machine(monkeypatch):
    expected = style.svg(ladder_figure(made_up()))
    entry = font_manager.ttfFontProperty(font_manager.get_font(font_manager.findfont("DejaVu Serif")))
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [replace(entry, name="DejaVu Sans")])
    font_manager.fontManager._findfont_cached.cache_clear()  # what was found among the fonts of before
    assert style.svg(ladder_figure(made_up())) == expected


def test_save_writes_svg_and_png(tmp_path):
    figure = ladder_figure(made_up())
    assert save(figure, tmp_path / "a.svg").read_text(encoding="utf-8") == style.svg(figure)
    assert save(figure, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_committed_pictures_equal_those_drawn_from_the_records(tmp_path):
    for drawn in draw_readme_pictures(tmp_path):
        committed = ROOT / "book" / "_static" / drawn.name
        assert committed.exists() and committed.read_bytes() == drawn.read_bytes(), (
            f"book/_static/{drawn.name} is not what the records say; run: climb figures"
        )


# Time against error.


def test_error_figure_has_a_mark_for_each_point_and_says_all_of_them():
    points = {"split": (6e-4, 4.9e-7), "plain": (2e-3, 3e-5), "cuBLAS fp32": (2.7e-3, 2.6e-6)}
    figure = error_figure(points, best="split")
    marks = {(float(d.get_xdata()[0]), float(d.get_ydata()[0])): colour(d) for d in dots(figure.axes[0])}
    assert marks == dict(zip(points.values(), (style.BEST, style.MUTED, style.PEER), strict=True))
    assert "split: 600 µs, 4.9e-07." in alt_text(figure)


@pytest.mark.parametrize(
    ("points", "says"), [({"a": (1.0, 1.0)}, "best is 'b'"), ({"b": (1.0, 0.0)}, "b has time and error")]
)
def test_error_figure_refuses_what_has_no_place_on_logarithmic_axes(points, says):
    with pytest.raises(ValueError, match=says):
        error_figure(points, best="b")
