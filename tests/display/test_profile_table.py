"""Tables and the picture of recorded profiles: one section for a few launches, and what is pending."""

from __future__ import annotations

import pytest

from climb.bench.stalls import REASONS
from climb.display import profile_table as module
from climb.display import stalls_figure as picture
from climb.display.profile_table import launch_counts, profile_table, sections_table
from climb.display.stalls_figure import stalls_figure
from climb.display.style import alt_text, svg

TILED = ("matmul", "tiled", {"m": 2048, "n": 2048, "k": 2048})
STREAM = ("stencil1d", "untiled", {"n": 1 << 26, "radius": 1})
BOTH = {"tiles": TILED, "stream": STREAM}
COUNTS = dict.fromkeys((f"stalled_{reason}" for reason in REASONS), 0.0) | {"warp_cycles_per_instruction": 10.0}


def test_table_has_a_row_per_launch_with_the_records_numbers():
    lines = profile_table("SpeedOfLight", BOTH).text.splitlines()
    counts = launch_counts(TILED)
    assert lines[0].startswith("GPU Speed Of Light Throughput. ")
    row = next(line for line in lines if line.startswith("tiles"))
    assert f"{counts['l1_data_busy']:.0f} %" in row and f"{counts['issue_busy']:.0f} %" in row
    assert any(line.startswith("stream") for line in lines)


def test_table_says_what_counts_a_launch_that_nobody_has_profiled():
    text = profile_table("SpeedOfLight", {"odd": ("matmul", "tiled", {"m": 7, "n": 7, "k": 7})}).text
    assert "pending" in text and "no hardware counters of tiled at m=7" in text


def test_share_of_nothing_is_none(monkeypatch):
    counts = dict.fromkeys(launch_counts(TILED), 0) | {"nanoseconds": 1}
    monkeypatch.setattr(module, "launch_counts", lambda launch: counts)
    assert (
        profile_table("MemoryWorkloadAnalysis", {"texture": TILED}).text.splitlines()[-1].split()[1:4] == ["none"] * 3
    )


def test_sections_are_listed_with_their_question_and_name_on_the_command_line():
    assert "Which unit is close to its limit?" in sections_table().text and "WarpStateStats" in sections_table().text


def test_picture_names_the_large_reasons_of_each_launch(monkeypatch):
    given = {
        "a": COUNTS | {"stalled_long_scoreboard": 8.0, "stalled_barrier": 1.0},
        "b": COUNTS | {"stalled_barrier": 5.0, "stalled_long_scoreboard": 1.0},
    }
    monkeypatch.setattr(picture, "launch_counts", lambda launch: given[launch])
    figure = stalls_figure({"first": "a", "second": "b"})
    assert alt_text(figure) == ("What warps wait for. first: long_scoreboard 80 percent; second: barrier 50 percent.")
    widths = [round(float(bar.get_width()), 6) for bar in figure.axes[0].patches]
    assert widths == [80, 10, 10, 50, 10, 40]  # each bar: its reasons with a colour, largest first, and the rest
    assert svg(figure) == svg(stalls_figure({"first": "a", "second": "b"}))


def test_picture_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one launch"):
        stalls_figure({})
