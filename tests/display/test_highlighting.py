"""Highlighted CUDA C++: the text is unchanged, and there are few elements."""

from __future__ import annotations

import pytest
from tools.samples import FIRST, text_of

from climb import paths
from climb.display.highlighting import html_of, lines_of


@pytest.mark.parametrize("file", ["float4/saxpy/03_float4.cu", "sgemm/sgemm/pipeline.cuh"])
def test_text_of_the_html_is_the_file(file):
    text = (paths.KERNELS / file).read_text(encoding="utf-8")
    lines = [html_of(line) for line in lines_of(text)]
    assert text_of("\n".join(lines)) == text
    assert sum(map(len, lines)) < 3 * len(text), "a page holds whole kernels: elements are few"


def test_neighbours_of_one_colour_share_an_element():
    (line,) = lines_of("static const float x = 1;")
    assert html_of(line) == '<span class="k">static const float </span>x = <span class="m">1</span>;'


def test_comment_of_several_lines_has_an_element_a_line():
    lines = [html_of(line) for line in lines_of(FIRST)]
    assert lines[6:8] == [
        '    <span class="c">/* one</span>', '<span class="c">       two &lt; three */</span>',
    ]  # fmt: skip


def test_marks_begin_and_end_amid_elements():
    (line,) = lines_of("int a = bc;")
    assert html_of(line, [(1, 5), (9, 10)]) == (
        '<span class="k">i</span><b><span class="k">nt </span>a</b> = b<b>c</b>;'
    )
