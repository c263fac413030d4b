"""The frame of all steppers: cells in few letters, HTML that is well formed, and what is shown without a script."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tools.steppers import ROOT, STATIC, column, data_of, of_two_transposes  # noqa: F401

import climb
from climb.display.stepper import frame
from climb.display.stepper.frame import Cells, Drawing, Grid, Label, Patch


class Balance(HTMLParser):
    """Collects what is opened and not closed, or closed and not open."""

    VOID = frozenset({"input", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if len(attrs) != len(dict(attrs)):
            self.wrong.append(f"{tag} has an attribute twice")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        if tag not in self.VOID:
            self.wrong.append(f"<{tag}/>")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")


@given(st.sets(st.integers(0, 300)))
def test_cells_in_few_letters_are_the_cells(cells):
    found = []
    for run in frame.progressions(cells).split():
        first, count, distance = re.fullmatch(r"(\d+)(?:\+(\d+))?(?:\*(\d+))?", run).groups()
        found += [int(first) + n * int(distance or 1) for n in range(int(count or 1))]
    assert sorted(found) == sorted(cells)


def test_cells_of_a_grid_are_strokes_that_end_with_the_row():
    grid = Grid(4, 10, 20, 5, 8, 7)
    assert grid.shape([0, 1, 3, 4]) == "M10 20h9.9M25 20h4.9M10 28h4.9"
    assert frame.progressions(range(0, 16, 2)) == "0+8*2"


def test_parts_with_another_number_of_steps_are_refused():
    with pytest.raises(ValueError, match="has no step"):
        frame.stepper("x", "X", Drawing(1, 1), [], key=[])
    for part in (Label(0, 0, ["a"]), Cells("on", Grid(1, 0, 0, 1, 1, 1), [[0]]), Patch("M0 0z", ["on"])):
        with pytest.raises(ValueError, match="2 sentences, but a part of it has 1 steps"):
            frame.stepper("x", "X", Drawing(1, 1, [part]), ["one", "two"], key=[])


def test_html_is_well_formed_and_escaped_and_small(wavefronts):
    parser = Balance()
    parser.feed(wavefronts.html)
    assert (parser.wrong, parser.open) == ([], [])
    assert "<tiled>" not in wavefronts.html and "&lt;tiled&gt;" in wavefronts.html
    assert len(wavefronts.html) < 15_000
    assert "http" not in wavefronts.html and " id=" not in wavefronts.html


def test_stepper_without_script_shows_one_step_and_lists_all(wavefronts):
    said = [html.unescape(one) for one in re.findall(r"<li>(.*?)</li>", wavefronts.html)]
    assert wavefronts.text.splitlines()[1:] == [f"{n}. {one}" for n, one in enumerate(said, 1)]
    shown = html.unescape(re.search(r'class="s-sentence"[^>]*>(.*?)</p>', wavefronts.html)[1])
    assert shown == said[data_of(wavefronts)["at"]]
    alt = html.unescape(re.search(r'<svg[^>]*aria-label="([^"]*)"', wavefronts.html)[1])
    assert alt.endswith(shown)
    assert 'class="s-controls" hidden' in wavefronts.html


def test_same_call_gives_the_same_bytes(wavefronts):
    again = climb.wavefronts_stepper(column("tiled"), column("padded"), titles=("<tiled>", "padded's"))
    assert again.html == wavefronts.html and repr(again) == repr(wavefronts)


def test_files_are_loaded_on_pages_with_a_stepper_alone(wavefronts):
    """The book lists them for all pages, and their first line says which pages need them (book/_extensions/lean.py)."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]
    scripts = [one if isinstance(one, str) else one[0] for one in config["html_js_files"]]
    listed = [name for name in (*config["html_css_files"], *scripts) if name.startswith("stepper")]
    assert listed == ["stepper.css", "stepper.js"]
    for name in listed:
        needed = re.match(r"/\* only where: (\S+) \*/\n", (STATIC / name).read_text(encoding="utf-8"))[1]
        assert needed in wavefronts.html and needed not in "<p>data-stepper</p>"
