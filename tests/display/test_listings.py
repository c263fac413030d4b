"""Source, diff and launches: every line of a file is shown, with its number, and nothing else."""

from __future__ import annotations

import re

import pytest
from tools.samples import FIRST, SECOND, rung, text_of

from climb import paths
from climb.display.listings import diff, launch, source


def code_of(html: str, box: int = 0) -> str:
    """The text in a box of code, without its title."""
    return text_of(re.findall(r"<pre>(.*?)</pre>", html, re.DOTALL)[box])


def test_source_shows_every_line_of_the_file_with_its_number():
    shown = source(rung("first", FIRST))
    expected = [f"{n:2}  {line}".rstrip() for n, line in enumerate(FIRST.rstrip("\n").split("\n"), 1)]
    assert repr(shown).split("\n") == expected
    assert [line.rstrip() for line in code_of(shown.html).rstrip("\n").split("\n")] == expected


def test_excerpt_keeps_the_files_line_numbers_and_comment_colours():
    shown = source(rung("first", FIRST), lines=(8, 9))
    assert repr(shown) == "8         two < three */\n9      __syncthreads();"
    comment = shown.html.split("\n")[0]
    assert '<span class="c">       two' in comment, (
        "the second line of a comment is a comment, though it opens in a line not shown"
    )


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
    assert [line.rstrip() for line in code_of(shown.html).rstrip("\n").split("\n")] == lines[1:]
    assert "<b>first to second</b>: 1 line in, 1 line out" in shown.html
    assert shown.html.count('class="rl-add"') == shown.html.count('class="rl-del"') == 1
    assert "a &lt; b" in shown.html


def test_diff_applied_to_the_old_file_gives_the_new_file_without_its_header():
    """Gaps stand for lines of the new file that are as before; everything else must reproduce both files."""
    shown = repr(diff(rung("second", SECOND, rung("first", FIRST)))).split("\n")[1:]
    new = SECOND.rstrip("\n").split("\n")
    at = 1
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


def test_header_new_names_and_moved_line_breaks_are_not_shown_as_changes():
    old = """// Idea: one thread an element.
// From the rung before: nothing.
// Requires: nothing.
constexpr int kSide = 8;
__global__ void scale_plain(const float* __restrict__ from, float* __restrict__ to,
                            int n)
{
    const int i = blockIdx.x * kSide;
    to[i] = 2 * from[i];
}
"""
    new = """// Idea: another.
constexpr int kWide = 8;
__global__ void scale_with_a_long_name(const float* __restrict__ from,
                                       float* __restrict__ to, int n)
{
    const int i = blockIdx.x * kWide;
    to[i] = 3 * from[i];
}
"""
    shown = diff(rung("new", new), before=rung("old", old))
    lines = repr(shown).split("\n")
    assert lines[0] == (
        "  old to new: 1 line in, 1 line out; scale_plain is now scale_with_a_long_name, kSide is now kWide"
    )
    assert [line for line in lines if line[0] in "+-"] == ["-     to[i] = 2 * from[i];", "+     to[i] = 3 * from[i];"]
    assert "Idea" not in repr(shown)
    assert '<b><span class="m">3</span></b>' in shown.html, "the word that changed is marked"
    assert "<code>kSide</code> is now <code>kWide</code>" in shown.html


def test_new_names_alone_are_said_in_the_title():
    new = FIRST.replace("copy(", "copied(")
    assert repr(diff(rung("second", new, rung("first", FIRST)))).split("\n") == [
        "  first to second: 0 lines in, 0 lines out; copy is now copied", "  ... 10 lines as before",
    ]  # fmt: skip


def test_below_an_excerpt_and_a_difference_the_whole_file_can_be_unfolded():
    first = rung("first", FIRST)
    for shown, title in (
        (source(first, lines=(3, 5)), "The whole file (11 lines)"),
        (diff(rung("first", SECOND), before=first), "The whole rung first (11 lines)"),
    ):
        assert f'<details class="rl-whole"><summary>{title}</summary>' in shown.html
    assert code_of(source(first, lines=(3, 5)).html, 1) == FIRST
    assert "<details" not in source(first).html


def test_an_excerpt_of_a_heavy_page_has_no_file_to_unfold():
    text = "int a;\nint b;\nint c;\n"
    lean, full = source(text, lines=(2, 2), whole=False), source(text, lines=(2, 2))
    assert "rl-whole" in full.html and full.html.startswith(lean.html) and "rl-whole" not in lean.html
    assert lean.text == full.text and "int b;" in lean.text


def test_listing_of_a_file_of_the_book_names_it_as_the_repository_does(tmp_path):
    path = paths.KERNELS / "float4" / "saxpy" / "01_scalar.cu"
    file = "kernels/float4/saxpy/01_scalar.cu"
    name = f'<code class="rl-file" data-file="{file}">{file}</code>'
    text = path.read_text(encoding="utf-8")
    of_rung = rung("scalar", text)
    of_rung.path = path
    assert name in source(path).html and name in source(of_rung).html
    assert f"{name}, lines 2 to 3 of " in source(path, lines=(2, 3)).html
    assert name in diff(of_rung, before=rung("first", FIRST)).html
    (tmp_path / "other.cu").write_text(text, encoding="utf-8")
    assert "data-file" not in source(tmp_path / "other.cu").html


def test_single_line_between_changes_is_shown_and_two_are_counted():
    same = [f"same({n});" for n in range(6)]
    for between, middle in ((5, same[2]), (6, "... 2 lines as before")):
        old, new = (f"{x}();\n" + "\n".join(same[:between]) + f"\n{y}();" for x, y in ("ab", "cd"))
        lines = [line.strip() for line in repr(diff(rung("new", new), before=rung("old", old))).split("\n")]
        assert lines[5] == middle
