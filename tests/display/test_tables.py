"""Tables and the card: what they hold, and which rows they refuse."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest
from tiny_ladder import made, scale
from tools.samples import FIRST, made_up_timings, rung

from climb.bench.machine_code import opcode_counts, opcodes
from climb.bench.timings import Timings
from climb.bench.work import Work
from climb.display.card import card
from climb.display.cell_output import table
from climb.display.tables import counters_table, sass, timing_table
from climb.toolchain import compile_cuda

# SASS.


def test_sass_lists_opcodes_by_source_line():
    shown = repr(sass(rung("first", FIRST), {"n": 1}, only="LDG|STG")).split("\n")
    assert shown[0].split() == ["line", "instruction", "times", "in", "the", "code", "source"]
    assert [line.split()[0] for line in shown[2:]] == ["6", "10"]
    assert "LDG.E" in shown[2] and shown[2].endswith("tile[threadIdx.x] = from[threadIdx.x];")
    assert "STG.E" in shown[3] and shown[3].endswith("to[threadIdx.x] = tile[threadIdx.x];")


def test_sass_without_a_matching_instruction_is_refused():
    with pytest.raises(ValueError, match="no instruction of first starts with HMMA"):
        sass(rung("first", FIRST), {"n": 1}, only="HMMA")


def test_opcodes_are_counted_by_file_and_line():
    compiled = compile_cuda(FIRST, filename="made_up/copy.cu", name_expressions=("copy",))
    counted = opcode_counts(compiled, ["copy"], "STG|STS")
    assert {(file, line): count for (file, line, _), count in counted.items()} == {
        ("made_up/copy.cu", 6): 1,
        ("made_up/copy.cu", 10): 1,
    }


def test_opcodes_are_listed_in_program_order_with_predicates():
    text = "__global__ void guarded(float* p, int n) { if (threadIdx.x < n) { p[threadIdx.x] *= 2.0f; } }"
    assert [o.split()[-1] for o in opcodes(text, "guarded", "LDG|STG")] == ["LDG.E", "STG.E"]
    assert "@P0 EXIT" in opcodes(text, "guarded")
    compiled = compile_cuda(FIRST, filename="made_up/copy.cu", name_expressions=("copy",))
    assert [o[:3] for o in opcodes(compiled, "copy", "LDG|STG|STS|LDS")] == ["LDG", "STS", "LDS", "STG"]


# Tables.


def test_table_has_text_and_html_with_the_newest_row_marked():
    shown = table([["naive", 32], {"rung": "a <b>", "sectors": None}], ["rung", "sectors"], caption="counts", newest=-1)
    assert repr(shown) == "counts\nrung   sectors\n-----  -------\nnaive       32\na <b>"
    assert "<caption>counts</caption>" in shown.html
    assert '<tr class="rl-newest"><td class="rl-text">a &lt;b&gt;</td><td></td></tr>' in shown.html


@pytest.mark.parametrize(
    ("row", "message"),
    [(["a"], "1 cells for 2 columns"), ({"x": 1}, "x, which is no column"), (["a", 0.1], "holds the float 0.1")],
)
def test_row_that_does_not_fit_the_columns_is_refused(row, message):
    with pytest.raises(ValueError, match=message):
        table([row], ["a", "b"])


def counted(kind, line, requests, sectors, wavefronts, ideal, width=4):
    return SimpleNamespace(
        kind=kind, line=line, text=f"  line {line};", width=width, requests=requests, sectors=sectors,
        ideal_sectors=ideal, wavefronts=wavefronts, ideal_wavefronts=ideal,
    )  # fmt: skip


BEFORE = SimpleNamespace(
    lines=[counted("shared load", 26, 10, 0, 320, 10), counted("global load", 17, 10, 45, 0, 40)], warp_instructions=700
)
AFTER = SimpleNamespace(
    lines=[counted("shared load", 26, 10, 0, 10, 10), counted("global load", 17, 20, 40, 0, 40)], warp_instructions=650
)


def rows_of(shown):
    return [re.split(r"  +", line.strip()) for line in repr(shown).split("\n")[2:]]


def test_counters_table_has_a_row_for_each_line_and_kind():
    assert rows_of(counters_table(BEFORE)) == [
        ["17", "global load, 4 B", "10", "4.50 sectors", "4", "line 17;"],
        ["26", "shared load, 4 B", "10", "32 wavefronts", "1", "line 26;"],
    ]


def test_counters_table_gives_the_bytes_and_sectors_of_a_request_to_the_copy_engine():
    box = SimpleNamespace(**vars(counted("tma load", 30, 2, 512, 0, 512, width=1)), lanes=2 * 8192)
    one = SimpleNamespace(lines=[box], warp_instructions=1)
    assert rows_of(counters_table(one)) == [["30", "tma load, 8192 B", "2", "256 sectors", "256", "line 30;"]]
    assert rows_of(counters_table(one, before=one))[0] == ["tma load: sectors / request", "256", "256"]


def test_counters_table_compares_before_and_after_by_kind_of_access():
    assert rows_of(counters_table(AFTER, before=BEFORE)) == [
        ["global load: sectors / request", "4.50", "2"],
        ["global load: requests", "10", "20"],
        ["shared load: wavefronts / request", "32", "1"],
        ["shared load: bank conflicts", "310", "0"],
        ["shared load: requests", "10", "10"],
        ["warp instructions", "700", "650"],
    ]


def test_counters_table_shows_a_dash_for_an_access_that_one_side_lacks():
    without = SimpleNamespace(lines=AFTER.lines[1:], warp_instructions=1)
    rows = {row[0]: row[1:] for row in rows_of(counters_table(without, before=BEFORE))}
    assert rows["shared load: wavefronts / request"] == ["32", "-"]
    assert rows["shared load: requests"] == ["10", "0"]


def test_timing_table_marks_slow_clocks_and_shows_a_shortcuts_own_limit_and_errors():
    half = replace(scale.vector, work=lambda size: Work(read=2 * size["n"], written=2 * size["n"]))
    ladder = replace(scale.ladder, rungs=(scale.plain, half))
    clocks = {"plain": 1980, "vector": 1642, "library": 1980}
    points = tuple(
        msgspec.structs.replace(p, sampling={"sm_clock_mhz": clocks[p.name]}, max_component_error=2.5e-8)
        for p in made.record().points if p.name in clocks
    )  # fmt: skip
    times = Timings(ladder, "cold", msgspec.structs.replace(made.record(), points=points))
    shown = timing_table(times, errors=True)
    lines = repr(shown).split("\n")
    assert lines[0].endswith("2026-11-20. † The SM clock was lower than its 1980 MHz: vector at 1642 MHz")
    rows = {row[0]: row for row in (re.split(r"  +", line.strip()) for line in lines[1:])}
    # The problem's 8192 bytes take 1 us of vector's 2 us, its own 4096 bytes half of that.
    assert rows["vector"][1:5] == ["2.00 µs †", "4.10 GB/s", "50 %", "25 %"] and "2.5e-08" in rows["vector"]
    assert rows["plain"][1] == "4.00 µs" and "25 %" in rows["plain"] and rows["plain"].count("1e-08") == 1
    assert "error" not in repr(timing_table(times))


def test_timing_table_has_rate_limit_peer_and_verdict():
    shown = timing_table(made_up_timings())
    lines = repr(shown).split("\n")
    assert lines[0] == "A copy, n = 10, cold. A GPU, 2026-01-02"
    assert [re.split(r"  +", line.strip()) for line in lines[3:]] == [
        ["naive", "8.00 ms", "1000 GB/s", "25 %", "0.31x"],
        ["float4", "4.00 ms", "2000 GB/s", "50 %", "0.62x", "2.0x faster"],
        ["same", "4.01 ms", "2000 GB/s", "50 %", "0.62x", "same"],
        ["worse", "5.00 ms", "1600 GB/s", "40 %", "0.50x", "1.2x slower"],
        ["coarse", "500 µs", "16000 GB/s", "5.0x"],  # faster than the limit: it computes in another way
        ["library", "2.50 ms", "3200 GB/s", "80 %"],
        ["limit", "2.00 ms", "100 %"],
    ]
    newest = [line for line in shown.html.split("\n") if "rl-newest" in line]
    assert len(newest) == 1 and "worse" in newest[0]


def test_timing_table_stops_at_a_rung_and_shows_the_readers_times():
    timings = made_up_timings()
    timings.mine = SimpleNamespace(**{**vars(timings.reference), "points": timings.reference.points[:2]})
    shown = repr(timing_table(timings, upto="float4"))
    assert "time here" in shown and "worse" not in shown


# The card.


def test_card_shows_prerequisites_reading_time_ladder_and_gpu():
    shown = card(before=["a warp", "a <grid>"], minutes=20, timings=made_up_timings())
    assert repr(shown).split("\n") == [
        "Before this: a warp; a <grid>",
        "Reading time: 20 minutes",
        "Ladder copy: naive → float4 → same → worse",
        "Measured on: A GPU, 2026-01-02",
    ]
    assert "a &lt;grid&gt;" in shown.html and shown.html.startswith('<dl class="rl-card">')


def test_card_without_times_is_short_and_zero_minutes_are_refused():
    assert repr(card(before=[], minutes=1)) == "Before this: nothing\nReading time: 1 minute"
    with pytest.raises(ValueError, match="at least 1"):
        card(before=[], minutes=0)


def test_card_ends_at_the_chapters_last_rung():
    shown = repr(card(before=[], minutes=1, timings=made_up_timings(), upto="float4"))
    assert "Ladder copy: naive → float4\n" in shown
    assert "→ worse\n" in repr(card(before=[], minutes=1, timings=made_up_timings(), upto="another"))


def test_number_keeps_its_unit_and_a_long_size_may_wrap():
    html = table([["a", "4.2 TB/s"], ["b", "8192 x 8192 x 11 x 11"]], ["name", "size"]).html
    assert "<td>4.2\u00a0TB/s</td>" in html
    assert "<td>8192 x 8192 x 11 x 11</td>" in html
