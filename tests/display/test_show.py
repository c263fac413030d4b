"""What a chapter displays: right, refused when it cannot be, and the same on every run."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from climb.bench.problem import Launch
from climb.display import show
from climb.display.show import card, counters_table, diff, launch, number, sass, say, source, table, timing_table
from climb.display.tables import opcode_counts, opcodes
from climb.toolchain import compile_cuda

ROOT = Path(__file__).resolve().parents[2]
FIRST = """// Idea: copy.
constexpr int kTile = 32;  // one comment /* in
__global__ void copy(const float* from, float* to)
{
    __shared__ float tile[kTile];
    tile[threadIdx.x] = from[threadIdx.x];
    /* one
       two < three */
    __syncthreads();
    to[threadIdx.x] = tile[threadIdx.x];
}
"""
SECOND = FIRST.replace("tile[kTile];", "tile[kTile + 1];  // a < b")


def rung(name, text, previous=None):
    def compiled(size):
        return compile_cuda(text, filename="made_up/copy.cu", name_expressions=("copy",))

    launches = (Launch("copy", (1,), (32,), ("from", "to")), Launch("copy", (2, 3), (8, 4), ("from", "to"), 128))
    return SimpleNamespace(name=name, source=text, previous=previous, compiled=compiled, launches=lambda size: launches)


def text_of(html):
    return unescape(re.sub(r"<[^>]+>", "", html))


# Source, diff, launch.


def test_source_shows_every_line_of_the_file_with_its_number():
    shown = source(rung("first", FIRST))
    expected = [f"{n:2}  {line}".rstrip() for n, line in enumerate(FIRST.rstrip("\n").split("\n"), 1)]
    assert repr(shown).split("\n") == expected
    assert [line.rstrip() for line in text_of(shown.html).rstrip("\n").split("\n")] == expected


def test_an_excerpt_keeps_the_numbers_of_the_file_and_knows_its_comments():
    shown = source(rung("first", FIRST), lines=(8, 9))
    assert repr(shown) == "8         two < three */\n9      __syncthreads();"
    comment = shown.html.split("\n")[0]
    assert 'class="cm"' in comment, "the second line of a comment is a comment, though it opens in a line not shown"


@pytest.mark.parametrize("lines", [(0, 3), (3, 2), (5, 12)])
def test_lines_that_the_file_does_not_have_are_refused(lines):
    with pytest.raises(ValueError, match="not in the file, which has 11 lines"):
        source(rung("first", FIRST), lines=lines)


def test_a_diff_shows_what_came_in_and_what_went_out_and_marks_it_without_colour():
    first = rung("first", FIRST)
    shown = diff(rung("second", SECOND, first))
    lines = repr(shown).split("\n")
    assert lines[0].strip() == "first to second: 1 line in, 1 line out"
    assert "-     __shared__ float tile[kTile];" in lines
    assert "+     __shared__ float tile[kTile + 1];  // a < b" in lines
    assert lines[-1].strip() == "... 4 lines as before"
    assert [line for line in lines if line[:1] in "+-"] == [line for line in lines if "__shared__" in line]
    assert text_of(shown.html).replace(" ", "") == repr(shown).replace("\n", "").replace(" ", "")
    assert shown.html.count('class="rl-add"') == shown.html.count('class="rl-del"') == 1
    assert "a &lt; b" in shown.html


def test_applying_a_diff_to_the_old_file_gives_the_new():
    """Gaps stand for lines of the new file that are as before; everything else must reproduce both files."""
    shown = repr(diff(rung("second", SECOND, rung("first", FIRST)))).split("\n")[1:]
    new = SECOND.rstrip("\n").split("\n")
    at = 0
    for line in shown:
        if gap := re.fullmatch(r"  \.\.\. (\d+) lines? as before", line):
            at += int(gap[1])
        elif not line.startswith("-"):
            assert line[2:] == new[at].rstrip()
            at += 1
    assert at == len(new)


def test_a_diff_needs_something_before_and_something_different():
    with pytest.raises(ValueError, match="first is the first rung"):
        diff(rung("first", FIRST))
    with pytest.raises(ValueError, match="the same source"):
        diff(rung("second", FIRST, rung("first", FIRST)))


def test_launches_are_written_as_cuda_writes_them():
    shown = repr(launch(rung("first", FIRST), {"n": 1}))
    assert shown == "copy<<<1, 32>>>(from, to);\ncopy<<<dim3(2, 3), dim3(8, 4), 128>>>(from, to);"


# SASS.


def test_sass_lists_opcodes_by_source_line():
    shown = repr(sass(rung("first", FIRST), {"n": 1}, only="LDG|STG")).split("\n")
    assert shown[0].split() == ["line", "instruction", "times", "in", "the", "code", "source"]
    assert [line.split()[0] for line in shown[2:]] == ["6", "10"]
    assert "LDG.E" in shown[2] and shown[2].endswith("tile[threadIdx.x] = from[threadIdx.x];")
    assert "STG.E" in shown[3] and shown[3].endswith("to[threadIdx.x] = tile[threadIdx.x];")


def test_sass_refuses_to_show_nothing():
    with pytest.raises(ValueError, match="no instruction of first starts with HMMA"):
        sass(rung("first", FIRST), {"n": 1}, only="HMMA")


def test_opcodes_are_counted_by_file_and_line():
    compiled = compile_cuda(FIRST, filename="made_up/copy.cu", name_expressions=("copy",))
    counted = opcode_counts(compiled, ["copy"], "STG|STS")
    assert {(file, line): count for (file, line, _), count in counted.items()} == {
        ("made_up/copy.cu", 6): 1,
        ("made_up/copy.cu", 10): 1,
    }


def test_opcodes_stand_in_the_order_of_the_program_with_their_predicates():
    text = "__global__ void guarded(float* p, int n) { if (threadIdx.x < n) { p[threadIdx.x] *= 2.0f; } }"
    assert [o.split()[-1] for o in opcodes(text, "guarded", "LDG|STG")] == ["LDG.E", "STG.E"]
    assert "@P0 EXIT" in opcodes(text, "guarded")
    compiled = compile_cuda(FIRST, filename="made_up/copy.cu", name_expressions=("copy",))
    assert [o[:3] for o in opcodes(compiled, "copy", "LDG|STG|STS|LDS")] == ["LDG", "STS", "LDS", "STG"]


# Tables.


def test_a_table_as_text_and_as_html():
    shown = table([["naive", 32], {"rung": "a <b>", "sectors": None}], ["rung", "sectors"], caption="counts", newest=-1)
    assert repr(shown) == "counts\nrung   sectors\n-----  -------\nnaive       32\na <b>"
    assert "<caption>counts</caption>" in shown.html
    assert '<tr class="rl-newest"><td class="rl-text">a &lt;b&gt;</td><td></td></tr>' in shown.html


@pytest.mark.parametrize(
    ("row", "message"),
    [(["a"], "1 cells for 2 columns"), ({"x": 1}, "x, which is no column"), (["a", 0.1], "holds the float 0.1")],
)
def test_a_row_that_does_not_fit_is_refused(row, message):
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


def test_the_counters_table_has_a_row_for_each_line_and_kind():
    assert rows_of(counters_table(BEFORE)) == [
        ["17", "global load, 4 B", "10", "4.50 sectors", "4", "line 17;"],
        ["26", "shared load, 4 B", "10", "32 wavefronts", "1", "line 26;"],
    ]


def test_before_and_after_are_compared_by_kind_of_access():
    assert rows_of(counters_table(AFTER, before=BEFORE)) == [
        ["global load: sectors / request", "4.50", "2"],
        ["global load: requests", "10", "20"],
        ["shared load: wavefronts / request", "32", "1"],
        ["shared load: bank conflicts", "310", "0"],
        ["shared load: requests", "10", "10"],
        ["warp instructions", "700", "650"],
    ]


def test_an_access_that_came_or_went_is_a_dash():
    without = SimpleNamespace(lines=AFTER.lines[1:], warp_instructions=1)
    rows = {row[0]: row[1:] for row in rows_of(counters_table(without, before=BEFORE))}
    assert rows["shared load: wavefronts / request"] == ["32", "-"]
    assert rows["shared load: requests"] == ["10", "0"]


def made_up_timings(mine=None):
    def point(kind, name, seconds):
        spread = 0.01 * seconds
        return SimpleNamespace(
            name=name, kind=kind, size=size, regime="cold", median_s=seconds, p25_s=seconds - spread,
            p75_s=seconds + spread, flops=0, bytes=8 * 10**9,
        )  # fmt: skip

    size = {"n": 10}
    problem = SimpleNamespace(
        title="A copy", headline=(size,), outputs=(), bytes=lambda size: 8 * 10**9, flops=lambda size: 0
    )
    ladder = SimpleNamespace(name="copy", problem=problem, names=("naive", "float4", "same", "worse"))
    points = [
        point(*p)
        for p in [
            ("rung", "naive", 0.008),
            ("rung", "float4", 0.004),
            ("rung", "same", 0.00401),
            ("rung", "worse", 0.005),
            ("peer", "library", 0.0025),
            ("peer", "coarse", 0.0005),
        ]
    ]
    record = SimpleNamespace(
        ladder="copy", ceilings={"read_gb_s": 4000.0}, points=points, date="2026-01-02T03:04:05", gpu="A GPU"
    )
    return SimpleNamespace(ladder=ladder, regime="cold", reference=record, mine=mine)


def test_the_timing_table_has_rate_limit_peer_and_verdict():
    shown = timing_table(made_up_timings())
    lines = repr(shown).split("\n")
    assert lines[0] == "A copy, n = 10, cold. A GPU, 2026-01-02"
    assert [re.split(r"  +", line.strip()) for line in lines[3:]] == [
        ["naive", "8.00 ms", "1000 GB/s", "25 %", "0.31x"],
        ["float4", "4.00 ms", "2000 GB/s", "50 %", "0.62x", "2.0x faster"],
        ["same", "4.01 ms", "2000 GB/s", "50 %", "0.62x", "same"],
        ["worse", "5.00 ms", "1600 GB/s", "40 %", "0.50x", "1.2x slower"],
        ["coarse", "500 µs", "16000 GB/s", "400 %", "5.0x"],
        ["library", "2.50 ms", "3200 GB/s", "80 %"],
        ["limit", "2.00 ms", "100 %"],
    ]
    newest = [line for line in shown.html.split("\n") if "rl-newest" in line]
    assert len(newest) == 1 and "worse" in newest[0]


def test_the_timing_table_stops_at_a_rung_and_shows_the_readers_times():
    timings = made_up_timings()
    timings.mine = SimpleNamespace(**{**vars(timings.reference), "points": timings.reference.points[:2]})
    shown = repr(timing_table(timings, upto="float4"))
    assert "time here" in shown and "worse" not in shown


# The card.


def test_the_card_says_what_to_know_how_long_and_whose_times():
    shown = card(before=["a warp", "a <grid>"], minutes=20, timings=made_up_timings())
    assert repr(shown).split("\n") == [
        "Before this: a warp, a <grid>",
        "Reading time: 20 minutes",
        "Ladder copy: naive → float4 → same → worse",
        "Measured on: A GPU, 2026-01-02",
    ]
    assert "a &lt;grid&gt;" in shown.html and shown.html.startswith('<dl class="rl-card">')


def test_a_card_without_times_and_one_with_nonsense():
    assert repr(card(before=[], minutes=1)) == "Before this: nothing\nReading time: 1 minute"
    with pytest.raises(ValueError, match="at least 1"):
        card(before=[], minutes=0)


def test_a_card_ends_where_the_chapter_ends():
    shown = repr(card(before=[], minutes=1, timings=made_up_timings(), upto="float4"))
    assert "Ladder copy: naive → float4\n" in shown
    assert "→ worse\n" in repr(card(before=[], minutes=1, timings=made_up_timings(), upto="another"))


# Numbers for prose.


def test_say_prints_what_it_publishes(capsys):
    say(ratio=2.13456, sectors=32, text="it's 4 µs", wide=np.float64(1234.5), count=np.int32(7))
    assert capsys.readouterr().out.split("\n")[:-1] == [
        "ratio = 2.13",
        "sectors = 32",
        "text = it's 4 µs",
        "wide = 1230",
        "count = 7",
    ]
    number("fine", 1.23456, ".2f")
    assert capsys.readouterr().out == "fine = 1.23\n"


@pytest.mark.parametrize("value", ["", "  ", "'quoted'", "two\nlines"])
def test_text_that_would_not_survive_in_prose_is_refused(value):
    with pytest.raises(ValueError, match="prose takes one line"):
        say(x=value)


@pytest.mark.parametrize("value", [None, True, [1], float])
def test_only_numbers_and_text_can_be_said(value):
    with pytest.raises(TypeError, match="expected a number or text"):
        say(x=value)


def test_a_number_that_is_not_finite_is_never_said():
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite"):
            say(x=value)


def test_a_name_must_be_one_that_a_role_can_hold():
    with pytest.raises(ValueError, match="cannot be pasted"):
        number("a b", 1)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A notebook that says numbers and draws, executed twice in fresh kernels, as nbval would."""
    from nbconvert.preprocessors import ExecutePreprocessor

    code = [
        "import sys; sys.path[:0] = ['.', 'tests']\nfrom tools.samples import made_up\nfrom climb import *",
        "say(ratio=2.13456, sectors=32)",
        "ladder_figure(made_up())",
    ]
    done = []
    for _ in range(2):
        notebook = new_notebook(cells=[new_code_cell(c, id=f"c{i}") for i, c in enumerate(code)])
        ExecutePreprocessor(timeout=120, record_timing=False).preprocess(notebook, {"metadata": {"path": str(ROOT)}})
        done.append(notebook)
    return done


