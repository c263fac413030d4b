"""Source, diff and launches: every line of a file is shown, with its number, and nothing else."""

from __future__ import annotations

import re

import pytest
from tools.samples import FIRST, SECOND, rung, text_of

from climb.display.listings import diff, launch, source


def test_source_shows_every_line_of_the_file_with_its_number():
    shown = source(rung("first", FIRST))
    expected = [f"{n:2}  {line}".rstrip() for n, line in enumerate(FIRST.rstrip("\n").split("\n"), 1)]
    assert repr(shown).split("\n") == expected
    assert [line.rstrip() for line in text_of(shown.html).rstrip("\n").split("\n")] == expected


def test_excerpt_keeps_the_files_line_numbers_and_comment_colours():
    shown = source(rung("first", FIRST), lines=(8, 9))
    assert repr(shown) == "8         two < three */\n9      __syncthreads();"
    comment = shown.html.split("\n")[0]
    assert 'class="cm"' in comment, "the second line of a comment is a comment, though it opens in a line not shown"


@pytest.mark.parametrize("lines", [(0, 3), (3, 2), (5, 12)])
def test_line_numbers_outside_of_the_file_are_refused(lines):
    with pytest.raises(ValueError, match="not in the file, which has 11 lines"):
        source(rung("first", FIRST), lines=lines)


def test_diff_marks_added_and_removed_lines_without_colour():
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


def test_diff_applied_to_the_old_file_gives_the_new_file():
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


def test_diff_of_a_first_rung_or_of_equal_sources_is_refused():
    with pytest.raises(ValueError, match="first is the first rung"):
        diff(rung("first", FIRST))
    with pytest.raises(ValueError, match="the same source"):
        diff(rung("second", FIRST, rung("first", FIRST)))


def test_launches_are_written_as_cuda_writes_them():
    shown = repr(launch(rung("first", FIRST), {"n": 1}))
    assert shown == "copy<<<1, 32>>>(from, to);\ncopy<<<dim3(2, 3), dim3(8, 4), 128>>>(from, to);"
