"""All figures: one style, and the same bytes every time; those of lanes and of time against error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
from matplotlib import font_manager
from tools.drawn import colour, dots
from tools.samples import BASE, LANES, access, made_up

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

ROOT = Path(__file__).resolve().parents[2]


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


@pytest.mark.thorough
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