def test_a_notebook_gets_glue_outputs_and_svg_figures_and_no_png(executed):
    said, drawn = executed[0].cells[1].outputs, executed[0].cells[2].outputs
    assert said[0].text == "ratio = 2.13\nsectors = 32\n"
    assert [o.data for o in said[1:]] == [
        {"application/papermill.record/text/plain": "2.13"},
        {"application/papermill.record/text/plain": "32"},
    ]
    assert [o.metadata["scrapbook"] for o in said[1:]] == [
        {"name": name, "mime_prefix": "application/papermill.record/"} for name in ("ratio", "sectors")
    ]
    assert set(drawn[0].data) == {"image/svg+xml", "text/plain"} and len(drawn) == 1


def test_a_notebook_executed_twice_is_the_same(executed):
    first, second = ([c.outputs for c in notebook.cells] for notebook in executed)
    assert first == second


def test_prose_takes_the_numbers_and_a_missing_one_fails_the_build(executed, tmp_path):
    """A book of one page, built with -W: whole, and with a name that nobody said."""
    from nbformat.v4 import new_markdown_cell

    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: page\n", encoding="utf-8")
    (tmp_path / "_config.yml").write_text("execute: {execute_notebooks: 'off'}\nlogo: ''\n", encoding="utf-8")

    def build(prose):
        said = executed[0].cells[1].copy()
        said.metadata = {"tags": ["remove-cell"]}
        page = new_notebook(cells=[new_markdown_cell("# Page", id="a"), said, new_markdown_cell(prose, id="b")])
        page.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(page, tmp_path / "page.ipynb")
        main = "from jupyter_book.cli.main import main; main()"
        command = [sys.executable, "-c", main, "build", "-W", "-n", "--all", str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    whole = build("It is {glue:text}`ratio` times, {glue:text}`sectors` sectors.")
    assert whole.returncode == 0, whole.stdout + whole.stderr
    html = (tmp_path / "_build" / "html" / "page.html").read_text(encoding="utf-8")
    assert "It is 2.13 times, 32 sectors." in text_of(html)
    assert "ratio = 2.13" not in text_of(html)
    missing = build("It is {glue:text}`nobody` times.")
    assert missing.returncode != 0 and "No key 'nobody' found" in missing.stdout + missing.stderr


def test_the_public_names_exist_and_import_is_lazy():
    import climb

    for name in climb.__all__:
        assert getattr(climb, name) is not None, name
    assert callable(climb.timings) and callable(climb.counters)
    assert set(show.__all__) <= {*climb.__all__, "Shown"}
    with pytest.raises(AttributeError, match=r"climb has no 'nonsense'"):
        _ = climb.nonsense
    code = "import sys, climb; from climb import cp, timings; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_number_and_its_unit_are_pasted_as_one_word():
    from climb.display.show import _kept_together

    assert _kept_together("17 %") == "17\u00a0%"
    assert _kept_together("4.28 TB/s") == "4.28\u00a0TB/s"
    assert _kept_together("NVIDIA H200") == "NVIDIA H200"
    assert _kept_together("3 of 4 lanes") == "3 of 4\u00a0lanes"
