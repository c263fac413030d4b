"""No text of a figure lies on another text, on a line or on a mark, none is cut off, and a colour has one meaning."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from tools.overlaps import overlaps
from tools.samples import BASE, LANES, access, made_up
from tools.thorough import sparse

from climb.bench.records import find_record, load_record
from climb.bench.registry import ladder_names, load_ladder
from climb.display import style
from climb.display.figures import (
    access_figure,
    compared,
    ladder_figure,
    lanes_figure,
    overview_figure,
    roofline_figure,
    sweep_figure,
)
from climb.display.label_layout import apart, text_width, wrapped

# The widest chart of each kind, and the ladders of the book at sizes where their charts differ most.
MEASURED = [name for name in ladder_names() if find_record(name) is not None]
HEADLINES = [(name, size) for name in MEASURED for size in load_ladder(name).problem.headline[:2]]
ROOFLINES = (("conv3d", None), ("conv2d", "prefetched"), ("matmul", None), ("convlayer", None), ("classifier", None))


@pytest.mark.parametrize(
    ("name", "size"),
    sparse(HEADLINES, every=6, unpack=True),
    ids=[f"{n}-{i}" for i, (n, _) in enumerate(HEADLINES)],
)
def test_nothing_collides_in_the_ladder(name, size):
    assert overlaps(ladder_figure(load_record(name), size)) == []


@pytest.mark.parametrize(("name", "upto"), ROOFLINES)
def test_nothing_collides_in_the_roofline_and_it_names_every_rung(name, upto):
    record = load_record(name)
    figure = roofline_figure(record, upto=upto)
    assert overlaps(figure) == []
    names = load_ladder(name).names
    shown = names if upto is None else names[: names.index(upto) + 1]
    assert set(shown) <= {text.get_text() for text in figure.axes[0].texts}


def test_nothing_collides_in_the_roofline_with_other_ladders():
    also = [load_record("read"), load_record("fma")]
    assert overlaps(roofline_figure(load_record("matmul"), upto="coalesced", also=also)) == []


def test_nothing_collides_in_the_overview():
    assert overlaps(overview_figure(compared())) == []


def test_nothing_collides_beside_the_readers_own_times():
    for slowest in (3e-3, 3.0):
        reference, mine = (made_up(rungs=(("naive", slowest * f), ("tiled", 1e-3 * f))) for f in (1, 1.01))
        both = SimpleNamespace(ladder=reference.ladder, regime="cold", reference=reference, mine=mine)
        assert overlaps(ladder_figure(both)) == []


def test_nothing_collides_in_crowded_sweeps():
    close = {f"a rung with a long name {i}": [10.0, 50 + i, 97 + 0.3 * i, 98 + 0.1 * i] for i in range(5)}
    short = {"ends early": [1.0, 99.0, float("nan"), float("nan")], "cuBLAS fp32": [20.0, 40, 60, 98.2]}
    sizes = [1 << power for power in (14, 17, 18, 30)]
    for logy in (False, True):
        figure = sweep_figure(
            sizes, {**close, **short}, xlabel="floats", ylabel="a long title that says what is measured, and its unit",
            below={"sectors": [4, 8, 16, 32], "wavefronts": [4, 8, 16, 31.5]}, below_label="per request",
            lines={"limit": 100, "copy ceiling": 96}, logy=logy,
        )  # fmt: skip
        assert overlaps(figure) == []


@pytest.mark.thorough
def test_nothing_collides_in_pictures_of_lanes():
    pictures = [access(BASE + 4 * LANES), access(BASE + 4096 * LANES), access(4 * LANES, kind="shared load")]
    for picture in pictures:
        assert overlaps(access_figure(picture, titles=("a title",))) == []
    assert overlaps(lanes_figure({"image, at an edge of the picture": range(32), "shuffled": [300] * 32})) == []


# One meaning for each colour.


def test_blue_is_the_line_under_discussion_and_a_peer_has_its_colour_in_a_sweep():
    lines = {"limit": 5, "cuBLAS": 4, "equally fast": 1}
    series = {"a": [1, 2], "b": [2, 3], "cuDNN fp32": [1, 3]}
    colours = {}
    for newest in (None, "b"):
        axes = sweep_figure([1, 2], series, xlabel="x", ylabel="y", lines=lines, newest=newest).axes[0]
        colours[newest] = {text.get_text(): text.get_color() for text in axes.texts}
        assert colours[newest]["cuDNN fp32"] == colours[newest]["cuBLAS"] == style.PEER
        assert colours[newest]["limit"] == style.LIMIT and colours[newest]["equally fast"] == style.QUIET
    assert colours["b"]["b"] == style.BEST and colours["b"]["a"] == style.QUIET
    meanings = {style.BEST, style.PEER, style.LIMIT, style.YOURS, style.MUTED}
    assert not {colours[None]["a"], colours[None]["b"]} & meanings and not set(style.SERIES) & meanings


def test_every_peer_of_a_record_is_known_as_one():
    for name in MEASURED:
        points = load_record(name).points
        assert all(style.is_peer(point.name) == (point.kind == "peer") for point in points)


# The checker must be able to fail.


def drawing():
    """An empty figure of 3 x 2 inches with axes from 0 to 1, and no numbers."""
    figure = Figure(figsize=(3, 2))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.text(0.5, 0.5, "here", ha="center", va="center")
    return figure, axes


def test_checker_accepts_what_is_clear():
    figure, axes = drawing()
    axes.text(0.5, 0.8, "there", ha="center", va="center")
    axes.plot([0.1, 0.9], [0.65, 0.65], marker="o")
    axes.barh(0.2, 0.9, height=0.1)
    assert overlaps(figure) == []


@pytest.mark.parametrize(
    ("add", "said"),
    [
        (lambda axes: axes.text(0.52, 0.52, "there"), "'here' lies on 'there'"),
        (lambda axes: axes.plot([0.1, 0.9], [0.45, 0.55]), "'here' is struck by a line"),
        (lambda axes: axes.plot([0.5], [0.5], "o"), "'here' is struck by a mark"),
        (lambda axes: axes.barh(0.5, 0.9, height=0.4), "'here' is struck by a bar"),
        (lambda axes: axes.add_collection(LineCollection([[(0.5, 0), (0.5, 1)]])), "'here' is struck by a line"),
        (lambda axes: axes.text(0.95, 0.9, "too long a word"), "'too long a word' is cut off"),
        (lambda axes: axes.text(0.2, 0.2, "up", rotation=45) and axes.plot([0.2, 0.3], [0.21, 0.36]), "'up' is struck"),
    ],
)
def test_checker_finds_what_collides(add, said):
    figure, axes = drawing()
    add(axes)
    assert any(problem.startswith(said) for problem in overlaps(figure))


def test_checker_finds_a_number_of_an_axis_under_a_line_and_no_number_beyond_the_limits():
    figure, axes = drawing()
    axes.set_axis_on()
    axes.set_position((0.2, 0.3, 0.6, 0.4))
    axes.set_xticks([0, 1, 2])
    assert overlaps(figure) == []
    axes.annotate("on top", (0.0, -0.2), annotation_clip=False)
    assert any("'on top'" in problem for problem in overlaps(figure))


# Placing.


def test_boxes_are_moved_apart_within_bounds_and_in_order():
    assert apart([5.0, 1.0], [1.0, 1.0], 0, 10) == [5.0, 1.0]
    assert apart([5.0, 5.0, 5.2], [1.0, 1.0, 2.0], 0, 10) == pytest.approx([3.5667, 4.5667, 6.0667], abs=1e-3)
    assert apart([9.9, 9.8], [1.0, 1.0], 0, 10) == [9.5, 8.5]
    assert apart([0.0, 9.0], [1.0, 1.0], 0, 10) == [0.5, 9.0]


def test_text_is_broken_into_even_lines_that_fit():
    assert text_width("mm") == pytest.approx(2 * text_width("m")) and text_width("m", bold=True) > text_width("m")
    assert wrapped("1024 to 1024, length 4", 120) == "1024 to 1024,\nlength 4" and wrapped("limit", 5) == "limit"
    assert all(text_width(line) <= 90 for line in wrapped("one two three four five six", 90).split("\n"))
